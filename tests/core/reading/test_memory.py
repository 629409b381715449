"""A memory of earlier states changes how long reading takes, and nothing else."""

import ast
import random
import re
from collections.abc import Iterator

import pytest
from rule_pairs import lock_of

from infrarsi.launch import parse_launch
from infrarsi.reading import MappingSources, Memory, follow
from infrarsi.reading.memory import Trace
from infrarsi.reading.syntax import SourceFile
from infrarsi.reading.walking import children
from infrarsi.rules import check_change

LAUNCH = parse_launch("python train.py")
TRAIN = """
import argparse
import torch
from sizes import PARTS, WIDTH, batch
from model import Net

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=3e-4)
parser.add_argument("--accum", type=int, default=PARTS)
args = parser.parse_args()
torch.manual_seed(1)
data = torch.randn(64, 16, WIDTH)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
for step in range(20):
    for micro in range(args.accum):
        start = micro * batch(2)
        x = data[start : start + batch(2)]
        loss = (model(x) - x).pow(2).mean() / args.accum
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item())
"""
MODEL = """
import torch.nn as nn
from layers import Block
from sizes import DEPTH, WIDTH


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(WIDTH) for _ in range(DEPTH)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
"""
LAYERS = """
import torch.nn as nn


class Base(nn.Module):
    def __init__(self, width, rate=0.1):
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.drop = nn.Dropout(rate)


class Block(Base):
    def forward(self, x):
        return x + self.drop(self.down(self.up(x).relu()))
"""
SIZES = """
WIDTH = 32
DEPTH = 2
PARTS = 4


def batch(n):
    return n * 2
"""
SLICED = """
import torch
from model import Net

PARTS = 4
ROWS = 2
data = torch.randint(0, 50, (64, 16))
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
for step in range(20):
    for micro in range(PARTS):
        rows = torch.randint(0, 64, (ROWS, 16))
        loss = model(rows).mean() / PARTS
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
SMALL = """
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(64, 8)

    def forward(self, x):
        return self.embed(x)
"""
FILES = {"train.py": TRAIN, "model.py": MODEL, "layers.py": LAYERS, "sizes.py": SIZES}
TYPED = ("a", "(", ".", " = 1", "\n", '"', "  # said", ", 2)")


def _edited(text: str, rng: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    k = rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            lines[k] = re.sub(r"(?<![\w.])\d+(?![\w.])", str(rng.randrange(1, 9)), lines[k])
        case 1:
            lines[k] = lines[k].rstrip("\n") + rng.choice(TYPED) + "\n"
        case 2:
            del lines[k]
        case _:
            lines.insert(k, rng.choice(lines))
    return "".join(lines)


def _states(seed: int, n: int) -> Iterator[dict[str, str]]:
    """Edits of one file each, some on top of others that parse."""
    rng = random.Random(seed)
    files = dict(FILES)
    for number in range(n):
        name = rng.choice(list(files))
        before = dict(files) if number % 6 else dict(FILES)
        files = {**before, name: _edited(before[name], rng) or before[name]}
        yield files
        if rng.random() < 0.5 or not _parses(files[name]):
            files = before


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


@pytest.mark.parametrize("seed", range(2))
def test_reading_with_a_memory_gives_what_reading_afresh_gives(seed: int) -> None:
    others = {name: text for name, text in FILES.items() if name != "train.py"}
    lock = lock_of(TRAIN, "python train.py", others)
    was = follow(MappingSources(FILES), LAUNCH)
    memory = Memory()
    n_found = 0
    for files in _states(seed, 36):
        afresh = follow(MappingSources(files), LAUNCH)
        remembered = follow(MappingSources(files), LAUNCH, memory=memory)
        assert remembered.reading == afresh.reading, files
        found = check_change(lock, afresh, was)
        assert check_change(lock, remembered, was) == found, files
        n_found += bool(found)
    assert n_found > 1


def test_a_value_is_read_again_where_the_file_it_comes_from_changed() -> None:
    memory = Memory()
    before = follow(MappingSources(FILES), LAUNCH, memory=memory).reading
    changed = {**FILES, "sizes.py": SIZES.replace("PARTS = 4", "PARTS = 8")}
    after = follow(MappingSources(changed), LAUNCH, memory=memory).reading
    facts = [reading.fact("accumulation") for reading in (before, after)]
    assert [fact.value for fact in facts if fact is not None] == [4, 8]


def test_a_module_that_appears_is_followed() -> None:
    memory = Memory()
    without = {name: text for name, text in FILES.items() if name != "sizes.py"}
    assert "sizes.py" not in follow(MappingSources(without), LAUNCH, memory=memory).reading.files
    reading = follow(MappingSources(FILES), LAUNCH, memory=memory).reading
    assert reading == follow(MappingSources(FILES), LAUNCH).reading


def test_what_did_not_change_is_not_evaluated_again() -> None:
    memory = Memory()
    first = follow(MappingSources(FILES), LAUNCH, memory=memory)
    again = follow(MappingSources({**FILES, "layers.py": LAYERS + "\n"}), LAUNCH, memory=memory)
    assert again.work is first.work


def test_what_is_undone_again_and_again_is_not_evaluated_again() -> None:
    memory = Memory()
    first = follow(MappingSources(FILES), LAUNCH, memory=memory)
    for width in (8, 16, 64, 128):
        changed = {**FILES, "sizes.py": SIZES.replace("WIDTH = 32", f"WIDTH = {width}")}
        follow(MappingSources(changed), LAUNCH, memory=memory)
        undone = follow(MappingSources(FILES), LAUNCH, memory=memory)
        assert undone.work is first.work, width


def test_a_knob_is_tried_again_where_a_literal_it_depends_on_changed() -> None:
    memory = Memory()
    choices: list[tuple[object, ...]] = []
    for parts in (4, 8):
        files = {"train.py": SLICED.replace("PARTS = 4", f"PARTS = {parts}"), "model.py": SMALL}
        remembered = follow(MappingSources(files), LAUNCH, memory=memory).reading
        assert remembered == follow(MappingSources(files), LAUNCH).reading
        choices += [knob.choices for knob in remembered.knobs if knob.name == "micro_batch"]
    assert choices == [(1, 2, 4, 8), (1, 2, 4, 8, 16)]


def test_answers_that_never_hold_again_are_let_go() -> None:
    memory = Memory()
    for number in range(6):
        trace = Trace(memory)
        trace.subjects["text"] = number
        trace.ask("home", number, lambda trace=trace: trace.look("text", str))
    memory.sweep()
    assert set(memory.home("home")) == {3, 4, 5}


@pytest.mark.parametrize("seed", range(2))
def test_statements_taken_over_make_the_tree_that_parsing_afresh_makes(seed: int) -> None:
    before = SourceFile("train.py", TRAIN)
    n_shared = 0
    for files in _states(seed, 60):
        after = SourceFile("train.py", files["train.py"], before)
        afresh = SourceFile("train.py", files["train.py"])
        trees = [ast.dump(source.tree, include_attributes=True) for source in (after, afresh)]
        assert trees[0] == trees[1]
        assert [type(node) for node in after.nodes] == [type(node) for node in afresh.nodes]
        assert all(child in children(after.parents[child]) for child in after.nodes[1:])
        n_shared += bool(set(after.nodes) & set(before.nodes))
        before = after
    assert n_shared > 30


def test_a_memory_in_use_is_not_shared() -> None:
    memory = Memory()
    with memory.taken() as first, memory.taken() as second:
        assert (first, second) == (memory, None)
    with memory.taken() as free:
        assert free is memory
