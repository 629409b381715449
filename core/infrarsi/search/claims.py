"""Claims as the search is given them: plain dictionaries that name a knob and a value.

    {"knob", "value" (True), "log_speedup" (0.0), "sd" (0.3), "memory_role", "source", "kind"}

`log_speedup` is the natural log of before/after. A source loses belief with each rejection of a
trial that carried one of its claims, unless an accepted trial ("ok") carried that claim too. How
far sources and kinds (the knob's own where none is given) keep their word is learned, see
`models.step_time`.

A source of an S-violation is out: after a rejection whose code is of the S family, every patch
the trial carried is out, unless an accepted trial carried it too. All of a rejected bundle's
patches are out, since any of them may be the cause; crashed or other rejected trials clear none.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infrarsi.errors import UsageError
from infrarsi.frozen import Scalar
from infrarsi.models.step_time import TimeClaim
from infrarsi.search.outcomes import Told
from infrarsi.search.space import SearchSpace

_SD = 0.3


@dataclass(frozen=True, kw_only=True)
class SearchClaim:
    """One claim, checked."""

    knob: str
    value: Scalar
    log_speedup: float
    sd: float
    memory_role: str
    source: str
    kind: str


def read_claims(claims: Iterable[Mapping[str, Any]], space: SearchSpace) -> tuple[SearchClaim, ...]:
    """Check plain claims; those on knobs the space does not have are left out.

    Raises:
        UsageError: a claim without a knob, or with a value the knob does not have.
    """
    kinds = {k.name: "patch" if k.is_patch else "setting" for k in space.knobs}
    read = [_read(claim, kinds) for claim in claims]
    known = [claim for claim in read if claim.knob in kinds]
    for claim in known:
        space.complete({claim.knob: claim.value})
    return tuple(known)


def time_claims(
    claims: Sequence[SearchClaim], told: Sequence[Told]
) -> dict[tuple[str, Scalar], TimeClaim]:
    """Claims on speed, each with the belief its source has left."""
    return {
        (c.knob, c.value): TimeClaim(
            log_speedup=c.log_speedup,
            sd=c.sd,
            source=c.source,
            kind=c.kind,
            belief=1 / (1 + _n_rejected(c.source, claims, told)),
        )
        for c in claims
    }


def memory_roles(claims: Sequence[SearchClaim]) -> dict[tuple[str, Scalar], str]:
    """Who claims to save memory, or to need it."""
    return {(c.knob, c.value): c.memory_role for c in claims}


def values_out(space: SearchSpace, told: Sequence[Told]) -> frozenset[tuple[str, Scalar]]:
    """The (patch, value) pairs no setting may have again; see the module's rule."""
    patches = {k.name for k in space.knobs if k.is_patch}
    return frozenset(
        (name, value)
        for trial in told
        if trial.breaks_scope
        for name, value in space.encoding.changes(trial.setting)
        if name in patches and not _was_accepted(name, value, told)
    )


def _was_accepted(knob: str, value: Scalar, told: Sequence[Told]) -> bool:
    return any(t.status == "ok" and t.setting.get(knob) == value for t in told)


def _n_rejected(source: str, claims: Sequence[SearchClaim], told: Sequence[Told]) -> int:
    own = [
        (c.knob, c.value)
        for c in claims
        if c.source == source and not _was_accepted(c.knob, c.value, told)
    ]
    rejected = [t.setting for t in told if t.status == "rejected"]
    return sum(any(setting.get(knob) == value for knob, value in own) for setting in rejected)


def _read(claim: Mapping[str, Any], kinds: Mapping[str, str]) -> SearchClaim:
    knob = claim.get("knob")
    if not isinstance(knob, str):
        raise UsageError("A claim names no knob.", 'Give {"knob": name, "value": value, ...}.')
    role = claim.get("memory_role") or "neutral"
    if role not in ("hungry", "saver", "neutral"):
        raise UsageError(f"A memory role cannot be {role!r}.", "Use hungry, saver or neutral.")
    return SearchClaim(
        knob=knob,
        value=claim.get("value", True),
        log_speedup=_number(claim, "log_speedup", 0.0),
        sd=max(0.01, _number(claim, "sd", _SD)),
        memory_role=role,
        source=str(claim.get("source") or knob),
        kind=str(claim.get("kind") or kinds.get(knob, "setting")),
    )


def _number(claim: Mapping[str, Any], name: str, missing: float) -> float:
    value = claim.get(name)
    if value is None:
        return missing
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise UsageError(f"A claim's {name} cannot be {value!r}.", "Give a finite number.")
    return float(value)
