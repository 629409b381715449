"""A trainer's base class sets its members; objects are made of the classes that derive from it."""

import pytest

from infrarsi.launch import Launch
from infrarsi.reading import MappingSources, read

BASE = """\
import torch
class Args:
    rows = 4
    lr = 1e-3
class Trainer:
    def __init__(self, args, accum=2):
        self.args = args
        self.accum = accum
        self.model = torch.nn.Linear(8, 8)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=args.lr)
    def loss(self, x):
        raise NotImplementedError
    def train(self):
        for step in range(7):
            for _ in range(self.accum):
                x = torch.randn(self.args.rows, 8)
                loss = self.loss(x)
                loss.backward()
            self.opt.step()
"""
LOSS = "    def loss(self, x):\n        return self.model(x).sum()\n"
INIT = "    def __init__(self, args):\n        super().__init__(args, accum=3)\n"


@pytest.mark.parametrize(
    ("heir", "start", "accumulation"),
    [
        (LOSS, "Mine(Args()).train()", 2),
        (LOSS, "Mine(Args(), accum=5).train()", 5),
        (INIT + LOSS, "Mine(Args()).train()", 3),
        (f"{LOSS}class Mine2(Mine):\n    pass\n", "trainer = Mine2(Args(), 6)\ntrainer.train()", 6),
    ],
)
def test_what_the_derived_class_is_made_with_reaches_the_base(
    heir: str, start: str, accumulation: int
):
    text = f"{BASE}class Mine(Trainer):\n{heir}{start}\n"
    found = read(MappingSources({"t.py": text}), Launch(script="t.py"))
    facts = [found.fact(name) for name in ("micro_batch", "accumulation", "lr", "updates")]
    assert [fact.value if fact else None for fact in facts] == [4, accumulation, 1e-3, 7]
    assert any(span.role == "forward" for span in found.roles)


@pytest.mark.parametrize(
    "text",
    [
        "class A(B): pass\nclass B(A): pass\nA().x.backward()\nB(1).opt.step()\n",
        "class A(A):\n    def __init__(self):\n        super().__init__()\nA().m()\n",
    ],
)
def test_classes_that_derive_from_themselves_do_not_end_the_reading(text: str):
    found = read(MappingSources({"t.py": text}), Launch(script="t.py"))
    assert found.files == ("t.py",)
    assert not any("nested too deeply" in problem.what for problem in found.problems)
