"""Half-typed lines in the fixtures of sixteen trainers: no fact flickers to another value.

A fact may become unknown. It may change only where the statement that is being edited sets it,
that is where the fact also changes without that statement.
"""

import ast
import random
from functools import cache
from pathlib import Path

import pytest

from infrarsi.launch import parse_launch
from infrarsi.reading import MappingSources, Reading, read

TRAINERS = Path(__file__).parents[2] / "fixtures" / "trainers16"
LAUNCHES = {
    "constants_exec": "torchrun --nproc-per-node 4 train.py",
    "cfg_node": "python train.py",
    "token_total": "torchrun --nproc-per-node 2 train.py --dtype bfloat16",
    "json_config": "torchrun --nproc-per-node 2 train.py --config job.json",
    "fabric_yaml": "python pretrain.py --config config.yaml",
    "hf_arguments": "python run_clm.py --output_dir out --bf16 --block_size 128",
    "trainer_arguments": "python finetune.py",
    "sft": "python sft.py",
    "accelerate_modulo": "python train.py --mixed_precision bf16",
    "accelerate_context": "python train.py",
    "accelerate_no_sync": "python train.py",
    "titan_dataclasses": "torchrun --nproc-per-node 2 train.py",
    "titan_toml": "torchrun --nproc-per-node 2 train.py",
    "staged_tokens": "torchrun --nproc-per-node 2 train_gpt.py",
    "depth_derived": "python base_train.py",
    "frozen_prepare": "python train.py",
    "fsdp_literals": "torchrun --nproc-per-node 2 train.py --mixed-precision",
    "hydra_snapshot": "torchrun --nproc-per-node 2 main.py",
    "lightning": "python train.py --devices 2",
    "fabric": "python train.py",
    "deepspeed_dict": "python pretrain.py",
    "deepspeed_json": "torchrun --nproc-per-node 2 train.py",
    "megatron_shell": "torchrun --nproc-per-node 2 pretrain_gpt.py --micro-batch-size 4 "
    "--global-batch-size 16 --seq-length 64 --bf16 --train-iters 9",
}
EDITS_EACH = 24


@cache
def _texts(name: str) -> dict[str, str]:
    folder = TRAINERS / name
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


def _read(name: str, file: str | None = None, text: str = "") -> Reading:
    texts = _texts(name) | ({file: text} if file is not None else {})
    return read(MappingSources(texts), parse_launch(LAUNCHES[name]))


def _values(reading: Reading) -> dict[str, object]:
    return {fact.name: fact.value for fact in reading.facts}


def _without_statement(text: str, row: int) -> str:
    """The text with the smallest statement on a line replaced by `pass`."""
    lines = text.split("\n")
    found = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.stmt) and node.lineno - 1 <= row <= (node.end_lineno or 0) - 1
    ]
    node = min(found, key=lambda n: (n.end_lineno or 0) - n.lineno)
    body = getattr(node, "body", None)
    if body:
        return "\n".join([*lines[:row], *lines[row + 1 :]])
    first = lines[node.lineno - 1]
    indent = first[: len(first) - len(first.lstrip())]
    return "\n".join([*lines[: node.lineno - 1], f"{indent}pass", *lines[node.end_lineno or 0 :]])


def _edit(text: str, chance: random.Random) -> tuple[str, int | None]:
    """The text after one half-done edit, and the line that was changed (None: one was added)."""
    lines = text.split("\n")
    row = chance.choice([number for number, line in enumerate(lines) if line.strip()])
    line = lines[row]
    indent = line[: len(line) - len(line.lstrip())]
    brackets = [at for at, letter in enumerate(line) if letter in "()[]{}"]
    kind = chance.choice(["cut", "bracket", "insert"])
    if kind == "bracket" and brackets:
        at = chance.choice(brackets)
        lines[row] = line[:at] + line[at + 1 :]
        return "\n".join(lines), row
    if kind == "insert":
        new = chance.choice(["x = foo(", "if ", "for i in", "y = [1,", 'print("', "z.", "def g("])
        return "\n".join([*lines[:row], indent + new, *lines[row:]]), None
    lines[row] = line[: chance.randint(len(indent) + 1, len(line))]
    return "\n".join(lines), row


def test_every_fixture_is_edited():
    assert set(LAUNCHES) == {path.name for path in TRAINERS.iterdir()}


@pytest.mark.parametrize("name", LAUNCHES)
def test_half_typed_code_keeps_the_facts_of_the_rest(name: str):
    whole = _values(_read(name))
    chance = random.Random(f"half typed {name}")
    files = [file for file in _texts(name) if file.endswith(".py")]
    n_kept = n_facts = 0
    for _ in range(EDITS_EACH):
        file = chance.choice(files)
        text, row = _edit(_texts(name)[file], chance)
        reading = _read(name, file, text)
        if not any(problem.half_typed for problem in reading.problems):
            continue
        now = _values(reading)
        other = {n for n in whole if whole[n] is not None and now.get(n) not in {None, whole[n]}}
        if other and row is not None:
            gone = _values(_read(name, file, _without_statement(_texts(name)[file], row)))
            other = {n for n in other if gone.get(n) == whole[n]}
        assert not other, (file, row, text.split("\n")[row or 0], other)
        n_facts += sum(value is not None for value in whole.values())
        n_kept += sum(value is not None and now.get(n) == value for n, value in whole.items())
    assert n_kept >= 0.5 * n_facts


@pytest.mark.parametrize("name", LAUNCHES)
def test_a_file_that_is_cut_off_anywhere_is_read_without_raising(name: str):
    chance = random.Random(f"cut off {name}")
    for file, text in _texts(name).items():
        for _ in range(6):
            reading = _read(name, file, text[: chance.randrange(len(text))])
            assert Reading.model_validate_json(reading.model_dump_json()) == reading


@pytest.mark.parametrize(
    ("name", "file", "old", "new", "lost"),
    [
        ("trainer_arguments", "finetune.py", "    bf16=True,", "    bf16=", {"precision"}),
        ("trainer_arguments", "finetune.py", "max_steps=1_000,", "max_steps=1_000", {"updates"}),
        (
            "lightning",
            "train.py",
            "gradient_clip_val=0.8,",
            "gradient_clip_val=0.8 0,",
            {"clip"},
        ),
        (
            "deepspeed_dict",
            "pretrain.py",
            '"gradient_clipping": 1.0,',
            '"gradient_clipping": ,',
            {"clip"},
        ),
        (
            "token_total",
            "train.py",
            "norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)",
            "norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.",
            {"clip"},
        ),
    ],
)
def test_a_half_typed_setting_costs_its_own_fact(
    name: str, file: str, old: str, new: str, lost: set[str]
):
    text = _texts(name)[file]
    assert text.count(old) == 1
    whole, now = _values(_read(name)), _values(_read(name, file, text.replace(old, new)))
    assert {n for n in whole if whole[n] != now.get(n)} - {"loss"} == lost


@pytest.mark.parametrize(
    ("name", "file", "old", "new", "fact"),
    [
        ("titan_toml", "debug.toml", "seed = 3", "seed =", "seed"),
        ("deepspeed_json", "ds_config.json", '"gradient_clipping": 0.7,', '"gradient_cl', "clip"),
        ("deepspeed_json", "ds_config.json", '"train_batch_size": 48,', '"tr', "global_batch"),
    ],
)
def test_no_default_stands_in_for_a_half_typed_line_of_a_settings_file(
    name: str, file: str, old: str, new: str, fact: str
):
    text = _texts(name)[file]
    assert text.count(old) == 1
    reading = _read(name, file, text.replace(old, new))
    assert reading.fact(fact) is not None
    assert _values(reading)[fact] is None
