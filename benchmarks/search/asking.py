"""What one `ask()` costs in CPU after 100 and 1,000 trials of random allowed settings."""

import time

import numpy as np

from search.methods import Ours
from search.mixtures import all_workloads

REPEATS = 3


def ask_cpu_s(trials: int, name: str = "dense-13b-32gpu") -> dict[str, float]:
    """Seconds of the first ask after `trials` tells, and the median of the next ones."""
    w, rng = all_workloads()[name], np.random.default_rng(8)
    method = Ours(w, 0)
    for _ in range(trials):
        setting = w.sample(rng)
        method.tell(setting, w.run(setting, rng))
    spent = []
    for _ in range(1 + REPEATS):
        before = time.process_time()
        setting = method.ask()
        spent.append(time.process_time() - before)
        method.tell(setting, w.run(setting, rng))
    return {"first": spent[0], "next": float(np.median(spent[1:]))}


def asking_measures() -> dict[str, float]:
    """Milliseconds at 100 and at 1,000 trials."""
    found = {}
    for trials in (100, 1000):
        spent = ask_cpu_s(trials)
        found[f"ask_cpu_ms_at_{trials}"] = 1e3 * spent["next"]
        found[f"first_ask_cpu_ms_at_{trials}"] = 1e3 * spent["first"]
    return found
