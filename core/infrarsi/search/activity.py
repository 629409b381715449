"""When a knob acts at all: as the space says, else as its name tells beside the degrees there.

A switch for tensor parallelism does nothing where there is none; a trial of it would be a trial of
what was tried. Only knobs whose name has the degree's word in it, beside a degree that can be one,
are known by name.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from infrarsi.errors import UsageError
from infrarsi.frozen import Scalar
from infrarsi.models.encoding import EncodedKnob
from infrarsi.search.roles import Role, find_roles

_WORDS = {
    "tp": r"tp|tensor parallel|sequence parallel|sp",
    "pp": r"pp|vpp|pipeline|virtual|interleaved?|1f1b",
    "cp": r"cp|context parallel",
    "ep": r"ep|expert parallel|all to all|a2a",
}


def with_activity(
    knobs: tuple[EncodedKnob, ...], described: Mapping[str, Any]
) -> tuple[EncodedKnob, ...]:
    """The knobs with the conditions under which they act, and whether they are structural.

    Raises:
        UsageError: `acts_when` names a knob or value the space does not have.
    """
    roles = find_roles(knobs)
    conditioned = (_conditioned(k, knobs, described[k.name], roles) for k in knobs)
    return tuple(replace(k, is_structural=k.is_parallelism or k.name in roles) for k in conditioned)


def _conditioned(
    knob: EncodedKnob,
    knobs: tuple[EncodedKnob, ...],
    described: Mapping[str, Any],
    roles: Mapping[str, Role],
) -> EncodedKnob:
    told = described.get("acts_when")
    if told is not None:
        return replace(knob, acts_when=_told(knob, knobs, told))
    if knob.is_parallelism or (knob.ordered and knob.name not in roles):
        return knob
    own = roles.get(knob.name)
    by_column = {role.column: name for name, role in roles.items()}
    words = re.sub(r"[^a-z0-9]+", " ", knob.name.lower())
    for degree, spelled in _WORDS.items():
        other = by_column.get(degree)
        if other is None or other == knob.name or (own and own.column in _WORDS):
            continue
        if re.search(rf"(?:^| )(?:{spelled})(?: |$)", words):
            choices = next(k.choices for k in knobs if k.name == other)
            above = tuple(c for c in choices if c != 1)
            if above and 1 in choices:
                return replace(knob, acts_when=((other, above),))
    return knob


def _told(
    knob: EncodedKnob, knobs: tuple[EncodedKnob, ...], told: object
) -> tuple[tuple[str, tuple[Scalar, ...]], ...]:
    choices = {k.name: k.choices for k in knobs if k.name != knob.name}
    wrong = UsageError(
        f"{knob.name}'s acts_when cannot be {told!r}.",
        "Give {other knob: [values it acts with]}, all of them of this space.",
    )
    if not isinstance(told, Mapping):
        raise wrong
    conditions: list[tuple[str, tuple[Scalar, ...]]] = []
    for name, values in told.items():
        listed = values if isinstance(values, list | tuple) else [values]
        if name not in choices or not all(v in choices[name] for v in listed):
            raise wrong
        conditions.append((str(name), tuple(listed)))
    return tuple(conditions)
