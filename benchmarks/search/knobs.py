"""Builders of knobs in a workload's own spelling, and of the hidden interactions by seed."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from search.cluster import PATCHES, Constants
from search.workload import Break, Knob


def ordinal(own: str, name: str, choices: Iterable[Any], kind: str = "setting") -> Knob:
    """A knob of ordered numbers; their values mean themselves."""
    return Knob(own=own, name=name, type="ordinal", choices=tuple(choices), kind=kind)


def degree(own: str, name: str, choices: Iterable[Any]) -> Knob:
    """A parallelism knob."""
    return ordinal(own, name, choices, "parallelism")


def integer(own: str, name: str, choices: Iterable[Any]) -> Knob:
    """A knob of integers."""
    return Knob(own=own, name=name, type="integer", choices=tuple(choices))


def named(own: str, name: str, choices: dict[Any, Any], kind: str = "setting") -> Knob:
    """A categorical knob: spelled value to the simulator's."""
    return Knob(
        own=own,
        name=name,
        type="categorical",
        choices=tuple(choices),
        kind=kind,
        means=tuple(choices.values()),
    )


def switch(own: str, name: str) -> Knob:
    """A boolean setting."""
    return Knob(own=own, name=name, type="bool", choices=(False, True))


def patches(**names: str) -> tuple[Knob, ...]:
    """Boolean patches, the simulator's name to the spelled one."""
    assert set(names) <= set(PATCHES)
    return tuple(
        Knob(own=own, name=name, type="bool", choices=(False, True), kind="patch")
        for own, name in names.items()
    )


def breaks(*rows: tuple[str, dict[str, Any]]) -> tuple[Break, ...]:
    """Breaks from (status, {knob: value or tuple of values})."""
    return tuple(
        Break(
            when=tuple((k, v if isinstance(v, tuple) else (v,)) for k, v in when.items()),
            status=status,
        )
        for status, when in rows
    )


def surprises(seed: int, knobs: tuple[Knob, ...], base: Constants) -> Constants:
    """`base` with hidden pair and single effects that no textbook tells, by seed."""
    rng = np.random.default_rng(seed)
    free = [k for k in knobs if k.own not in ("dp", "accum", "workers", "pin")]
    pairs = []
    for _ in range(14):
        a, b = (free[int(i)] for i in rng.choice(len(free), 2, replace=False))
        x = a.values[int(rng.integers(len(a.values)))]
        y = b.values[int(rng.integers(len(b.values)))]
        slower, larger = float(rng.normal(0.004, 0.03)), float(rng.normal(0.0, 0.015))
        pairs.append((a.own, x, b.own, y, slower, larger))
    singles = []
    for k in free:
        if k.kind != "parallelism" and rng.random() < 0.35:
            value = k.values[int(rng.integers(1, len(k.values)))]
            singles.append((k.own, value, float(rng.normal(0.0, 0.015))))
    return replace(base, pairs=tuple(pairs), singles=tuple(singles))
