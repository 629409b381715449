"""The report: everything a campaign found, in the shape of `infrarsi report --json`."""

from collections.abc import Mapping
from typing import Literal

from infrarsi.contract.contract import TaskContract
from infrarsi.edits import Edit
from infrarsi.frozen import Frozen, Scalar
from infrarsi.launch import render_launch
from infrarsi.report.scoring import Scores, is_within, score
from infrarsi.trial import Outcome, ShortRun, Trial, TurnedAway
from infrarsi.wire.results import (
    AnchorRun,
    Calibration,
    Cost,
    Finalist,
    Price,
    Promotion,
    PromotionPart,
    Reliability,
    RunResult,
    Speedup,
)


class ReportedTrial(Frozen):
    """One trial. `setting` has only what differs from the user's start.

    `ratio` is baseline over candidate step time as read during the search and anchored to the
    baseline's speed then: it chose finalists and is never a claim. Predictions were made before
    the trial: value, low, high in s or bytes; `within` is whether the step time came as predicted.
    """

    number: int
    origin: str
    setting: dict[str, Scalar]
    outcome: Outcome | None
    ratio: float | None
    wall_s: float
    predicted_step_time_s: tuple[float, float, float] | None = None
    predicted_peak_mem_bytes: tuple[float, float, float] | None = None
    predicted_p_fit: float | None = None
    predicted_p_valid: float | None = None
    within: bool | None = None
    anchored_step_time_s: float | None = None
    reading_log_sd: float | None = None
    short_runs: tuple[ShortRun, ...] = ()


class ReportedTurnedAway(Frozen):
    """A candidate that failed a short run and cost no trial.

    `setting` and `blamed` have only what differs from the user's start.
    """

    before_trial: int
    setting: dict[str, Scalar]
    outcome: Outcome
    blamed: dict[str, Scalar]
    took_s: float


class ChangedLines(Frozen):
    """Lines of a file before and after. `line` is the first, 1-based in the measured source."""

    file: str
    line: int | None
    before: str
    after: str


class ReportedPromotion(Frozen):
    """The confirmed change. `speedup` comes from confirmation pairs only.

    `launch_before` and `launch_after` are launch lines; equal where the launch stays.
    """

    trial: int | None
    speedup: Speedup
    n_units: int
    mfu_before_frac: float
    mfu_after_frac: float
    tokens_per_s_before: float
    tokens_per_s_after: float
    peak_mem_bytes_before: int
    peak_mem_bytes_after: int
    parts: tuple[PromotionPart, ...]
    changes: tuple[ChangedLines, ...]
    launch_before: str
    launch_after: str
    checks: tuple[str, ...]


class Report(Frozen):
    """A finished campaign."""

    version: Literal[1] = 1
    campaign: str
    job: str
    contract: TaskContract
    contract_digest: str
    baseline_commit: str
    calibration: Calibration
    trials: tuple[ReportedTrial, ...]
    finalists: tuple[Finalist, ...]
    promoted: ReportedPromotion | None
    cost: Cost
    agent: str = "none"
    turned_away: tuple[ReportedTurnedAway, ...] = ()
    anchors: tuple[AnchorRun, ...] = ()
    prices: tuple[Price, ...] = ()
    reliability: tuple[Reliability, ...] = ()
    predictions: Scores = Scores()


def build_report(result: RunResult, texts: Mapping[str, str]) -> Report:
    """The report of a result.

    Args:
        result: what the runner sent.
        texts: the measured source of the changed files, by path; a file that is missing here has
            its changed lines shown without their number.
    """
    contract = result.lock.contract
    promoted = None if result.promoted is None else _promotion(result, result.promoted, texts)
    return Report(
        campaign=result.campaign,
        job=contract.job,
        contract=contract,
        contract_digest=result.lock.digest,
        baseline_commit=result.lock.baseline_commit,
        calibration=result.calibration,
        trials=tuple(_trial(result, trial) for trial in result.trials),
        finalists=result.finalists,
        promoted=promoted,
        cost=result.cost,
        agent=result.agent,
        turned_away=tuple(_turned_away(result, away) for away in result.turned_away),
        anchors=result.anchors,
        prices=result.prices,
        reliability=result.reliability,
        predictions=score(result.trials, result.turned_away),
    )


def _trial(result: RunResult, trial: Trial) -> ReportedTrial:
    step_s = trial.step_time_s
    return ReportedTrial(
        number=trial.number,
        origin=trial.origin,
        setting=trial.candidate.changed(result.space),
        outcome=trial.outcome,
        ratio=None if step_s is None else result.calibration.step_time_s.value / step_s,
        wall_s=trial.wall_s,
        within=is_within(trial, step_s),
        anchored_step_time_s=trial.anchored_step_time_s,
        reading_log_sd=trial.reading_log_sd,
        short_runs=trial.short_runs,
        predicted_step_time_s=trial.predicted_step_time_s,
        predicted_peak_mem_bytes=trial.predicted_peak_mem_bytes,
        predicted_p_fit=trial.predicted_p_fit,
        predicted_p_valid=trial.predicted_p_valid,
    )


def _turned_away(result: RunResult, away: TurnedAway) -> ReportedTurnedAway:
    return ReportedTurnedAway(
        before_trial=away.before_trial,
        setting=away.candidate.changed(result.space),
        outcome=away.outcome,
        blamed=away.blamed,
        took_s=sum(run.wall_s for run in away.short_runs),
    )


def _promotion(
    result: RunResult, promotion: Promotion, texts: Mapping[str, str]
) -> ReportedPromotion:
    accepted = (f.trial for f in result.finalists if f.verdict == "accepted")
    return ReportedPromotion(
        trial=next(accepted, None),
        speedup=promotion.speedup,
        n_units=promotion.n_units,
        mfu_before_frac=promotion.mfu_before_frac,
        mfu_after_frac=promotion.mfu_after_frac,
        tokens_per_s_before=promotion.tokens_per_s_before,
        tokens_per_s_after=promotion.tokens_per_s_after,
        peak_mem_bytes_before=promotion.peak_mem_bytes_before,
        peak_mem_bytes_after=promotion.peak_mem_bytes_after,
        parts=promotion.parts,
        changes=tuple(_changed(edit, texts.get(edit.file)) for edit in promotion.edits),
        launch_before=render_launch(result.lock.contract.launch),
        launch_after=render_launch(promotion.launch),
        checks=promotion.checks,
    )


def _changed(edit: Edit, text: str | None) -> ChangedLines:
    if text is None or text[edit.start : edit.end] != edit.old:
        return ChangedLines(file=edit.file, line=None, before=edit.old, after=edit.new)
    first = text.rfind("\n", 0, edit.start) + 1
    head = text[first : edit.start] + edit.new
    ends_here = text[: edit.end].endswith("\n") and (not head or head.endswith("\n"))
    end = edit.end if ends_here else _line_end(text, edit.end)
    return ChangedLines(
        file=edit.file,
        line=text.count("\n", 0, first) + 1,
        before=text[first:end],
        after=head + text[edit.end : end],
    )


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end + 1
