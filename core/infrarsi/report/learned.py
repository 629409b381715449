"""What the trials taught, as Markdown: prices, trust in claims, and how predictions came true."""

from collections.abc import Callable, Iterable, Iterator

from infrarsi.report.model import Report, ReportedTurnedAway
from infrarsi.report.outcomes import describe_outcome, describe_setting
from infrarsi.report.printable import cell
from infrarsi.report.scoring import describe_scores
from infrarsi.units import format_added, format_bytes, format_frac, format_seconds
from infrarsi.wire.results import Interval, Price, Reliability


def learned(report: Report) -> Iterator[str]:
    """The lines of the section, none where nothing was learned."""
    parts = (
        _prices(report.prices),
        _reliability(report.reliability),
        _predictions(describe_scores(report.predictions)),
    )
    shown = [lines for part in parts if (lines := list(part))]
    if shown:
        yield "## What the trials taught"
        for lines in shown:
            yield ""
            yield from lines


def turned_away(entries: Iterable[ReportedTurnedAway]) -> Iterator[str]:
    """Candidates that failed a short run, with what is to blame."""
    for position, away in enumerate(entries):
        if position == 0:
            yield "## Turned away before a trial"
            yield ""
            yield "A run of a few steps showed that they cannot run, so that they cost no trial."
            yield ""
            yield "| before | change | outcome | to blame | took |"
            yield "|---|---|---|---|---|"
        blamed = describe_setting(away.blamed) if away.blamed else "not told apart"
        yield (
            f"| trial {away.before_trial} | {cell(describe_setting(away.setting))} "
            f"| {cell(describe_outcome(away.outcome))} | {cell(blamed)} "
            f"| {format_seconds(away.took_s)} |"
        )


def _prices(prices: Iterable[Price]) -> Iterator[str]:
    told = [price for price in prices if price.n_trials]
    if not told:
        return
    yield "What a value adds to a step against yours, the rest being equal (90 % intervals):"
    yield ""
    yield "| value | step time | peak memory | trials |"
    yield "|---|---|---|---|"
    for price in told:
        value = cell(describe_setting({price.knob: price.value}))
        time = _added(price.step_time_s, format_seconds)
        memory = _added(price.peak_mem_bytes, format_bytes)
        yield f"| {value} | {time} | {memory} | {price.n_trials} |"


def _reliability(reliability: Iterable[Reliability]) -> Iterator[str]:
    for position, entry in enumerate(reliability):
        if position == 0:
            yield "How much of what was claimed held:"
            yield ""
            yield "| source | kind | tried | held |"
            yield "|---|---|---|---|"
        kept = entry.kept_frac
        held = f"{format_frac(kept.value)} [{format_frac(kept.low)}, {format_frac(kept.high)}]"
        yield f"| {cell(entry.source)} | {cell(entry.kind)} | {entry.n} | {held} |"


def _predictions(sentences: Iterable[str]) -> Iterator[str]:
    yield from (f"- {sentence}" for sentence in sentences)


def _added(interval: Interval | None, form: Callable[[float], str]) -> str:
    if interval is None:
        return "not measured"
    value, low, high = (
        format_added(v, form) for v in (interval.value, interval.low, interval.high)
    )
    return f"{value} [{low}, {high}]"
