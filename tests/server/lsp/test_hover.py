"""Hovers: the contract before any run, the runner's numbers after, and no runner started."""

import json
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from editor import Editor, in_thread, start_editor
from lsprotocol import types
from scripted_runner import answer, scripted_runner

from infrarsi.contract import LOCK_PATH, read_locks
from infrarsi.wire.messages import PROTOCOL, CampaignList, Health
from infrarsi.wire.results import Interval, KnobPrediction, PredictionTable
from infrarsi_server.operations.project import open_project

pytestmark = pytest.mark.asyncio(loop_scope="session")


def serving(state: Path, table: PredictionTable) -> AbstractAsyncContextManager[None]:
    state.mkdir(parents=True, exist_ok=True)
    socket = state / "s"
    answers = {
        "/v1/campaigns": CampaignList(campaigns=()),
        "/v1/health": Health(version="0", protocol=PROTOCOL, pid=1),
        f"/v1/predictions/{table.contract_digest}": table,
    }
    (state / "runner.json").write_text(json.dumps({"socket": str(socket)}))
    return in_thread(scripted_runner(socket, lambda _, target: answer(answers[target])))


def table_of(project: Path) -> PredictionTable:
    opened = open_project(project)
    lock = opened.lock("main")
    return PredictionTable(
        contract_digest=lock.digest,
        version=3,
        rows=tuple(
            KnobPrediction(
                knob="micro_batch",
                value=value,
                step_time_s=Interval(value=0.5, low=0.4, high=0.6),
                peak_mem_bytes=Interval(value=2.0**30, low=2.0**30, high=2.0**30),
                mfu_frac=0.25,
                p_fit=1.0,
                known="measured",
                n_trials=2,
            )
            for value in (4, 8)
        ),
    )


def has_runner(editor: Editor) -> bool:
    return Path(editor.environ["INFRARSI_STATE"]).exists()


def said(hover: types.Hover | None) -> str:
    assert hover is not None
    assert isinstance(hover.contents, types.MarkupContent)
    assert hover.contents.kind == types.MarkupKind.Markdown
    return hover.contents.value


async def test_before_any_run_a_hover_says_what_the_contract_holds(
    editor: Editor, project: Path
) -> None:
    train = project / "train.py"
    editor.open(train)
    text = said(await editor.hover(train, "MICRO_BATCH = 4"))
    assert "No run has been measured yet" in text
    assert "32 rows" in text
    digest = read_locks((project / LOCK_PATH).read_text())["main"].digest
    assert digest[:12] in text


async def test_name_and_value_are_both_the_knob_and_other_words_are_not(
    editor: Editor, project: Path
) -> None:
    train = project / "train.py"
    editor.open(train)
    on_value = await editor.hover(train, "MICRO_BATCH = 4", skip=len("MICRO_BATCH = "))
    assert said(on_value) == said(await editor.hover(train, "MICRO_BATCH = 4"))
    assert on_value is not None
    assert on_value.range is not None
    assert on_value.range.start.character == len("MICRO_BATCH = ")
    assert await editor.hover(train, "import torch") is None


async def test_a_running_runners_table_is_shown_and_kept_after_it_is_gone(
    project: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    train = project / "train.py"
    environ = {"INFRARSI_STATE": str(state)}
    async with (
        serving(state, table_of(project)),
        start_editor(tmp_path, environ=environ) as editor,
    ):
        editor.open(train)
        with_runner = said(await editor.hover(train, "MICRO_BATCH = 4"))
    async with start_editor(tmp_path, environ=environ) as editor:
        editor.open(train)
        without_runner = said(await editor.hover(train, "MICRO_BATCH = 4"))
    assert "| **4** | 500 ms (400 ms to 600 ms) | 25.0 % | 1.00 GiB | > 99 % |" in with_runner
    assert "measured, 2 trials" in with_runner
    assert without_runner == with_runner


async def test_a_hover_starts_no_runner(editor: Editor, project: Path) -> None:
    train = project / "train.py"
    editor.open(train)
    assert await editor.hover(train, "MICRO_BATCH = 4") is not None
    assert not has_runner(editor)


async def test_a_fact_that_is_no_knob_says_what_the_contract_holds(
    editor: Editor, project: Path
) -> None:
    train = project / "train.py"
    editor.open(train)
    editor.replace(train, "SEQ_LEN = 128", "SEQ_LEN = 64")
    text = said(await editor.hover(train, "64\n"))
    assert "read as 64" in text
    assert "The contract holds 128." in text
