"""P(valid): what breaks, learned from which values and pairs never stood in a good trial.

Every break has a cause among the single values and pairs of values that no good trial has had;
the blame of one break is shared among its suspects. Leaves out the text of errors and causes of
three values together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from infrarsi.frozen import Scalar
from infrarsi.knobs import Setting
from infrarsi.models.encoding import Encoding, Floats

Cause = frozenset[tuple[str, Scalar]]

_UNSEEN_SINGLE = 0.04
_UNSEEN_PAIR = 0.004
_FULL_BLAME = 0.97


@dataclass(frozen=True)
class ValidityModel:
    """`cleared` causes stood in a good trial; `blame` is each suspect's probability to break."""

    encoding: Encoding
    cleared: frozenset[Cause]
    blame: dict[Cause, float]

    def p_valid(self, settings: Sequence[Setting]) -> Floats:
        """Probability that a trial neither crashes nor is rejected, shape (n,)."""
        return np.exp([self._log_p(setting) for setting in settings])

    def _log_p(self, setting: Setting) -> float:
        suspects = [c for c in _causes(self.encoding, setting) if c not in self.cleared]
        return float(sum(np.log1p(-self.blame.get(c, _prior(c))) for c in suspects))


def fit_validity(
    encoding: Encoding, good: Sequence[Setting], broken: Sequence[Setting]
) -> ValidityModel:
    """Fit on trials that ran to their end (`good`) and that broke.

    Out of memory is neither. The baseline's own values are never suspects.
    """
    cleared = frozenset(c for setting in good for c in _causes(encoding, setting))
    survives: dict[Cause, float] = {}
    for setting in broken:
        suspects = [c for c in _causes(encoding, setting) if c not in cleared]
        total = sum(_prior(c) for c in suspects)
        for cause in suspects:
            share = _FULL_BLAME * _prior(cause) / total
            survives[cause] = survives.get(cause, 1 - _prior(cause)) * (1 - share)
    blame = {cause: min(1 - s, 0.999) for cause, s in survives.items()}
    return ValidityModel(encoding, cleared, blame)


def _causes(encoding: Encoding, setting: Setting) -> list[Cause]:
    changes = encoding.changes(setting)
    singles = [frozenset({change}) for change in changes]
    return singles + [frozenset(pair) for pair in combinations(changes, 2)]


def _prior(cause: Cause) -> float:
    return _UNSEEN_SINGLE if len(cause) == 1 else _UNSEEN_PAIR
