"""`infrarsi doctor`, `run` and `verify`: what needs the runner and takes minutes."""

import os
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from infrarsi.errors import UsageError
from infrarsi.report.findings import as_text
from infrarsi.report.markdown import describe_resolvable, describe_speedup
from infrarsi.report.model import Report
from infrarsi.units import format_bytes, format_frac, format_seconds
from infrarsi.wire.messages import Budget, CampaignView
from infrarsi_server.cli import options
from infrarsi_server.cli.answers import StopAnswer
from infrarsi_server.cli.output import say, write_json, write_lines
from infrarsi_server.cli.watching import (
    current_state,
    new_campaign_id,
    run_campaign,
    watch_campaign,
)
from infrarsi_server.operations.campaigns import Wish
from infrarsi_server.operations.contracting import open_sides
from infrarsi_server.operations.doctor import DoctorReport, doctor_report
from infrarsi_server.operations.project import open_project
from infrarsi_server.operations.report import report_of
from infrarsi_server.operations.verify import (
    Prepared,
    VerifyReport,
    prepare_verify,
    refused_report,
    start_verify,
    verify_report,
)
from infrarsi_server.runner_process import need_runner


class Agent(StrEnum):
    """Who proposes beside the recipes."""

    NONE = "none"
    ANTHROPIC = "anthropic"


Id = Annotated[str | None, typer.Option("--id", help="The campaign's id; by default a new one.")]
Rejoin = Annotated[
    str | None, typer.Option("--rejoin", metavar="ID", help="Watch a campaign that is there.")
]


def add_to(app: typer.Typer) -> None:
    """Add the three commands."""
    app.command("doctor")(doctor)
    app.command("run")(run)
    app.command("verify")(verify)


def doctor(
    folder: options.Folder = None,
    job: options.Job = None,
    rejoin: Rejoin = None,
    campaign_id: Id = None,
    as_json: options.Json = False,
) -> int:
    """Measure the untouched baseline: step time, phases, noise, memory."""
    project = open_project(folder or Path.cwd())
    if rejoin is not None:
        view = _rejoin(rejoin, "doctor")
    else:
        wish = Wish(id=campaign_id or new_campaign_id(), kind="doctor", job=job)
        view = run_campaign(project, wish)
    report = doctor_report(view)
    if as_json:
        write_json(report)
    else:
        write_lines(_doctor_lines(report))
    return 0


def run(
    goal: Annotated[str | None, typer.Argument(help="What to aim at; `speed` so far.")] = None,
    job: options.Job = None,
    trials: Annotated[int, typer.Option("--trials", min=1, help="At most this many.")] = 12,
    minutes: Annotated[float, typer.Option("--minutes", min=0.1, help="At most this long.")] = 30.0,
    agent: Annotated[Agent, typer.Option("--agent", help="Who proposes.")] = Agent.NONE,
    seed: Annotated[int, typer.Option("--seed", help="Of the search.")] = 0,
    campaign_id: Id = None,
    stop: Annotated[
        str | None, typer.Option("--stop", metavar="ID", help="Stop a campaign.")
    ] = None,
    rejoin: Rejoin = None,
    folder: Annotated[Path | None, typer.Option("--dir", help="The workspace.")] = None,
    as_json: options.Json = False,
) -> int:
    """Search for a faster setting and confirm it; the contract is kept."""
    _refuse_unbuilt(goal, agent)
    project = open_project(folder or Path.cwd())
    if stop is not None:
        return _stop(stop, as_json=as_json)
    if rejoin is not None:
        view = _rejoin(rejoin, "run")
    else:
        wish = Wish(
            id=campaign_id or new_campaign_id(),
            kind="run",
            job=job,
            budget=Budget(n_trials=trials, minutes=minutes),
            seed=seed,
        )
        view = run_campaign(project, wish)
    report = report_of(project, view)
    if as_json:
        write_json(report)
    else:
        write_lines(_run_lines(report))
    return _run_code(report)


def verify(
    before: options.Before = None,
    after: options.After = None,
    launch: options.Launch = None,
    minutes: Annotated[
        float | None, typer.Option("--minutes", min=0.1, help="The full protocol, at most so long.")
    ] = None,
    python: Annotated[
        str | None, typer.Option("--python", help="The job's own interpreter.")
    ] = None,
    job: options.Job = None,
    rejoin: Rejoin = None,
    campaign_id: Id = None,
    as_json: options.Json = False,
) -> int:
    """Run two versions of a job and judge whether the second keeps the first one's contract."""
    if rejoin is not None:
        view = _rejoin(rejoin, "verify")
    elif before is None or after is None:
        raise UsageError("verify needs --before and --after.", "Name both folders.")
    else:
        sides = open_sides(before, after, launch, job)
        say(*sides.notes)
        refused = refused_report(sides)
        if refused is not None:
            return _answer_verify(refused, as_json=as_json)
        prepared = prepare_verify(sides, python, os.environ, Path.cwd())
        view = _run_verify(prepared, campaign_id or new_campaign_id(), minutes)
    return _answer_verify(verify_report(view), as_json=as_json)


def _answer_verify(report: VerifyReport, *, as_json: bool) -> int:
    if as_json:
        write_json(report)
    else:
        write_lines(_verify_lines(report))
    return 0 if report.verdict == "accepted" else 1


def _run_verify(prepared: Prepared, campaign: str, minutes: float | None) -> CampaignView:
    state = current_state()
    with need_runner(state) as runner:
        start_verify(prepared, campaign, minutes, state, runner)
        say(f"Campaign {campaign}")
        return watch_campaign(runner, campaign, "verify", state)


def _refuse_unbuilt(goal: str | None, agent: Agent) -> None:
    if agent is not Agent.NONE:
        raise UsageError(f"The agent `{agent}` is not built yet.", "Run with --agent none.")
    if goal not in (None, "speed"):
        raise UsageError(f"The goal `{goal}` is not known.", "Leave it out, or say `speed`.")


def _stop(campaign: str, *, as_json: bool) -> int:
    with need_runner(current_state()) as runner:
        view = runner.stop(campaign)
    if as_json:
        write_json(StopAnswer(campaign=view.id, state=view.state))
    else:
        say(_stop_text(view))
    return 0


def _stop_text(view: CampaignView) -> str:
    if view.state in ("finished", "failed"):
        return f"Campaign {view.id} has {view.state} already."
    return f"Campaign {view.id} is asked to stop. A stopped campaign has no report."


def _rejoin(campaign: str, command: str) -> CampaignView:
    state = current_state()
    with need_runner(state) as runner:
        view = runner.campaign(campaign)
        if view.kind != command:
            raise UsageError(
                f"Campaign {campaign} is a {view.kind}.",
                f"Run: infrarsi {view.kind} --rejoin {campaign}",
            )
        return watch_campaign(runner, campaign, command, state)


def _run_code(report: Report) -> int:
    """0 where something was promoted or there was nothing to gain, 1 where it stayed open."""
    open_ends = {"rejected", "inconclusive", "not_resolved"}
    is_open = any(finalist.verdict in open_ends for finalist in report.finalists)
    return 1 if report.promoted is None and is_open else 0


def _run_lines(report: Report) -> Iterator[str]:
    promoted = report.promoted
    if promoted is None:
        yield f"{report.job}: nothing was promoted in {report.cost.n_trials} trials."
        yield "See why: infrarsi report"
        return
    yield f"{report.job}: {describe_speedup(promoted.speedup)}, the contract kept."
    before, after = promoted.mfu_before_frac, promoted.mfu_after_frac
    yield f"  MFU {format_frac(before)} -> {format_frac(after)}"
    yield from (f"  {part.knob} = {part.value}: {part.why}" for part in promoted.parts)
    yield "Read it: infrarsi report. Commit it: infrarsi apply"


def _doctor_lines(report: DoctorReport) -> Iterator[str]:
    measured, profile = report.calibration, report.profile
    step = measured.step_time_s
    yield (
        f"step {format_seconds(step.value)} "
        f"[{format_seconds(step.low)}, {format_seconds(step.high)}], "
        f"{measured.tokens_per_step / step.value:,.0f} tokens/s, "
        f"MFU {format_frac(measured.mfu_frac)}"
    )
    shares = {
        "data": profile.data_s,
        "forward": profile.forward_s,
        "backward": profile.backward_s,
        "communication": profile.communication_s,
        "optimizer": profile.optimizer_s,
        "other": profile.other_s,
    }
    yield ", ".join(
        f"{name} {format_frac(seconds / profile.step_time_s)}" for name, seconds in shares.items()
    )
    yield f"peak memory {', '.join(format_bytes(peak) for peak in measured.peak_mem_bytes)}"
    yield from map(describe_resolvable, measured.resolvable)
    for line in profile.lines[:10]:
        yield f"  {line.file}:{line.line}  {format_seconds(line.seconds_per_step)}  {line.phase}"
    yield from as_text(report.hints).splitlines()


def _verify_lines(report: VerifyReport) -> Iterator[str]:
    yield report.verdict
    yield from as_text(report.violations).splitlines()
    yield from (f"missing: {missing}" for missing in report.missing)
    if report.speedup is not None:
        yield f"speed-up {describe_speedup(report.speedup)}"
