"""A trial in words: what it changed and what came of it."""

from typing import assert_never

from infrarsi.frozen import Scalar
from infrarsi.knobs import Setting
from infrarsi.report.printable import one_line
from infrarsi.trial import Completed, Crashed, Outcome, OutOfMemory, Rejected, TimedOut, Unstable
from infrarsi.units import format_bytes, format_seconds


def describe_setting(changed: Setting) -> str:
    """`micro_batch=8, bf16_autocast`; a patch that is on is only its name."""
    if not changed:
        return "baseline"
    return ", ".join(_describe_value(name, value) for name, value in changed.items())


def describe_outcome(outcome: Outcome | None) -> str:
    """One short sentence without a full stop."""
    match outcome:
        case None:
            return "not finished"
        case Completed():
            return (
                f"{format_seconds(outcome.step_time_s)} a step, "
                f"{format_bytes(outcome.peak_mem_bytes)} peak"
            )
        case OutOfMemory():
            return f"out of memory, needs at least {format_bytes(outcome.at_least_bytes)}"
        case Rejected():
            return f"rejected: {_describe_violations(outcome)}"
        case Unstable():
            return f"losses or weights not finite at step {outcome.step}"
        case TimedOut():
            return f"no window within {format_seconds(outcome.limit_s)}"
        case Crashed():
            return f"crashed: {one_line(outcome.cause)}"
        case _:
            assert_never(outcome)


def _describe_value(name: str, value: Scalar) -> str:
    if value is True:
        return name
    return f"{name}={value}" if value is not False else f"no {name}"


def _describe_violations(outcome: Rejected) -> str:
    if not outcome.violations:
        return "no reason was recorded"
    return "; ".join(f"{v.code} {one_line(v.message)}" for v in outcome.violations)
