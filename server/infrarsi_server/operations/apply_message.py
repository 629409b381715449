"""The message of an applied promotion: what, why, and the evidence as trailers."""

import textwrap

from infrarsi.report.markdown import describe_speedup
from infrarsi.report.outcomes import describe_setting
from infrarsi.report.printable import one_line
from infrarsi.units import format_frac, format_ratio
from infrarsi.wire.results import Promotion, RunResult
from infrarsi_server.operations.applied import CAMPAIGN_TRAILER

SUBJECT_LIMIT = 60
_WIDTH = 72


def subject_line(result: RunResult, promotion: Promotion) -> str:
    """At most 60 characters; names the parts where they fit."""
    head = f"Speed up {result.lock.contract.job} {format_ratio(promotion.speedup.ratio)}"
    full = f"{head}: {', '.join(_parts(promotion))}"
    short = full if len(full) <= SUBJECT_LIMIT else f"{head} by {len(promotion.parts)} changes"
    return short[:SUBJECT_LIMIT]


def commit_message(result: RunResult, promotion: Promotion) -> str:
    """Subject, parts with their reasons, trailers."""
    why = [
        textwrap.fill(f"- {name}: {one_line(part.why, 1000)}", _WIDTH, subsequent_indent="  ")
        for name, part in zip(_parts(promotion), promotion.parts, strict=True)
    ]
    intro = textwrap.fill(
        f"Confirmed on {promotion.n_units} fresh units of process pairs with the contract kept. "
        "The parts were confirmed together, not one by one.",
        _WIDTH,
    )
    listed = [f"{key}: {value}" for key, value in _trailers(result, promotion).items()]
    return "\n".join([subject_line(result, promotion), "", intro, "", *why, "", *listed, ""])


def _parts(promotion: Promotion) -> list[str]:
    return [describe_setting({part.knob: part.value}) for part in promotion.parts]


def _trailers(result: RunResult, promotion: Promotion) -> dict[str, str]:
    before, after = promotion.mfu_before_frac, promotion.mfu_after_frac
    cost = result.cost
    return {
        CAMPAIGN_TRAILER: result.campaign,
        "Infrarsi-Contract": result.lock.digest,
        "Infrarsi-Speedup": describe_speedup(promotion.speedup),
        "Infrarsi-Mfu": f"{format_frac(before)} -> {format_frac(after)}",
        "Infrarsi-Trials": f"{cost.n_trials}, {cost.n_failed} failed, {cost.n_oom} out of memory",
        "Infrarsi-Machine": one_line(result.calibration.machine),
    }
