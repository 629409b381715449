"""What docs/search.md shows is run as it stands there."""

import itertools
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from infrarsi.search import Searcher
from infrarsi.search.outcomes import Status
from infrarsi.search.searcher import PARTS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/search.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, flags=re.M | re.S)


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    """Every Python block run in its order, as a reader would, in one module."""
    namespace: dict[str, Any] = {}
    for block in blocks("python"):
        exec(compile(block, "docs/search.md", "exec"), namespace)
    return namespace


def test_every_block_is_run_by_a_test() -> None:
    assert len(re.findall(r"^```\w", TEXT, flags=re.M)) == len(blocks("python") + blocks("json"))
    assert len(blocks("python")) >= 5


def test_the_example_ends_with_an_allowed_setting_near_the_best_there_is(
    shown: dict[str, Any],
) -> None:
    knobs = shown["space"]["knobs"]
    choices = [knob.get("choices", [False, True]) for knob in knobs.values()]
    every = [dict(zip(knobs, values, strict=True)) for values in itertools.product(*choices)]
    outcomes = [shown["evaluate"](s) for s in every if shown["valid"](s) is None]
    assert {o["status"] for o in outcomes} == {"ok", "oom", "compile_error"}
    fastest = min(o["step_time_s"] for o in outcomes if o["status"] == "ok")
    assert shown["valid"](shown["best"]) is None
    assert shown["evaluate"](shown["best"])["step_time_s"] < 1.03 * fastest


def test_what_the_example_prints_is_what_the_job_gives(shown: dict[str, Any]) -> None:
    told = shown["evaluate"](shown["best"])
    assert shown["expected"]["step_time_s"]["value"] == pytest.approx(told["step_time_s"], rel=0.03)
    assert shown["expected"]["p_fit"] > 0.5
    assert set(shown["kept"]) == {"release notes", "common practice"}
    assert shown["saved_gib"] > 0


def test_the_lines_of_json_are_answered_by_a_real_process() -> None:
    (block,) = blocks("json")
    ran = subprocess.run(
        [sys.executable, "-m", "infrarsi.search"],
        input=block,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [answer["ok"] for answer in answers] == [True] * len(block.splitlines())
    assert answers[1]["result"] == {"a": False, "b": False}


def test_every_public_method_status_and_part_is_named() -> None:
    methods = [n for n in vars(Searcher) if not n.startswith("_")]
    missing = [n for n in methods if f"`{n}(" not in TEXT]
    missing += [n for n in (*get_args(Status), *PARTS) if f"`{n}`" not in TEXT]
    assert missing == []


def test_files_and_pages_it_names_exist() -> None:
    files = re.findall(r"`([\w.-]+/[\w./-]*\.\w+)`", TEXT)
    pages = re.findall(r"\]\(([\w.-]+\.md)", TEXT)
    assert len(files) > 10
    assert [f for f in files if not (ROOT / f).exists()] == []
    assert [p for p in pages if not (ROOT / "docs" / p).exists()] == []


def test_links_to_headings_lead_to_one() -> None:
    for page, anchor in re.findall(r"\]\(([\w.-]*)#([\w-]+)\)", TEXT):
        text = (ROOT / "docs" / page).read_text() if page else TEXT
        heads = [re.sub(r"[^\w -]", "", h).lower() for h in re.findall(r"^#+ (.*)$", text, re.M)]
        assert anchor in [h.replace(" ", "-") for h in heads], anchor


@pytest.mark.parametrize("folder", ["search", "models"])
def test_the_map_names_every_module_of_search_and_models_and_no_other(folder: str) -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    (row,) = re.findall(rf"^\| `core/infrarsi/{folder}/` \| (.*) \|$", text, re.M)
    named = set(re.findall(r"`([a-z_]+)`", row)) - {"ask", "tell"}
    files = (ROOT / "core/infrarsi" / folder).glob("[a-z]*.py")
    assert named == {path.stem for path in files}
