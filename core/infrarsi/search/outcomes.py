"""What was told, sorted into what each model may learn from it.

ok: speed, memory, validity; without a step time ("it ran", a smoke run or a probe) all but speed.
oom: a bound on memory. nan: speed (its time is real) and a
break. Everything else that failed: a break. rejected: a break that teaches neither speed nor
memory nor its claim, and counts against the sources of the claims it carried; where its code is
of the S family, see `search.claims.values_out`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from infrarsi.errors import UsageError
from infrarsi.knobs import Setting

Status = Literal["ok", "oom", "compile_error", "nan", "timeout", "crashed", "rejected"]


@dataclass(frozen=True, kw_only=True)
class Told:
    """One trial's outcome, numbers in s and GiB, None where not measured."""

    setting: Setting
    status: Status
    step_time_s: float | None = None
    peak_mem_gib: float | None = None
    mem_at_least_gib: float | None = None
    code: str | None = None
    cost_s: float | None = None

    @property
    def breaks_scope(self) -> bool:
        """Whether it was rejected for a violation of the S family (S401, S405, ...)."""
        return self.status == "rejected" and (self.code or "").startswith("S")

    @property
    def teaches_speed(self) -> bool:
        """Whether its step time is one of this setting as it would be used."""
        return self.status in ("ok", "nan") and self.step_time_s is not None

    @property
    def is_measured(self) -> bool:
        """Whether it ran to its end and was timed."""
        return self.status == "ok" and self.step_time_s is not None

    @property
    def is_broken(self) -> bool:
        """Whether it failed for another reason than memory."""
        return self.status not in ("ok", "oom")


def read_outcome(setting: Setting, outcome: Mapping[str, Any]) -> Told:
    """Check a plain outcome.

    Raises:
        UsageError: an unknown status, a code that is no text, or a number that is not positive
            and finite.
    """
    status: Any = outcome.get("status")
    if status not in get_args(Status):
        raise UsageError(
            f"An outcome's status cannot be {status!r}.",
            f"Use one of {', '.join(get_args(Status))}.",
        )
    code = outcome.get("code")
    if code is not None and not isinstance(code, str):
        raise UsageError(f"An outcome's code cannot be {code!r}.", "Give a code such as S405.")
    told = Told(
        setting=setting,
        status=status,
        step_time_s=_positive(outcome, "step_time_s"),
        peak_mem_gib=_positive(outcome, "peak_mem_gib"),
        mem_at_least_gib=_positive(outcome, "mem_at_least_gib"),
        code=code,
        cost_s=_positive(outcome, "cost_s"),
    )
    return told


def _positive(outcome: Mapping[str, Any], name: str) -> float | None:
    value = outcome.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e15:
        raise UsageError(f"{name} cannot be {value!r}.", "Give a positive number.")
    return float(value)
