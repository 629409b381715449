"""The sync recipe: the same printed value to the last bit, read once a step."""

import sys

import pytest
import torch
from trained import printed
from training_spellings import FLAT, JOBS, LOSS_IN_MODEL, PLAIN

from infrarsi.launch import Launch
from infrarsi.patches import Declined, Rewritten
from infrarsi.patches.recipes.drop_micro_sync import DropMicroSync
from infrarsi.reading.sources import MappingSources

SYNCING = [name for name in JOBS if name != "one_line"]


def outcome_of(texts: dict[str, str]) -> Rewritten | Declined:
    return DropMicroSync().rewrite(MappingSources(texts), Launch(script="train.py"))


def rewrite(texts: dict[str, str]) -> dict[str, str]:
    outcome = outcome_of(texts)
    assert isinstance(outcome, Rewritten), outcome
    return {**texts, **outcome.texts}


@pytest.mark.parametrize("name", SYNCING)
def test_the_job_prints_exactly_the_same(name: str):
    assert printed(rewrite(JOBS[name])) == printed(JOBS[name])


@pytest.mark.parametrize("name", SYNCING)
def test_the_host_reads_once_a_step(name: str, monkeypatch: pytest.MonkeyPatch):
    reads: list[str] = []
    for method in ("item", "tolist", "__float__"):
        real = getattr(torch.Tensor, method)

        def read(self: torch.Tensor, real=real, method: str = method):
            if sys._getframe(1).f_code.co_filename == "train.py":
                reads.append(method)
            return real(self)

        monkeypatch.setattr(torch.Tensor, method, read)
    n_steps = len(printed(rewrite(JOBS[name])))
    assert len(reads) == n_steps
    reads.clear()
    printed(JOBS[name])
    assert len(reads) > n_steps


@pytest.mark.parametrize("name", SYNCING)
def test_a_second_application_declines(name: str):
    assert isinstance(outcome_of(rewrite(JOBS[name])), Declined)


def test_the_value_is_read_before_the_clock_and_comments_stay():
    after = rewrite(PLAIN)["train.py"]
    assert (
        """\
            total += loss.detach().double()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total = float(total)
        seconds = time.perf_counter() - began
"""
        in after
    )
    assert "# forward\n" in after
    assert "MICRO_BATCH = 2  # rows\n" in after


def test_a_flat_loop_reads_where_it_steps():
    assert """\
        optimizer.zero_grad()
        running = float(running)
        print(i, running)
""" in rewrite(FLAT)["train.py"]


_READ = "            total += loss.item()\n"


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        (_READ, _READ + "            if total > 9:\n                break\n", "looked at inside"),
        (_READ, _READ + "            print(total)\n", "looked at inside"),
        (_READ, "            if loss.item() > 9:\n                break\n", "No loss is read"),
        (_READ, "", "No loss is read"),
        (_READ, "            total += round(loss.item(), 3)\n", "No loss is read"),
        (_READ, "            total += float(len(x))\n", "No loss is read"),
        (_READ, "            rows.append(loss.item())\n", "over several steps"),
        (_READ, _READ + "            optimizer.step()\n", "a whole step"),
        (
            "        total = 0.0\n",
            "        total = torch.zeros(1).sum()\n        total.sign()\n",
            "more than",
        ),
        ("print(step, total)", "print(step, (lambda: total)())", "more than"),
        ("total = 0.0", "total = (", "does not parse"),
    ],
)
def test_it_declines_with_the_reason(old: str, new: str, word: str):
    text = PLAIN["train.py"]
    assert old in text
    outcome = outcome_of({"train.py": text.replace(old, new, 1)})
    assert isinstance(outcome, Declined), outcome.texts["train.py"]
    assert word in outcome.reason


def test_a_list_over_all_steps_is_left_alone():
    text = (
        LOSS_IN_MODEL["train.py"].replace("    losses = []\n", "").replace("losses_seen", "losses")
    )
    outcome = outcome_of({**LOSS_IN_MODEL, "train.py": text})
    assert isinstance(outcome, Declined)
    assert "several steps" in outcome.reason


def test_no_backward_declines():
    outcome = outcome_of({"train.py": "print(1)\n"})
    assert isinstance(outcome, Declined)
