"""The examples' texts need looking back, far, and only back; rows don't depend on the grouping."""

import importlib.util
import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

EXAMPLES = Path(__file__).parents[2] / "examples"
LINE_BYTES = {"dense_gpt": 512, "moe_gpt": 256}


def load(path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A script's names, with its folder in front of the path as when it is run."""
    monkeypatch.syspath_prepend(str(path.parent))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lines(example: str) -> list[str]:
    return (EXAMPLES / example / "data/text.txt").read_text("ascii").splitlines()


def surprise(example: str, history: Callable[[str, int], str]) -> float:
    """Nats a byte of a guesser that counts the letters in a piece of the line's past."""
    nats: list[float] = []
    for line in lines(example)[:100]:
        for at in range(len(line)):
            seen = history(line, at)
            nats.append(-math.log((seen.count(line[at]) + 0.1) / (len(seen) + 6.2)))
    return sum(nats) / len(nats)


def test_the_texts_are_what_their_script_writes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_text = load(EXAMPLES / "make_text.py", "make_text", monkeypatch)
    monkeypatch.setattr(make_text, "__file__", str(tmp_path / "make_text.py"))
    for example in LINE_BYTES:
        (tmp_path / example / "data").mkdir(parents=True)
    make_text.main()
    for example in LINE_BYTES:
        written = (tmp_path / example / "data/text.txt").read_bytes()
        assert written == (EXAMPLES / example / "data/text.txt").read_bytes()


@pytest.mark.parametrize("example", LINE_BYTES)
def test_every_line_is_one_row(example: str) -> None:
    assert {len(line) for line in lines(example)} == {LINE_BYTES[example]}


@pytest.mark.parametrize("example", LINE_BYTES)
def test_the_last_quarter_is_known_from_half_a_line_before_and_no_nearer(example: str) -> None:
    quarter = LINE_BYTES[example] // 4
    for line in lines(example)[:50]:
        tail = line[3 * quarter :]
        assert line[quarter : 2 * quarter] == tail
        for distance in range(1, 2 * quarter):
            nearer = line[3 * quarter - distance : len(line) - distance]
            agreeing = sum(a == b for a, b in zip(nearer, tail, strict=True))
            assert agreeing < 0.9 * quarter, (line, distance)


@pytest.mark.parametrize("example", LINE_BYTES)
def test_counting_the_past_tells_much(example: str) -> None:
    past = surprise(example, lambda line, at: line[:at])
    last_byte = surprise(example, lambda line, at: line[max(0, at - 1) : at])
    assert past < 0.8 * last_byte


@pytest.mark.parametrize("example", LINE_BYTES)
def test_the_future_holds_letters_that_cannot_be_said_yet(example: str) -> None:
    known = [len(set(line[: len(line) // 2])) / len(set(line)) for line in lines(example)]
    assert sum(known) / len(known) < 0.6


def test_regrouped_micro_batches_hold_the_same_dense_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    train = load(EXAMPLES / "dense_gpt/train.py", "dense_train", monkeypatch)
    text = train.load_lines(EXAMPLES / "dense_gpt/data/text.txt")

    def rows(n_micro_batches: int, size: int) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(train.SEED)
        drawn = [train.get_batch(text, size, generator) for _ in range(n_micro_batches)]
        return [torch.cat(part) for part in zip(*drawn, strict=True)]

    assert all(map(torch.equal, rows(8, 1), rows(4, 2)))
    assert all(map(torch.equal, rows(8, 1), rows(1, 8)))


def test_regrouped_micro_batches_hold_the_same_moe_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    train = load(EXAMPLES / "moe_gpt/train.py", "moe_train", monkeypatch)

    def rows(n_micro_batches: int, size: int) -> list[torch.Tensor]:
        data = train.Lines(EXAMPLES / "moe_gpt/data/text.txt", 256, 1337)
        drawn = [data.next_batch(size) for _ in range(n_micro_batches)]
        return [torch.cat(part) for part in zip(*drawn, strict=True)]

    assert all(map(torch.equal, rows(4, 2), rows(1, 8)))
