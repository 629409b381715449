"""Reading never raises, and half-typed code keeps the facts of the rest."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infrarsi.launch import Launch, parse_launch
from infrarsi.reading import MappingSources, Reading, read
from infrarsi.reading.syntax import parse_source

ROOT = Path(__file__).parents[3]
DENSE = (ROOT / "examples/dense_gpt/train.py").read_text()
TRAINERS = ROOT / "tests/fixtures/trainers"
TEXTS = {path.relative_to(TRAINERS).as_posix(): path.read_text() for path in TRAINERS.rglob("*.py")}
SCRIPTS = ["constants.py", "arguments.py", "dataclass_loader.py", "split_rows.py", "chunked.py"]


def _dense(text: str) -> Reading:
    return read(MappingSources({"train.py": text}), parse_launch("python train.py"), 2)


def _values(reading: Reading) -> dict[str, object]:
    return {fact.name: fact.value for fact in reading.facts}


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        ("GRAD_CLIP = 1.0", "GRAD_CLIP = ", {"clip"}),
        ("GRAD_CLIP = 1.0", "GRAD_CLIP = foo(", {"clip"}),
        ("GRAD_CLIP = 1.0", 'GRAD_CLIP = "', {"clip"}),
        ("GRAD_CLIP = 1.0", "GRAD_CLIP = [1.0", {"clip"}),
        ("SEED = 1337", "SEED = 1337 1337", {"seed"}),
        ("SEED = 1337", "SEED = 1337\nimport", set()),
        ("SEED = 1337", "SEED = 1337\nif SEED", set()),
        ("SEED = 1337", "SEED = 1337\nclass Half(", set()),
        ("SEED = 1337", "SEED = 1337\n@", set()),
        ("        optimizer.step()", "        x = [\n        optimizer.step()", set()),
        ("def main():", "def main(", set()),
        ("        step_loss = 0.0", "        step_loss = 0.0 +", set()),
        ("        step_loss = 0.0", "  step_loss = 0.0", set()),
        ('if __name__ == "__main__":', "if __name__ == ", set()),
    ],
)
def test_a_half_typed_line_costs_only_its_own_facts(old: str, new: str, lost: set[str]):
    assert DENSE.count(old) == 1
    whole = _values(_dense(DENSE))
    reading = _dense(DENSE.replace(old, new))
    changed = {name for name, value in _values(reading).items() if value != whole[name]}
    assert changed == lost
    assert any("could not be parsed" in problem.what for problem in reading.problems)


def test_a_half_typed_loop_header_makes_its_count_unknown_rather_than_wrong():
    reading = _dense(DENSE.replace("in range(accum_steps):", "in range("))
    accumulation = reading.fact("accumulation")
    assert accumulation is not None
    assert accumulation.value is None
    assert accumulation.unknown
    assert _values(reading)["micro_batch"] == 1


def test_a_broken_line_is_named_with_its_place():
    reading = _dense(DENSE.replace("GRAD_CLIP = 1.0", "GRAD_CLIP = foo("))
    (problem,) = reading.problems
    assert problem.place is not None
    line = DENSE.splitlines().index("GRAD_CLIP = 1.0") + 1
    assert (problem.place.line, problem.place.column, problem.place.end_column) == (line, 1, 17)


mutations = st.lists(
    st.tuples(
        st.sampled_from(["cut", "delete", "insert", "drop_line", "double_line"]),
        st.floats(0, 1),
        st.integers(1, 40),
        st.text("()[]{}'\"\\:=,. \n\tdefiwhleramx0123é\0\f\r\ud800\ufeff", max_size=6),
    ),
    min_size=1,
    max_size=4,
)


def _mutate(text: str, steps: list[tuple[str, float, int, str]]) -> str:
    for kind, where, length, insert in steps:
        at = round(where * len(text))
        lines = text.split("\n")
        row = min(len(lines) - 1, round(where * len(lines)))
        match kind:
            case "cut":
                text = text[:at]
            case "delete":
                text = text[:at] + text[at + length :]
            case "insert":
                text = text[:at] + insert + text[at:]
            case "drop_line":
                text = "\n".join(lines[:row] + lines[row + 1 :])
            case _:
                text = "\n".join([*lines[:row], lines[row], *lines[row:]])
    return text


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(SCRIPTS), mutations)
def test_no_mutation_makes_reading_raise(script: str, steps: list[tuple[str, float, int, str]]):
    texts = {**TEXTS, script: _mutate(TEXTS[script], steps)}
    reading = read(MappingSources(texts), Launch(script=script), 2)
    assert Reading.model_validate_json(reading.model_dump_json()) == reading
    for span in reading.roles:
        lines = texts[span.place.file].count("\n") + texts[span.place.file].count("\r") + 1
        assert 1 <= span.place.line <= span.place.end_line <= lines


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60))
def test_any_text_parses_to_something(text: str):
    source = parse_source("a.py", text)
    assert source.tree is not None


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "(" * 500 + ")" * 500,
        "x = " + "-" * 3000 + "1",
        "x = " + "+".join(["1"] * 5000),
        "a.b" + ".c" * 3000,
        "\n".join("  " * n + "if x:" for n in range(90)),
        "x = x\ny = z\nz = y\ndef f(a): return f(a)\nf(f)\n",
        "from train import *\nfrom train import y\nimport train\ntrain.y\ny.backward()\n",
        "class A(A): pass\nA().x.backward()\nfor i in range(10): A().opt.step()\n",
        "for i in range(10 ** 100): loss.backward(); opt.step()\n",
        "for i in range(1 << 10 ** 9): loss.backward(); opt.step()\n",
        "for i in range(0): loss.backward(); opt.step()\n",
        "MICRO_BATCH = 1e999\nlr = float('nan')\nopt = AdamW(p, lr=lr)\nseed = 0x" + "f" * 5000,
        "\ufeffimport torch\n",
        "match x:\n  case [a, *b]: a.backward()\n",
        "print 'python 2'\nexec 'x'\n",
    ],
)
def test_hostile_texts_are_read_without_raising(text: str):
    reading = read(MappingSources({"train.py": text}), Launch(script="train.py"), 4)
    assert Reading.model_validate_json(reading.model_dump_json()) == reading


def test_a_script_that_is_not_there_is_a_problem():
    reading = read(MappingSources({}), Launch(script="train.py"))
    assert [problem.what for problem in reading.problems] == ["The script train.py is not there."]


def test_a_script_that_never_trains_is_a_problem():
    reading = read(MappingSources({"a.py": "print(1)\n"}), Launch(script="a.py"))
    assert "No call of backward" in reading.problems[0].what
    no_step = "loss.backward()\n"
    reading = read(MappingSources({"a.py": no_step}), Launch(script="a.py"))
    assert "No optimizer step" in reading.problems[0].what
