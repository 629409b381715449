"""Predicted values with 90 % intervals, as the models return them."""

from dataclasses import dataclass

from infrarsi.frozen import Scalar
from infrarsi.models.encoding import Floats

LEVEL = 0.90
Z = 1.6448536269514722
"""Standard normal quantile of the interval's upper end."""


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """One entry a setting, in the quantity's own unit."""

    value: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What one value changes against the baseline's, natural log of the ratio, with its sd."""

    knob: str
    value: Scalar
    mean: float
    sd: float
