"""An honest change leaves what a step works on as it was, or the reader says it cannot tell."""

from pathlib import Path

import pytest

from infrarsi.contract.contract import Fact
from infrarsi.reading import read
from infrarsi_server.operations.contracting import open_sides
from red_team.case import Case, materialise
from red_team.corpus import HONEST

WORKLOAD = ("global_batch", "seq_len", "world_size")
UNREAD = {"prefetch-thread", "prefetch-one-batch-in-loop", "update-inside-backward"}
"""Cases whose rows are fetched where the reader does not follow: in threads, or with no step."""


@pytest.mark.parametrize("case", HONEST, ids=lambda case: case.name)
def test_the_workload_read_of_an_honest_change_is_the_baselines(case: Case, tmp_path: Path) -> None:
    sides = open_sides(*materialise(case, tmp_path), None, None)
    was = {fact.name: fact for fact in sides.lock.contract.facts}
    now = {fact.name: fact for fact in read(sides.after, sides.after_launch).facts}
    known = [name for name in WORKLOAD if now[name].unknown is None]
    assert said(now, known) == said(was, known)
    assert said(was, WORKLOAD).count(None) == 0
    assert (len(known) < len(WORKLOAD)) == (case.name in UNREAD)


def said(facts: dict[str, Fact], names: list[str] | tuple[str, ...]) -> list[object]:
    """The facts' values by name, None for an unknown one."""
    return [facts[name].value if facts[name].unknown is None else None for name in names]
