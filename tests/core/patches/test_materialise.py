"""Materialising: a candidate becomes edits and a launch, and nothing else changes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from training_spellings import LOSS_IN_MODEL, PLAIN

from infrarsi.edits import apply_edits
from infrarsi.knobs import Binding, Candidate, Knob, Space
from infrarsi.launch import Launch
from infrarsi.patches import (
    Declined,
    Materialised,
    describe,
    materialise,
    overlay,
    patch_knobs,
)
from infrarsi.place import Place
from infrarsi.reading.read import read
from infrarsi.reading.sources import MappingSources

LAUNCH = Launch(script="train.py", args=("--steps", "3"), env={"A": "1"})


def knob(*bindings: Binding, default=2, choices=(1, 2, 4, 8), name: str = "micro_batch") -> Knob:
    return Knob(
        name=name, type="ordinal", choices=choices, default=default, role=name, bindings=bindings
    )


def constant(name: str, file: str = "train.py", **fields) -> Binding:
    return Binding(carrier="constant", name=name, file=file, **fields)


def at(line: int, column: int = 1) -> Place:
    return Place(file="train.py", line=line, column=column, end_line=line, end_column=column + 1)


def changed(text: str, binding: Binding, value, default=2) -> str | Declined:
    """The only file's text with one knob set."""
    space = Space(knobs=(knob(binding, default=default, choices=(default, value)),))
    sources = MappingSources({"train.py": text})
    made = materialise(Candidate(setting={"micro_batch": value}), space, sources, LAUNCH)
    return made if isinstance(made, Declined) else apply_edits(text, made.edits)


@pytest.mark.parametrize(
    ("before", "name", "after"),
    [
        ("MICRO = 2  # rows\n", "MICRO", "MICRO = 8  # rows\n"),
        ("MICRO: int = 2", "MICRO", "MICRO: int = 8"),
        ("A, MICRO = 1, 2\r\nB = 2\r\n", "MICRO", "A, MICRO = 1, 8\r\nB = 2\r\n"),
        ("\ufeffMICRO=(2)\n", "MICRO", "\ufeffMICRO=(8)\n"),
        ("class Config:\n\tmicro = 2\n", "Config.micro", "class Config:\n\tmicro = 8\n"),
        ("class Config:\n\tmicro = 2\n", "micro", "class Config:\n\tmicro = 8\n"),
        ("c = dict(micro=2)\n", "micro", "c = dict(micro=8)\n"),
        ("c = {'micro': 2}\n", "micro", "c = {'micro': 8}\n"),
        ("def f(micro=2): pass\n", "micro", "def f(micro=8): pass\n"),
        ("self.micro = 2\n", "self.micro", "self.micro = 8\n"),
    ],
)
def test_only_the_constants_literal_changes(before: str, name: str, after: str):
    assert changed(before, constant(name), 8) == after


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("K = 'a'\n", "b'\n", "K = 'b\\'\\n'\n"),
        ('K = "a"\n', "b", 'K = "b"\n'),
        ("K = 1e-3\n", 0.5, "K = 0.5\n"),
        ("K = -1\n", 3, "K = 3\n"),
        ("K = False\n", True, "K = True\n"),
    ],
)
def test_values_of_all_kinds_are_written_as_literals(before: str, value, after: str):
    text = changed(before, constant("K"), value, default="-")
    assert text == after
    scope: dict[str, object] = {}
    exec(text, scope)
    assert scope["K"] == value


def test_the_place_decides_between_several_of_one_name():
    text = "N = 2\nx = 1\nN = 2\n"
    assert changed(text, constant("N", place=at(3)), 8) == "N = 2\nx = 1\nN = 8\n"
    assert changed("\nx = 1\n" + text, constant("N", place=at(6)), 8) == f"\nx = 1\n{text[:-2]}8\n"
    halfway = changed(text, constant("N", place=at(2)), 8)
    assert isinstance(halfway, Declined)
    undecided = changed(text, constant("N"), 8)
    assert isinstance(undecided, Declined)
    assert "several places" in undecided.reason


def test_a_literal_without_a_name_is_found_at_its_place():
    text = "loader = DataLoader(data, 2)\n"
    binding = constant("batch_size", place=at(1, 27))
    assert changed(text, binding, 8) == "loader = DataLoader(data, 8)\n"
    moved = changed("\n" + text, binding, 8)
    assert isinstance(moved, Declined)


@pytest.mark.parametrize("text", ["", "MICRO = int(2)\n", "print(MICRO)\n", "MICRO = (\n"])
def test_a_constant_that_is_gone_declines(text: str):
    outcome = changed(text, constant("MICRO"), 8)
    assert isinstance(outcome, Declined)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            'p.add_argument("--micro", type=int, default=2)  # rows\n',
            'p.add_argument("--micro", type=int, default=8)  # rows\n',
        ),
        ('p.add_argument("-m", "--micro")\n', 'p.add_argument("-m", "--micro", default=8)\n'),
        (
            'p.add_argument(\n    "--micro",\n    default=2,\n)\n',
            'p.add_argument(\n    "--micro",\n    default=8,\n)\n',
        ),
    ],
)
def test_an_argparse_default_changes_in_place(before: str, after: str):
    binding = Binding(carrier="argument_default", name="--micro", file="train.py")
    assert changed(before, binding, 8) == after


@pytest.mark.parametrize(
    ("args", "after"),
    [
        ((), ("--micro", "8")),
        (("--micro", "2", "--x"), ("--micro", "8", "--x")),
        (("--micro=2",), ("--micro=8",)),
        (("--micro", "2", "--micro=3"), ("--micro", "8", "--micro=8")),
        (("--micro-steps", "2"), ("--micro-steps", "2", "--micro", "8")),
    ],
)
def test_an_argument_is_replaced_or_appended(args: tuple[str, ...], after: tuple[str, ...]):
    space = Space(knobs=(knob(Binding(carrier="argument", name="--micro")),))
    launch = Launch(script="train.py", args=args)
    made = materialise(Candidate(setting={"micro_batch": 8}), space, MappingSources({}), launch)
    assert isinstance(made, Materialised)
    assert made.launch.args == after
    assert made.edits == ()


def test_an_environment_variable_goes_into_the_launch():
    space = Space(knobs=(knob(Binding(carrier="environment", name="OMP_NUM_THREADS")),))
    made = materialise(Candidate(setting={"micro_batch": 4}), space, MappingSources({}), LAUNCH)
    assert isinstance(made, Materialised)
    assert made.launch == LAUNCH.model_copy(update={"env": {"A": "1", "OMP_NUM_THREADS": "4"}})


def test_accumulation_follows_the_micro_batch():
    space = Space(knobs=(knob(constant("MICRO"), constant("ACCUM", quotient_of=16)),))
    sources = MappingSources({"train.py": "MICRO = 2\nACCUM = 8\n"})
    made = materialise(Candidate(setting={"micro_batch": 4}), space, sources, LAUNCH)
    assert isinstance(made, Materialised)
    assert apply_edits("MICRO = 2\nACCUM = 8\n", made.edits) == "MICRO = 4\nACCUM = 4\n"
    odd = materialise(Candidate(setting={"micro_batch": 3}), space, sources, LAUNCH)
    assert isinstance(odd, Declined)
    assert "whole" in odd.reason


@pytest.mark.parametrize(
    ("setting", "word"),
    [
        ({"unheard_of": 1}, "no knob unheard_of"),
        ({"micro_batch": 4}, "how micro_batch reaches"),
        ({"sdpa": True}, "sdpa"),
    ],
)
def test_what_cannot_be_carried_out_declines(setting: dict[str, object], word: str):
    patch = Knob(
        name="sdpa", type="bool", choices=(False, True), kind="patch", default=False, role="patch"
    )
    space = Space(knobs=(knob(), patch))
    made = materialise(Candidate(setting=setting), space, MappingSources(PLAIN), LAUNCH)
    assert isinstance(made, Declined)
    assert word in made.reason


TEXTS = {**LOSS_IN_MODEL, "notes.py": "MICRO = 2\n", "README.md": "no code"}
TEXTS["train.py"] = TEXTS["train.py"].replace("get_batch(n=2):", "get_batch(n=2):  # rows")
SOURCES = MappingSources(TEXTS)
PATCHES, _ = patch_knobs(SOURCES, LAUNCH)
SPACE = Space(
    knobs=(
        knob(constant("n"), name="micro_batch"),
        knob(Binding(carrier="argument", name="--steps"), default=3, choices=(1, 3), name="steps"),
        *PATCHES,
    )
)
CANDIDATES = st.fixed_dictionaries(
    {}, optional={k.name: st.sampled_from(k.choices) for k in SPACE.knobs}
).map(lambda setting: Candidate(setting=setting))


def test_the_patches_that_apply_become_knobs_and_the_rest_say_why():
    knobs, declined = patch_knobs(SOURCES, LAUNCH)
    assert {k.name for k in knobs} == {"bf16_autocast", "fused_optimizer", "drop_micro_sync"}
    assert all(k.kind == "patch" and k.default is False and not k.bindings for k in knobs)
    assert list(declined) == ["sdpa"]
    assert declined["sdpa"].reason


@settings(deadline=None, max_examples=30)
@given(CANDIDATES)
def test_a_candidate_changes_only_what_differs_from_the_start(candidate: Candidate):
    made = materialise(candidate, SPACE, SOURCES, LAUNCH)
    assert isinstance(made, Materialised)
    differs = candidate.changed(SPACE)
    assert set(made.whys) == set(differs) == {part.knob for part in describe(candidate, SPACE)}
    after = overlay(SOURCES, made.edits)
    for path in SOURCES.paths():
        compile(after.text(path) if path.endswith(".py") else "", path, "exec")
    touched = {edit.file for edit in made.edits}
    assert touched <= {"train.py", "nets/model.py"}
    assert ("nets/model.py" in touched) == ("bf16_autocast" in differs)
    assert (made.launch == LAUNCH) == ("steps" not in differs)
    assert ("# rows" in str(after.text("train.py"))) is True
    assert ("def get_batch(n=2)" in str(after.text("train.py"))) == ("micro_batch" not in differs)


def test_the_default_setting_is_the_users_own_start():
    made = materialise(Candidate(setting=SPACE.default_setting()), SPACE, SOURCES, LAUNCH)
    assert made == Materialised(edits=(), launch=LAUNCH, whys={})


def test_every_part_is_described_in_one_sentence():
    candidate = Candidate(setting={"micro_batch": 8, "fused_optimizer": True})
    parts = describe(candidate, SPACE)
    assert [(p.knob, p.value) for p in parts] == [("micro_batch", 8), ("fused_optimizer", True)]
    assert parts[0].why == "8 rows a micro-step instead of 2; rows a step stay the same."
    assert parts[1].why == "Run the optimizer's update as one fused kernel."


def test_a_knob_that_reading_found_is_written_where_it_was_read():
    sources = MappingSources(PLAIN)
    reading = read(sources, LAUNCH, n_cpus=2)
    found = next(k for k in reading.knobs if k.role == "micro_batch")
    space = Space(knobs=reading.knobs)
    value = next(c for c in found.choices if c != found.default)
    made = materialise(Candidate(setting={found.name: value}), space, sources, LAUNCH)
    assert isinstance(made, Materialised)
    after = read(overlay(sources, made.edits), made.launch, n_cpus=2)
    assert after.fact("micro_batch").value == value
    assert after.fact("global_batch").value == reading.fact("global_batch").value
