"""Configuration files as trees: what they say, with exact spans, and never an exception."""

import json
import tomllib

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infrarsi.launch import Launch
from infrarsi.reading import MappingSources, Reading, read
from infrarsi.reading.documents import Document, Items, Leaf, Node, Table, parse_document

YAML = """\
# a job
run:
  seed: 7
  name: "two words"   # quoted
  note: |
    several
    lines
model: &model {width: 64, depth: 0x10}
train:
  micro_batch: 4
  betas: [0.9, 0.95]
  lr: 1.0e-3
  on_gpu: no
  clip: null
stages:
  - steps: 10
  - steps: 20
copy:
  <<: *model
  depth: 3
"""
TOML = """\
# a job
seed = 7
[run]
name = "two words" # quoted
path = 'C:\\x'
text = '''
several
lines'''
[train]
micro_batch = 0x4
betas = [0.9,
  0.95]
lr = 1e-3
inner = {a = 1, "b c" = true}
x.y = 2
[[stages]]
steps = 10
[[stages]]
steps = 2_0
"""
JSON = """\
{"run": {"seed": 7, "name": "two \\"words\\"", "é": null},
 "train": {"betas": [0.9, 0.95], "lr": 1e-3, "deep": [{"a": [1, -2]}]},
 "flag": true
}
"""
TEXTS = {"yaml": YAML, "toml": TOML, "json": JSON}
LOADERS = {"yaml": yaml.safe_load, "toml": tomllib.loads, "json": json.loads}


def plain(node: Node) -> object:
    match node:
        case Leaf():
            return node.value
        case Items():
            return [plain(inner) for inner in node.nodes]
        case Table():
            return {key: plain(inner) for key, inner in node.fields.items()}


def leaves(node: Node) -> list[Leaf]:
    match node:
        case Leaf():
            return [node]
        case Items():
            return [leaf for inner in node.nodes for leaf in leaves(inner)]
        case Table():
            return [leaf for inner in node.fields.values() for leaf in leaves(inner)]


def parsed(form: str, text: str) -> Document:
    return parse_document(f"a.{form}", text, form)


@pytest.mark.parametrize("form", TEXTS)
def test_a_whole_file_is_read_as_its_own_loader_reads_it(form: str):
    document = parsed(form, TEXTS[form])
    assert plain(document.root) == LOADERS[form](TEXTS[form])
    assert document.broken == ()


@pytest.mark.parametrize("form", TEXTS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_span_holds_what_was_written_there(form: str, end: str):
    text = TEXTS[form].replace("\n", end)
    document = parsed(form, text)
    lines = text.split("\n")
    for leaf in leaves(document.root):
        written = text[leaf.start : leaf.end]
        place = document.place(leaf)
        if place.line == place.end_line:
            assert lines[place.line - 1][place.column - 1 : place.end_column - 1] == written
        if isinstance(leaf.value, int | float) and not isinstance(leaf.value, bool):
            assert float(int(written, 0) if "x" in written else written) == leaf.value
        assert written.strip() == written or "|" in written


@pytest.mark.parametrize("form", TEXTS)
def test_a_leaf_is_found_by_its_dotted_name(form: str):
    document = parsed(form, TEXTS[form])
    found = document.leaf("train.betas.1")
    assert found is not None
    assert TEXTS[form][found.start : found.end] == "0.95"
    for missing in ("train", "train.betas.2", "train.lr.x", "", "stages.-1.steps", "gone"):
        assert document.leaf(missing) is None


def test_a_broken_header_of_yaml_does_not_lend_its_keys_to_another():
    document = parsed("yaml", "model:\n  lr: 1\ntrain\n  lr: 2\nlast: 3\n")
    root = plain(document.root)
    assert isinstance(root, dict)
    assert (root["model"], root["last"], document.broken) == ({"lr": 1}, 3, (3,))


def test_a_broken_header_of_toml_does_not_lend_its_keys_to_another():
    document = parsed("toml", "[model]\nlr = 1\n[train\nlr = 2\n[last]\nx = 3\n")
    root = plain(document.root)
    assert isinstance(root, dict)
    assert (root["model"], root["last"], document.broken) == ({"lr": 1}, {"x": 3}, (3,))


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("yaml", "a: &a [*a]\n"),
        ("yaml", "a: &a {x: *a}\nb: *a\n"),
        (
            "yaml",
            "a: &a [x,x,x,x,x,x,x,x,x]\n"
            + "".join(
                f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 9)}]\n"
                for n in range(9)
            ),
        ),
        ("yaml", "- " * 5000 + "x"),
        ("yaml", "[" * 5000),
        ("yaml", "? [a, b]\n: 1\n? {x: 1}\n: 2\n"),
        ("yaml", "a: !!python/object/apply:os.system ['x']\nb: !x 1\nc: 2001-01-01\n"),
        ("yaml", "a: 1\n--- \nb: 2\n"),
        ("yaml", "a: 0x\nb: 1_\nc: 190:20:30\nd: .inf\ne: 99999999999-99-99\n"),
        ("json", "[" * 5000),
        ("json", '{"a":' * 5000),
        ("json", "1" * 5000),
        ("json", '{"a": 1e999, "b": "\\ud800", "a": 2}'),
        ("toml", "a = " + "[" * 5000),
        ("toml", "a = 1\na = 2\na.b = 3\n[a]\nc = 1\n[[a]]\nd = 1\n"),
        ("toml", "[a]\n[a.b]\n[[a.b]]\nx = 1\n[a.b.c]\ny = 2\n"),
        ("toml", "a = " + "9" * 5000 + "\nb = inf\nc = nan\n"),
        ("toml", '"" = 1\n"".x = 2\n[""]\n'),
    ],
)
def test_hostile_texts_are_read_without_raising(form: str, text: str):
    document = parsed(form, text)
    for leaf in leaves(document.root)[:2000]:
        assert 0 <= leaf.start <= leaf.end <= len(text)
    script = f"import {form}\ncfg = {form}.load(open('a.{form}'))\nx.backward()\nopt.step()\n"
    found = read(MappingSources({"t.py": script, f"a.{form}": text}), Launch(script="t.py"))
    assert Reading.model_validate_json(found.model_dump_json()) == found


mutations = st.lists(
    st.tuples(
        st.sampled_from(["cut", "delete", "insert", "drop_line"]),
        st.floats(0, 1),
        st.integers(1, 30),
        st.text("()[]{}'\"\\:=,.-&*!|>? \n\t#abe012é\0\r\ud800\ufeff\x85\u2028", max_size=5),
    ),
    min_size=1,
    max_size=4,
)


def mutated(text: str, steps: list[tuple[str, float, int, str]]) -> str:
    for kind, where, length, insert in steps:
        at = round(where * len(text))
        match kind:
            case "cut":
                text = text[:at]
            case "delete":
                text = text[:at] + text[at + length :]
            case "insert":
                text = text[:at] + insert + text[at:]
            case _:
                lines = text.split("\n")
                del lines[min(len(lines) - 1, round(where * len(lines)))]
                text = "\n".join(lines)
    return text


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(TEXTS)), mutations)
def test_no_mutation_makes_a_document_raise(form: str, steps: list[tuple[str, float, int, str]]):
    text = mutated(TEXTS[form], steps)
    document = parsed(form, text)
    for leaf in leaves(document.root):
        assert 0 <= leaf.start <= leaf.end <= len(text)
        place = document.place(leaf)
        assert (place.line, place.column) <= (place.end_line, place.end_column)
    for line in document.broken:
        assert document.line_place(line).line == line


LINES = [n for n, line in enumerate(YAML.splitlines()) if line.startswith("  ") and ": " in line]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(LINES[:1] + LINES[4:8]), st.sampled_from(["[", '"', "{", "", "*x", "!", "- a"])
)
def test_a_half_typed_value_of_yaml_keeps_every_other_value(line: int, typed: str):
    lines = YAML.splitlines()
    key = lines[line].split(":")[0]
    lines[line] = f"{key}: {typed}"
    whole, broken = plain(parsed("yaml", YAML).root), plain(parsed("yaml", "\n".join(lines)).root)
    assert isinstance(whole, dict)
    assert isinstance(broken, dict)
    for section in ("run", "model", "train"):
        for name, value in whole[section].items():
            if name != key.strip():
                assert broken[section][name] == value
