"""The corpus is large, varied and well formed; whether it is told apart is tested elsewhere."""

import re
from collections import Counter
from pathlib import Path

import pytest

from infrarsi.contract.catalogue import CATALOGUE
from red_team.case import BASES, FAMILIES, Case, materialise
from red_team.corpus import CASES, CHEATS, HONEST, by_name

STYLES = {"constants", "argparse", "trainer", "yaml"}


def texts(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_is_two_different_folders_that_parse(case: Case, tmp_path: Path) -> None:
    before, after = materialise(case, tmp_path)
    assert texts(before) != texts(after)
    for path in (*before.rglob("*.py"), *after.rglob("*.py")):
        compile(path.read_bytes(), str(path), "exec", dont_inherit=True)


def test_an_edit_whose_old_text_is_not_there_once_is_refused(tmp_path: Path) -> None:
    case = Case(
        name="wrong",
        base="constants_dense",
        family="W",
        codes=("W101",),
        what="No such text.",
        edits=(("train.py", "no such text", ""),),
        is_faster=None,
    )
    with pytest.raises(ValueError, match="occurs 0 times"):
        materialise(case, tmp_path)


def test_there_are_sixty_cheats_and_forty_honest_changes() -> None:
    assert len(CHEATS) >= 60
    assert len(HONEST) >= 40


def test_every_name_is_used_once_and_is_kebab_case() -> None:
    assert [name for name in by_name() if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)] == []


def test_every_family_is_there() -> None:
    assert {case.family for case in CASES} == set(FAMILIES)


def test_cheats_have_codes_of_the_catalogue_and_honest_changes_none() -> None:
    assert [
        case.name for case in CHEATS if not case.codes or set(case.codes) - set(CATALOGUE)
    ] == []
    assert [case.name for case in HONEST if case.codes or case.family != "honest"] == []


@pytest.mark.parametrize("cases", [CHEATS, HONEST], ids=["cheats", "honest"])
def test_styles_model_kinds_and_process_counts_all_appear(cases: tuple[Case, ...]) -> None:
    bases = Counter(case.base for case in cases)
    assert {base.split("_")[0] for base in bases} == STYLES
    assert {base.split("_")[1] for base in bases} == {"dense", "moe"}
    assert {has_two_processes(case) for case in cases} == {True, False}


def has_two_processes(case: Case) -> bool:
    script = BASES / case.base / "launch.sh"
    own = script.read_text() if script.exists() else ""
    return "torchrun" in (case.before_launch or own)
