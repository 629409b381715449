"""Step time: log seconds as an offset and additive effects, claims as prior, trust learned.

A claim says what a value does to log step time and how surely; how far claims are believed at
all is chosen from a small grid by marginal likelihood, once trials can tell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from infrarsi.frozen import Scalar
from infrarsi.knobs import Setting
from infrarsi.models.encoding import Column, Encoding, Floats
from infrarsi.models.gaussian import Posterior, Prior
from infrarsi.models.prediction import Effect, Prediction, Z

_KNOB_SD = 0.15
_PATCH_SD = 0.3
_DOUBLING_SD = 0.15
_OFFSET_SD = 0.3
_RESIDUAL_SD = 0.06
_TRUSTS = (1.0, 0.5, 0.0)
_WIDENINGS = (1.0, 2.0)


@dataclass(frozen=True, kw_only=True)
class TimeClaim:
    """Expected natural log of before/after, and one standard deviation of it.

    `belief` in its source is 0 to 1; a source whose changes were rejected loses it.
    """

    log_speedup: float
    sd: float
    belief: float = 1.0


Claims = Mapping[tuple[str, Scalar], TimeClaim]


@dataclass(frozen=True)
class StepTimeModel:
    """Fitted on completed trials. `trust` is the share of every claim that is believed."""

    encoding: Encoding
    posterior: Posterior
    trust: float

    def log_time(self, settings: Sequence[Setting]) -> tuple[Floats, Floats]:
        """Mean and standard deviation of log step time (s), shapes (n,)."""
        features, codes = self.encoding.features(settings), self.encoding.codes(settings)
        mean, variance = self.posterior.predict(features, codes)
        return mean, np.sqrt(variance)

    def predict(self, settings: Sequence[Setting]) -> Prediction:
        """Step time, s, with a 90 % interval."""
        mean, sd = self.log_time(settings)
        return Prediction(value=np.exp(mean), low=np.exp(mean - Z * sd), high=np.exp(mean + Z * sd))

    def effects(self, changes: Sequence[tuple[str, Scalar]]) -> tuple[Effect, ...]:
        """The additive effect of each change alone on log step time (negative is faster)."""
        means, sds = self.posterior.effects(self.encoding.effect_rows(changes))
        return tuple(
            Effect(knob=k, value=v, mean=float(m), sd=float(s))
            for (k, v), m, s in zip(changes, means, sds, strict=True)
        )


def fit_step_time(
    encoding: Encoding,
    settings: Sequence[Setting],
    step_times_s: Sequence[float],
    claims: Claims,
    noise_sd: float = 0.03,
) -> StepTimeModel:
    """Fit on at least one completed trial.

    Args:
        encoding: the space and its baseline.
        settings: settings of the completed trials.
        step_times_s: their step times, s, positive.
        claims: by (knob, value).
        noise_sd: standard deviation of one reading's log.
    """
    features, codes = encoding.features(settings), encoding.codes(settings)
    y = np.log(np.asarray(step_times_s, dtype=np.float64))
    noise = np.full(len(y), noise_sd**2)
    offset = _baseline_offset(encoding, settings, y)
    fits = [
        (
            Posterior(_prior(encoding, claims, offset, trust, widening), features, codes, y, noise),
            trust,
        )
        for trust, widening in product(_TRUSTS, _WIDENINGS)
    ]
    posterior, trust = max(fits, key=lambda fit: fit[0].log_evidence)
    return StepTimeModel(encoding, posterior, trust)


def _baseline_offset(encoding: Encoding, settings: Sequence[Setting], y: Floats) -> float:
    own = [value for s, value in zip(settings, y, strict=True) if not encoding.changes(s)]
    return float(np.mean(own if own else y))


def _prior(
    encoding: Encoding, claims: Claims, offset: float, trust: float, widening: float
) -> Prior:
    means = [_claimed(claims, column, trust) for column in encoding.columns]
    sds = [_sd(claims, column, widening) for column in encoding.columns]
    return Prior(
        mean=np.asarray(means, dtype=np.float64),
        sd=np.asarray(sds, dtype=np.float64),
        offset=offset,
        offset_sd=_OFFSET_SD,
        residual_sd=_RESIDUAL_SD,
    )


def _claim(claims: Claims, column: Column) -> TimeClaim | None:
    return None if column.value is None else claims.get((column.knob.name, column.value))


def _claimed(claims: Claims, column: Column, trust: float) -> float:
    claim = _claim(claims, column)
    return -trust * claim.belief * claim.log_speedup if claim else 0.0


def _sd(claims: Claims, column: Column, widening: float) -> float:
    claim = _claim(claims, column)
    if claim:
        return widening * claim.sd
    if column.value is None:
        return _DOUBLING_SD
    return _PATCH_SD if column.knob.is_patch else _KNOB_SD
