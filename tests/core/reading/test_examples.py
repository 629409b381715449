from pathlib import Path

import pytest

from infrarsi.launch import parse_launch
from infrarsi.reading import MappingSources, Reading, read

EXAMPLES = Path(__file__).parents[3] / "examples"


def _read(name: str, launch: str, n_cpus: int = 2) -> Reading:
    root = EXAMPLES / name
    texts = {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*.py")}
    return read(MappingSources(texts), parse_launch(launch), n_cpus)


def _values(reading: Reading) -> dict[str, object]:
    return {fact.name: fact.value for fact in reading.facts}


@pytest.mark.parametrize(
    ("launch", "accumulation", "world"),
    [("python train.py", 4, 1), ("torchrun --nproc-per-node 2 train.py", 2, 2)],
)
def test_the_dense_example_is_understood_whole(launch: str, accumulation: int, world: int):
    reading = _read("dense_gpt", launch)
    values = _values(reading)
    assert all(fact.unknown is None for fact in reading.facts)
    assert values["micro_batch"] == 1
    assert values["accumulation"] == accumulation
    assert values["world_size"] == world
    assert values["global_batch"] == 4
    assert values["tokens_per_step"] == 2048
    assert values["optimizer"] == "AdamW"
    assert values["clip"] == 1.0
    assert values["precision"] == "fp32"
    assert values["loss"] == "cross_entropy"
    assert not reading.problems


@pytest.mark.parametrize(
    "example", sorted(path.parent.name for path in EXAMPLES.glob("*/train.py"))
)
@pytest.mark.parametrize("launch", ["python train.py", "torchrun --nproc-per-node 2 train.py"])
def test_every_example_has_its_work_its_micro_batch_and_its_fetching_understood(
    example: str, launch: str
):
    reading = _read(example, launch, 4)
    values = _values(reading)
    for name in ("micro_batch", "accumulation", "global_batch", "seq_len", "lr", "optimizer"):
        assert values[name] is not None
    assert values["loss"] == "cross_entropy"
    assert type(values["clip"]) is float
    knob = next(knob for knob in reading.knobs if knob.name == "micro_batch")
    assert knob.bindings
    assert len(knob.choices) > 1
    roles = {span.role for span in reading.roles}
    assert roles >= {"fetch", "forward", "loss", "backward", "clip", "step", "zero_grad", "sync"}
    fetches = [span.place for span in reading.roles if span.role == "fetch"]
    assert any(place.end_line > place.line for place in fetches)
