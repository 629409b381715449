"""The plain description of a space, checked and completed.

`{"knobs": {name: {"type", "choices", "kind", "default"}}}`; where no default is given it is
False for a patch or a bool and the first choice otherwise, until a first trial is told: the
baseline. Without knobs the baseline `{}` is the only setting.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from infrarsi.errors import UsageError
from infrarsi.frozen import Scalar
from infrarsi.knobs import Setting
from infrarsi.models.encoding import EncodedKnob, Encoding

_TYPES = ("ordinal", "integer", "categorical", "bool")
_KINDS = ("setting", "parallelism", "patch")

Valid = Callable[[Setting], str | None]


@dataclass(frozen=True, kw_only=True)
class SearchSpace:
    """Knobs with their baseline, and which settings are allowed at all."""

    encoding: Encoding
    valid: Valid | None = None
    has_default: bool = False
    out: frozenset[tuple[str, Scalar]] = frozenset()
    _checked: dict[tuple[Scalar, ...], bool] = field(default_factory=dict)

    @property
    def knobs(self) -> tuple[EncodedKnob, ...]:
        """In the order they were given."""
        return self.encoding.knobs

    @property
    def baseline(self) -> Setting:
        """The user's own start."""
        return dict(self.encoding.baseline)

    @property
    def n_settings(self) -> int:
        """Size of the whole product, allowed or not."""
        return math.prod(len(k.choices) for k in self.knobs)

    def key(self, setting: Setting) -> tuple[Scalar, ...]:
        """Equal for equal settings."""
        return self.encoding.key(setting)

    def complete(self, setting: Mapping[str, Any]) -> Setting:
        """The setting with the baseline's values filled in.

        Raises:
            UsageError: a knob or value the space does not have.
        """
        for name, value in setting.items():
            knob = next((k for k in self.knobs if k.name == name), None)
            if knob is None:
                raise UsageError(f"The space has no knob {name!r}.", "Name one it has.")
            if value not in knob.choices:
                raise UsageError(f"{name} cannot be {value!r}.", f"Choose from {knob.choices}.")
        return {**self.baseline, **setting}

    def allows(self, setting: Setting) -> bool:
        """Whether no value is out and `valid`, asked once a setting, has no objection."""
        if self.has_value_out(setting):
            return False
        if self.valid is None:
            return True
        key = self.key(setting)
        if key not in self._checked:
            self._checked[key] = self.valid(dict(setting)) is None
        return self._checked[key]

    def has_value_out(self, setting: Setting) -> bool:
        """Whether it has a value that was taken out of the search."""
        return any((name, value) in self.out for name, value in setting.items())

    def all_settings(self) -> Iterator[Setting]:
        """Every allowed setting; only for small spaces."""
        names = [k.name for k in self.knobs]
        for values in product(*(k.choices for k in self.knobs)):
            setting = dict(zip(names, values, strict=True))
            if self.allows(setting):
                yield setting

    def moves(self, setting: Setting) -> Iterator[Setting]:
        """Every allowed setting that differs in one knob."""
        for knob in self.knobs:
            for value in knob.choices:
                moved = {**setting, knob.name: value}
                if value != setting[knob.name] and self.allows(moved):
                    yield moved

    def with_baseline(self, baseline: Mapping[str, Any]) -> "SearchSpace":
        """The same space seen from another start."""
        encoding = Encoding(self.knobs, self.complete(baseline))
        return replace(self, encoding=encoding)

    def without(self, values: frozenset[tuple[str, Scalar]]) -> "SearchSpace":
        """The same space with these values, and no others, out of the search."""
        return replace(self, out=values)


def read_space(space: Mapping[str, Any], valid: Valid | None) -> SearchSpace:
    """Check a plain description.

    Raises:
        UsageError: not of the documented shape; says which knob.
    """
    described = space.get("knobs")
    if not isinstance(described, Mapping):
        raise UsageError("The space has no knobs.", 'Give {"knobs": {name: {...}}}.')
    knobs = tuple(_read_knob(str(name), knob) for name, knob in described.items())
    baseline = {k.name: _default(k, described[k.name]) for k in knobs}
    return SearchSpace(
        encoding=Encoding(knobs, baseline),
        valid=valid,
        has_default=all("default" in described[k.name] for k in knobs),
    )


def _read_knob(name: str, described: object) -> EncodedKnob:
    if not isinstance(described, Mapping):
        raise UsageError(f"Knob {name} is not described.", "Give type, choices and kind.")
    kind, type_ = described.get("kind", "setting"), described.get("type", "categorical")
    choices = described.get("choices", (False, True) if type_ == "bool" else ())
    if kind not in _KINDS or type_ not in _TYPES:
        raise UsageError(
            f"Knob {name} has type {type_!r} and kind {kind!r}.",
            f"Types are {', '.join(_TYPES)}; kinds are {', '.join(_KINDS)}.",
        )
    if not isinstance(choices, Sequence) or isinstance(choices, str) or not choices:
        raise UsageError(f"Knob {name} has no choices.", "List its values.")
    if not all(isinstance(c, bool | int | float | str) for c in choices):
        raise UsageError(f"Knob {name} has a choice that is no plain value.", "List plain values.")
    return EncodedKnob(
        name=name,
        choices=tuple(choices),
        ordered=type_ in ("ordinal", "integer") and len(choices) > 2,
        is_patch=kind == "patch",
    )


def _default(knob: EncodedKnob, described: Mapping[str, Any]) -> Scalar:
    default = described.get("default", False if False in knob.choices else knob.choices[0])
    if default not in knob.choices:
        raise UsageError(f"{knob.name} cannot be {default!r}.", f"Choose from {knob.choices}.")
    return default
