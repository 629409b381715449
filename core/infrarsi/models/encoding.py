"""Settings as numbers: which values differ from the baseline's, and by how many doublings.

A setting is a row of indices, one a knob, into that knob's choices. Every model sees rows through
the same columns, zero at the baseline, so that an effect is always "compared with the user's
start". A knob that does not act (a switch for tensor parallelism where there is none) is coded as
its `off` value: rows that run alike are equal. Leaves out interactions; the models have them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from infrarsi.frozen import Scalar
from infrarsi.knobs import Setting

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
"""Shape (n_settings, n_knobs): indices of choices."""


@dataclass(frozen=True, kw_only=True)
class EncodedKnob:
    """A knob as the models see it; `ordered` choices also share one effect a doubling (or step).

    It acts only where every knob of `acts_when` has one of the values named there. `is_structural`
    knobs shape the whole step (degrees, micro-batch, recomputation): what two settings that differ
    in them have in common is less sure.
    """

    name: str
    choices: tuple[Scalar, ...]
    ordered: bool = False
    is_patch: bool = False
    is_parallelism: bool = False
    is_structural: bool = False
    acts_when: tuple[tuple[str, tuple[Scalar, ...]], ...] = ()


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

    def rows(self, settings: Sequence[Mapping[str, Scalar]]) -> Rows:
        """Index of each knob's choice, canonical, shape (n_settings, n_knobs)."""
        listed = [
            [index[s.get(k.name, self.baseline[k.name])] for k, index in self._indexed]
            for s in settings
        ]
        rows = np.asarray(listed, dtype=np.int64).reshape(len(settings), len(self.knobs))
        return self.canonical(rows)

    def setting(self, row: Sequence[int] | Rows) -> Setting:
        """The setting of one row."""
        return {k.name: k.choices[int(i)] for k, i in zip(self.knobs, row, strict=True)}

    def canonical(self, rows: Rows) -> Rows:
        """The same rows with what does not act coded as off."""
        made = rows
        for _ in self._conditional:
            before = made
            for column, off, conditions in self._conditional:
                acts = np.ones(len(rows), dtype=np.bool_)
                for other, allowed in conditions:
                    acts &= allowed[made[:, other]]
                is_column = np.arange(rows.shape[1]) == column
                made = np.where(is_column[None, :] & ~acts[:, None], off, made)
            if (made == before).all():
                break
        return made

    def features(self, rows: Rows) -> Floats:
        """Shape (n_settings, n_columns)."""
        if not self.knobs:
            return np.zeros((len(rows), 0))
        return np.hstack([table[rows[:, k]] for k, table in enumerate(self._tables)])

    def one_hot(self, rows: Rows) -> Floats:
        """One column for each choice of each knob, shape (n_settings, n_values)."""
        made = np.zeros((len(rows), self.n_values))
        made[np.arange(len(rows))[:, None], rows + self.starts[None, :]] = 1.0
        return made

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The one-hot column of each knob's first choice."""
        sizes = [len(k.choices) for k in self.knobs]
        return np.asarray([sum(sizes[:i]) for i in range(len(sizes))], dtype=np.int64)

    @cached_property
    def n_values(self) -> int:
        """Number of choices of all knobs."""
        return sum(len(k.choices) for k in self.knobs)

    @cached_property
    def values(self) -> tuple[tuple[str, Scalar], ...]:
        """(knob, value) of each one-hot column."""
        return tuple((k.name, v) for k in self.knobs for v in k.choices)

    @cached_property
    def is_changed(self) -> NDArray[np.bool_]:
        """Whether a one-hot column's value is another than the baseline's, shape (n_values,)."""
        return np.asarray([v != self.baseline[name] for name, v in self.values], dtype=np.bool_)

    @cached_property
    def is_structural(self) -> NDArray[np.bool_]:
        """Whether a one-hot column is of a structural knob, shape (n_values,)."""
        return np.asarray([k.is_structural for k in self.knobs for _ in k.choices], dtype=np.bool_)

    def key(self, setting: Mapping[str, Scalar]) -> tuple[int, ...]:
        """Equal for settings that run alike."""
        return tuple(int(i) for i in self.rows([setting])[0])

    def changes(self, setting: Mapping[str, Scalar]) -> tuple[tuple[str, Scalar], ...]:
        """(knob, value) wherever the setting differs from the baseline."""
        values = ((k.name, setting.get(k.name, self.baseline[k.name])) for k in self.knobs)
        return tuple((name, v) for name, v in values if v != self.baseline[name])

    @cached_property
    def _indexed(self) -> tuple[tuple[EncodedKnob, dict[Scalar, int]], ...]:
        return tuple((k, {v: i for i, v in enumerate(k.choices)}) for k in self.knobs)

    @cached_property
    def _conditional(self) -> list[tuple[int, int, list[tuple[int, NDArray[np.bool_]]]]]:
        """(column, index of off, conditions on other columns) of each knob that may not act."""
        names = [k.name for k in self.knobs]
        return [
            (
                column,
                knob.choices.index(_off(knob, self.baseline[knob.name])),
                [
                    (names.index(other), _allowed(self.knobs[names.index(other)], values))
                    for other, values in knob.acts_when
                ],
            )
            for column, knob in enumerate(self.knobs)
            if knob.acts_when
        ]

    @cached_property
    def _tables(self) -> list[Floats]:
        """Per knob: the features of each of its choices, shape (n_choices, n_own_columns)."""
        tables: list[Floats] = []
        for knob in self.knobs:
            own = [c for c in self.columns if c.knob is knob]
            table = [[self._feature(c, value) for c in own] for value in knob.choices]
            tables.append(np.asarray(table, dtype=np.float64).reshape(len(knob.choices), len(own)))
        return tables

    def _feature(self, column: Column, value: Scalar) -> float:
        if column.value is None:
            start = self.baseline[column.knob.name]
            return _position(column.knob, value) - _position(column.knob, start)
        return float(value == column.value)


def _off(knob: EncodedKnob, baseline: Scalar) -> Scalar:
    return False if any(c is False for c in knob.choices) else baseline


def _allowed(knob: EncodedKnob, values: tuple[Scalar, ...]) -> NDArray[np.bool_]:
    return np.asarray([c in values for c in knob.choices], dtype=np.bool_)


def _position(knob: EncodedKnob, value: Scalar) -> float:
    """Doublings where every choice is a positive number, else the place in the list."""
    numbers = [c for c in knob.choices if isinstance(c, int | float) and not isinstance(c, bool)]
    if len(numbers) == len(knob.choices) and min(numbers) > 0:
        return math.log2(float(value))
    return float(knob.choices.index(value))
