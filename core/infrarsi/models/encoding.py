"""Settings as numbers: which values differ from the baseline's, and by how many doublings.

Every model sees a setting through the same columns, zero at the baseline, so that an effect is
always "compared with the user's start". Leaves out interactions; the models' residual has them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from infrarsi.frozen import Scalar
from infrarsi.knobs import Setting

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class EncodedKnob:
    """A knob as the models see it; `ordered` choices also share one effect a doubling (or step)."""

    name: str
    choices: tuple[Scalar, ...]
    ordered: bool = False
    is_patch: bool = False


@dataclass(frozen=True, kw_only=True)
class Column:
    """One feature: the knob has this value, or (None) the effect of a doubling of its value."""

    knob: EncodedKnob
    value: Scalar | None


@dataclass(frozen=True)
class Encoding:
    """Columns for all values but the baseline's. A knob a setting leaves out has its baseline."""

    knobs: tuple[EncodedKnob, ...]
    baseline: Setting

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Per knob: the shared slope where ordered, then one column for each other value."""
        made: list[Column] = []
        for knob in self.knobs:
            if knob.ordered:
                made.append(Column(knob=knob, value=None))
            made += [
                Column(knob=knob, value=v) for v in knob.choices if v != self.baseline[knob.name]
            ]
        return tuple(made)

    def features(self, settings: Sequence[Setting]) -> Floats:
        """Shape (n_settings, n_columns)."""
        rows = [[self._feature(c, s) for c in self.columns] for s in settings]
        return np.asarray(rows, dtype=np.float64).reshape(len(settings), len(self.columns))

    def codes(self, settings: Sequence[Setting]) -> NDArray[np.int64]:
        """Index of each knob's choice, shape (n_settings, n_knobs): for counting differences."""
        rows = [[k.choices.index(self._value(k, s)) for k in self.knobs] for s in settings]
        return np.asarray(rows, dtype=np.int64).reshape(len(settings), len(self.knobs))

    def key(self, setting: Setting) -> tuple[Scalar, ...]:
        """The values in the knobs' order: equal for equal settings."""
        return tuple(self._value(k, setting) for k in self.knobs)

    def changes(self, setting: Setting) -> tuple[tuple[str, Scalar], ...]:
        """(knob, value) wherever the setting differs from the baseline."""
        values = ((k.name, self._value(k, setting)) for k in self.knobs)
        return tuple((name, v) for name, v in values if v != self.baseline[name])

    def effect_rows(self, changes: Sequence[tuple[str, Scalar]]) -> Floats:
        """The columns of each change made alone, shape (n_changes, n_columns)."""
        return self.features([{**self.baseline, name: value} for name, value in changes])

    def _value(self, knob: EncodedKnob, setting: Setting) -> Scalar:
        return setting.get(knob.name, self.baseline[knob.name])

    def _feature(self, column: Column, setting: Setting) -> float:
        value = self._value(column.knob, setting)
        if column.value is None:
            return _position(column.knob, value) - _position(
                column.knob, self.baseline[column.knob.name]
            )
        return float(value == column.value)


def _position(knob: EncodedKnob, value: Scalar) -> float:
    """Doublings where every choice is a positive number, else the place in the list."""
    numbers = [c for c in knob.choices if isinstance(c, int | float) and not isinstance(c, bool)]
    if len(numbers) == len(knob.choices) and min(numbers) > 0:
        return math.log2(float(value))
    return float(knob.choices.index(value))
