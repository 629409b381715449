"""The judge alone on a few cases of the corpus, on real processes."""

from pathlib import Path

import pytest

from infrarsi_server.operations.contracting import open_sides
from red_team.case import materialise
from red_team.corpus import by_name
from red_team.live import judged_live

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

CHEATS = (
    "torch-is-shadowed",
    "evidence-rewritten-by-a-thread",
    "every-fourth-backward-does-nothing",
    "gradients-of-the-previous-step-applied",
    "cheats-after-a-stopped-turn",
)
HONEST = ("stacked-experts",)


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_is_rejected_by_its_runs_alone(name: str, tmp_path: Path) -> None:
    result, _ = judged_live(
        open_sides(*materialise(by_name()[name], tmp_path), None, None), tmp_path
    )
    assert result.verdict == "rejected", result


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_change_is_accepted_by_its_runs(name: str, tmp_path: Path) -> None:
    result, _ = judged_live(
        open_sides(*materialise(by_name()[name], tmp_path), None, None), tmp_path
    )
    assert result.verdict == "accepted", result
