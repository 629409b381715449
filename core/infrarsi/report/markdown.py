"""The report as a Markdown page for people."""

from collections.abc import Iterable, Iterator

from infrarsi.contract.contract import Fact
from infrarsi.launch import render_launch
from infrarsi.report.learned import learned, turned_away
from infrarsi.report.model import ChangedLines, Report, ReportedPromotion, ReportedTrial
from infrarsi.report.outcomes import describe_outcome, describe_setting
from infrarsi.report.printable import cell, fenced, one_line
from infrarsi.trial import Crashed
from infrarsi.units import format_bytes, format_frac, format_ratio, format_seconds
from infrarsi.wire.results import Cost, Finalist, Resolvable, Speedup

_VERDICTS = {
    "accepted": "accepted and confirmed",
    "rejected": "rejected",
    "inconclusive": "inconclusive: not every check could be made",
    "not_resolved": "not resolved: the noise hides whether it is faster",
    "no_gain": "no gain",
}
_BEYOND_USE = 99.0
_REUSED_S = 1.0
"""A doctor that took less than this took over what an earlier one measured."""
"""Gains above 100x are not worth naming as resolvable."""


def as_markdown(report: Report) -> str:
    """The whole page, ending in one newline."""
    sections = (
        _headline(report),
        _contract(report),
        _calibration(report),
        _promotion(report.promoted) if report.promoted else [],
        _finalists(report.finalists),
        _trials(report.trials),
        turned_away(report.turned_away),
        learned(report),
        _failures(report.trials),
        _cost(report.cost),
    )
    return "\n\n".join("\n".join(section) for section in map(list, sections) if section) + "\n"


def describe_speedup(speedup: Speedup) -> str:
    """`1.93x [1.85, 2.02] 95%`."""
    low, high = f"{speedup.low:.2f}", f"{speedup.high:.2f}"
    return f"{format_ratio(speedup.ratio)} [{low}, {high}] {100 * speedup.level:.0f}%"


def describe_resolvable(gain: Resolvable) -> str:
    """`10 minutes of pairs can tell a gain of 4.1 % from noise`."""
    frac = gain.gain_frac
    if frac is None or frac > _BEYOND_USE:
        least = "no gain"
    else:
        least = f"a gain of {format_frac(frac) if frac < 1 else format_ratio(1 + frac)}"
    return f"{gain.minutes:g} minutes of pairs can tell {least} from noise"


def _headline(report: Report) -> Iterator[str]:
    yield f"# {report.job}: campaign {report.campaign}"
    yield ""
    promoted = report.promoted
    if promoted is None:
        yield "**Nothing was promoted.** No candidate was both accepted and confirmed as faster."
        return
    yield (
        f"**{describe_speedup(promoted.speedup)} faster**, confirmed on {promoted.n_units} fresh "
        f"units of process pairs with the contract kept. MFU "
        f"{format_frac(promoted.mfu_before_frac)} → {format_frac(promoted.mfu_after_frac)}."
    )


def _contract(report: Report) -> Iterator[str]:
    contract = report.contract
    yield "## Contract"
    yield ""
    yield f"- launch: `{one_line(render_launch(contract.launch), 1000)}`"
    yield f"- rows per step: {_known(contract.workload.global_batch_rows)}"
    yield f"- sequence length: {_known(contract.workload.seq_len_tokens)} tokens"
    yield f"- processes: {contract.workload.world_size}"
    yield f"- precision: {contract.precision}"
    if contract.memory_limit_bytes is not None:
        yield f"- memory limit of each process: {format_bytes(contract.memory_limit_bytes)}"
    yield f"- digest: `{report.contract_digest}`"
    yield f"- baseline commit: `{report.baseline_commit}`"
    if contract.facts:
        yield ""
        yield "| fact | value | from |"
        yield "|---|---|---|"
        yield from (_fact(fact) for fact in contract.facts)


def _fact(fact: Fact) -> str:
    value = f"unknown: {fact.unknown}" if fact.value is None else str(fact.value)
    return f"| {cell(fact.name)} | {cell(value)} | {cell(str(fact.place or ''))} |"


def _calibration(report: Report) -> Iterator[str]:
    measured = report.calibration
    step = measured.step_time_s
    yield "## Calibration"
    yield ""
    yield f"- machine: {one_line(measured.machine)}"
    yield f"- sandbox: {one_line(measured.sandbox_level)}"
    yield (
        f"- step time: {format_seconds(step.value)} "
        f"[{format_seconds(step.low)}, {format_seconds(step.high)}], "
        f"spread {format_frac(measured.step_cv_frac)}"
    )
    yield (
        f"- tokens per second: {measured.tokens_per_step / step.value:,.0f} "
        f"({measured.tokens_per_step} a step)"
    )
    yield (
        f"- MFU: {format_frac(measured.mfu_frac)} of {measured.roof.flops_per_s / 1e9:,.1f} "
        f"GFLOP/s ({one_line(measured.roof.dtype)}, {one_line(measured.roof.how)})"
    )
    convention = one_line(measured.flops_convention)
    yield f"- FLOPs per token: {measured.flops_per_token:.4g} ({convention})"
    peaks = ", ".join(format_bytes(peak) for peak in measured.peak_mem_bytes)
    yield f"- peak memory by rank: {peaks}"
    yield f"- noise of a process pair: {format_frac(measured.pair_log_sd)}"
    yield from (f"- {describe_resolvable(gain)}" for gain in measured.resolvable)


def _promotion(promoted: ReportedPromotion) -> Iterator[str]:
    yield "## Promotion"
    yield ""
    yield "| | before | after |"
    yield "|---|---|---|"
    yield (
        f"| tokens per second | {promoted.tokens_per_s_before:,.0f} "
        f"| {promoted.tokens_per_s_after:,.0f} |"
    )
    yield (
        f"| MFU | {format_frac(promoted.mfu_before_frac)} "
        f"| {format_frac(promoted.mfu_after_frac)} |"
    )
    yield (
        f"| peak memory | {format_bytes(promoted.peak_mem_bytes_before)} "
        f"| {format_bytes(promoted.peak_mem_bytes_after)} |"
    )
    yield ""
    origin = "" if promoted.trial is None else f" It was found in trial {promoted.trial}."
    yield f"Its parts, confirmed together and not one by one.{origin}"
    yield ""
    for part in promoted.parts:
        yield f"- **{describe_setting({part.knob: part.value})}**: {one_line(part.why, 1000)}"
    yield from _changes(promoted)
    if promoted.checks:
        yield ""
        yield "Checked:"
        yield ""
        yield from (f"- {one_line(check)}" for check in promoted.checks)


def _changes(promoted: ReportedPromotion) -> Iterator[str]:
    if promoted.launch_before != promoted.launch_after:
        yield ""
        yield "The launch line:"
        yield ""
        yield fenced(f"-{promoted.launch_before}\n+{promoted.launch_after}", "diff")
    for change in promoted.changes:
        at = change.file if change.line is None else f"{change.file}:{change.line}"
        yield ""
        yield f"`{one_line(at, 1000)}`"
        yield ""
        yield fenced(_diff(change), "diff")


def _diff(change: ChangedLines) -> str:
    removed = [f"-{line}" for line in change.before.splitlines()]
    return "\n".join([*removed, *(f"+{line}" for line in change.after.splitlines())])


def _finalists(finalists: Iterable[Finalist]) -> Iterator[str]:
    for position, finalist in enumerate(finalists):
        if position == 0:
            yield "## Confirmation"
            yield ""
        gain = "" if finalist.speedup is None else f", {describe_speedup(finalist.speedup)}"
        parts = f" without {', '.join(finalist.pruned)}" if finalist.pruned else ""
        yield f"- trial {finalist.trial}{parts}: {_VERDICTS[finalist.verdict]}{gain}"
        yield from (f"  - {v.code} {one_line(v.message, 500)}" for v in finalist.violations)
        yield from (f"  - missing: {one_line(missing, 500)}" for missing in finalist.missing)


def _trials(trials: Iterable[ReportedTrial]) -> Iterator[str]:
    yield "## Trials"
    yield ""
    yield "| # | change | outcome | predicted | search reading | took |"
    yield "|---|---|---|---|---|---|"
    for trial in trials:
        ratio = "" if trial.ratio is None else format_ratio(trial.ratio)
        if trial.short_runs:
            short_s = sum(run.wall_s for run in trial.short_runs)
            took = f"{format_seconds(trial.wall_s)} and {format_seconds(short_s)} before"
        else:
            took = format_seconds(trial.wall_s)
        yield (
            f"| {trial.number} | {cell(describe_setting(trial.setting))} "
            f"| {cell(describe_outcome(trial.outcome))} | {_predicted(trial)} | {ratio} "
            f"| {took} |"
        )
    yield ""
    yield (
        "Search readings are set against the baseline's speed at that time. They choose finalists; "
        "only the confirmation's interval is a claim."
    )


def _predicted(trial: ReportedTrial) -> str:
    if trial.predicted_step_time_s is None:
        return ""
    _, low, high = trial.predicted_step_time_s
    return f"{format_seconds(low)} to {format_seconds(high)}"


def _failures(trials: Iterable[ReportedTrial]) -> Iterator[str]:
    tails = [
        (trial.number, trial.outcome.log_tail)
        for trial in trials
        if isinstance(trial.outcome, Crashed) and trial.outcome.log_tail
    ]
    for position, (number, tail) in enumerate(tails):
        yield from ("## Logs of crashed trials", "") if position == 0 else ("",)
        yield f"Trial {number}:"
        yield ""
        yield fenced(tail)


def _cost(cost: Cost) -> Iterator[str]:
    yield "## Cost"
    yield ""
    yield f"- total: {format_seconds(cost.total_s)}"
    reused = "an earlier calibration was used" if cost.doctor_s < _REUSED_S else None
    yield f"- doctor: {reused or format_seconds(cost.doctor_s)}"
    yield f"- {cost.n_trials} trials: {format_seconds(cost.trials_s)}"
    yield (
        f"- of which {cost.n_failed} failed ({cost.n_oom} out of memory): "
        f"{format_seconds(cost.failed_trials_s)}"
    )
    if cost.smoke_s:
        yield f"- smoke runs before trials: {format_seconds(cost.smoke_s)}"
    if cost.memory_probe_s:
        yield f"- memory probes before trials: {format_seconds(cost.memory_probe_s)}"
    if cost.n_turned_away:
        yield f"- candidates these turned away: {cost.n_turned_away}"
    if cost.anchor_s:
        yield f"- the baseline beside the trials: {format_seconds(cost.anchor_s)}"
    yield f"- confirmation: {format_seconds(cost.confirmation_s)}"


def _known(value: int | None) -> str:
    return "unknown" if value is None else str(value)
