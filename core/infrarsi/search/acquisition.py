"""How much a setting promises: log expected improvement, times the chances that it runs, a cost.

Expected improvement over the best posterior mean, in log step time (Jones, Schonlau and Welch
1998), with the logarithm kept accurate far in the tail.
"""

import numpy as np
from scipy.special import log_ndtr

from infrarsi.models.encoding import Floats, Rows
from infrarsi.search.beliefs import Beliefs

_TAIL = -6.0
_HALF_LOG_2PI = 0.9189385332046727


def score(rows: Rows, beliefs: Beliefs, best_log_time: float) -> Floats:
    """The sum log EI + log P(fits) + log P(valid) - log cost, shape (n,); higher is better."""
    chances = log_chances(rows, beliefs)
    if beliefs.step_time is None:
        return chances
    mean, sd = beliefs.step_time.log_time(rows)
    gain = log_expected_improvement(mean, sd, best_log_time)
    return gain + chances - np.log(beliefs.cost(mean, np.exp(chances)))


def log_chances(rows: Rows, beliefs: Beliefs) -> Floats:
    """Log of the probability that a trial fits and runs, shape (n,)."""
    fits = np.log(np.maximum(beliefs.p_fit(rows), 1e-12))
    return fits + np.log(np.maximum(beliefs.validity.p_valid(rows), 1e-12))


def log_expected_improvement(mean: Floats, sd: Floats, best: float) -> Floats:
    """The logarithm of E[max(best - value, 0)] for normal values."""
    z = (best - mean) / sd
    near = np.maximum(z, _TAIL)
    direct = np.log(np.exp(_log_density(near)) + near * np.exp(log_ndtr(near)))
    far = np.minimum(z, _TAIL)
    tail = _log_density(far) - 2 * np.log(-far)
    return np.asarray(np.where(z > _TAIL, direct, tail) + np.log(sd), dtype=np.float64)


def _log_density(z: Floats) -> Floats:
    return -0.5 * z * z - _HALF_LOG_2PI
