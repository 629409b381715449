"""How much a setting promises: log expected improvement, times the chances that it runs.

Expected improvement over the best posterior mean, in log step time (Jones, Schonlau and Welch
1998), with the logarithm kept accurate far in the tail.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import log_ndtr
from scipy.stats import norm

from infrarsi.knobs import Setting
from infrarsi.models.encoding import Floats
from infrarsi.models.step_time import StepTimeModel
from infrarsi.search.beliefs import Beliefs

_TAIL = -6.0


def score(
    settings: Sequence[Setting], model: StepTimeModel, beliefs: Beliefs, best_log_time: float
) -> Floats:
    """The sum log EI + log P(fits) + log P(valid), shape (n,); higher is better."""
    mean, sd = model.log_time(settings)
    chances = np.log(np.maximum(beliefs.p_fit(settings), 1e-12))
    chances = chances + np.log(np.maximum(beliefs.validity.p_valid(settings), 1e-12))
    return log_expected_improvement(mean, sd, best_log_time) + chances


def log_expected_improvement(mean: Floats, sd: Floats, best: float) -> Floats:
    """The logarithm of E[max(best - value, 0)] for normal values."""
    z = (best - mean) / sd
    near = np.maximum(z, _TAIL)
    direct = np.log(norm.pdf(near) + near * np.exp(log_ndtr(near)))
    far = np.minimum(z, _TAIL)
    tail = norm.logpdf(far) - 2 * np.log(-far)
    return np.asarray(np.where(z > _TAIL, direct, tail) + np.log(sd), dtype=np.float64)
