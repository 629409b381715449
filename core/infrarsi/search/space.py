"""The plain description of a space, checked and completed.

`{"knobs": {name: {"type", "choices", "kind", "default", "acts_when"}}}`; where no default is
given it is False for a patch or a bool and the first choice otherwise, until a first trial is
told: the baseline. `acts_when` is `{other knob: [values]}`: elsewhere the knob does nothing.
Without knobs the baseline `{}` is the only setting.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infrarsi.errors import UsageError
from infrarsi.frozen import Scalar
from infrarsi.knobs import Setting
from infrarsi.models.encoding import EncodedKnob, Encoding, Floats, Rows
from infrarsi.search.activity import with_activity

_TYPES = ("ordinal", "integer", "categorical", "bool")
_KINDS = ("setting", "parallelism", "patch")

Valid = Callable[[Setting], str | None]


@dataclass(frozen=True, kw_only=True)
class SearchSpace:
    """Knobs with their baseline, and which settings are allowed at all.

    Inside the search a setting is a row of indices, see `models.encoding`; rows are canonical.
    """

    encoding: Encoding
    valid: Valid | None = None
    has_default: bool = False
    out: frozenset[tuple[str, Scalar]] = frozenset()
    _checked: dict[bytes, bool] = field(default_factory=dict)

    @property
    def knobs(self) -> tuple[EncodedKnob, ...]:
        """In the order they were given."""
        return self.encoding.knobs

    @property
    def baseline(self) -> Setting:
        """The user's own start."""
        return dict(self.encoding.baseline)

    @cached_property
    def start(self) -> Rows:
        """The baseline's row, shape (n_knobs,)."""
        return self.encoding.rows([{}])[0]

    @cached_property
    def is_structural(self) -> NDArray[np.bool_]:
        """Whether a knob is structural, shape (n_knobs,)."""
        return np.asarray([k.is_structural for k in self.knobs], dtype=np.bool_)

    @property
    def n_settings(self) -> int:
        """Size of the whole product, allowed or not."""
        return math.prod(len(k.choices) for k in self.knobs)

    def setting(self, row: Rows) -> Setting:
        """The row as a setting; the user's own start with the values the user gave."""
        return self.baseline if (row == self.start).all() else self.encoding.setting(row)

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
        """Whether no value is out and `valid` has no objection."""
        return bool(len(self.allowed(self.encoding.rows([setting]))))

    def allowed(self, rows: Rows) -> Rows:
        """The distinct rows among these that are allowed, canonical, in their order.

        `valid` is asked once a setting.
        """
        rows = self.encoding.canonical(rows)
        if self.out and len(rows):
            rows = rows[~(self.encoding.one_hot(rows) @ self._is_out > 0)]
        seen: dict[bytes, int] = {}
        for i, row in enumerate(rows):
            seen.setdefault(row.tobytes(), i)
        kept = [i for key, i in seen.items() if self._is_valid(key, rows[i])]
        return rows[kept]

    def all_rows(self) -> Rows:
        """Every allowed row; only for small spaces."""
        sizes = [len(k.choices) for k in self.knobs]
        rows = np.indices(sizes).reshape(len(sizes), -1).T if sizes else np.zeros((1, 0))
        return self.allowed(rows.astype(np.int64))

    def changed_rows(self, rows: Rows) -> Rows:
        """All rows that differ from one of these in one knob, allowed or not."""
        moved: list[Rows] = []
        for k, knob in enumerate(self.knobs):
            for i in range(len(knob.choices)):
                changed = rows[rows[:, k] != i].copy()
                changed[:, k] = i
                moved.append(changed)
        return np.concatenate(moved) if moved else rows[:0]

    def with_baseline(self, baseline: Mapping[str, Any]) -> "SearchSpace":
        """The same space seen from another start."""
        encoding = Encoding(self.knobs, self.complete(baseline))
        return replace(self, encoding=encoding, _checked={})

    def without(self, values: frozenset[tuple[str, Scalar]]) -> "SearchSpace":
        """The same space with these values, and no others, out of the search."""
        return replace(self, out=values)

    @cached_property
    def _is_out(self) -> Floats:
        return np.asarray([float(v in self.out) for v in self.encoding.values])

    def _is_valid(self, key: bytes, row: Rows) -> bool:
        if self.valid is None:
            return True
        if key not in self._checked:
            self._checked[key] = self.valid(self.setting(row)) is None
        return self._checked[key]


def read_space(space: Mapping[str, Any], valid: Valid | None) -> SearchSpace:
    """Check a plain description.

    Raises:
        UsageError: not of the documented shape; says which knob.
    """
    described = space.get("knobs")
    if not isinstance(described, Mapping):
        raise UsageError("The space has no knobs.", 'Give {"knobs": {name: {...}}}.')
    knobs = tuple(_read_knob(str(name), knob) for name, knob in described.items())
    knobs = with_activity(knobs, described)
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
    if any(isinstance(c, float) and not math.isfinite(c) for c in choices):
        raise UsageError(f"Knob {name} has a choice that is not finite.", "List finite numbers.")
    if len(set(choices)) < len(choices):
        raise UsageError(f"Knob {name} has a choice twice.", "List each value once (1 is True).")
    return EncodedKnob(
        name=name,
        choices=tuple(choices),
        ordered=type_ in ("ordinal", "integer") and len(choices) > 2,
        is_patch=kind == "patch",
        is_parallelism=kind == "parallelism",
    )


def _default(knob: EncodedKnob, described: Mapping[str, Any]) -> Scalar:
    default = described.get("default", False if False in knob.choices else knob.choices[0])
    if default not in knob.choices:
        raise UsageError(f"{knob.name} cannot be {default!r}.", f"Choose from {knob.choices}.")
    return default
