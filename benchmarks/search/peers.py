"""Optuna's samplers as its users run them: TPE and a Gaussian process, with the static check.

A suggestion that is not allowed is told as failed and asked again a few times; then its layout
is replaced by a sampled one (Optuna has no way to be given such constraints). Failed trials are
left out, or told with a penalised value.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.trial import TrialState

from search.methods import BestMeasured, Ours, Outcome
from search.workload import Knob, Searched, Setting, Workload

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.filterwarnings("ignore", module="optuna")
REPEATS = 5


class Optuna(BestMeasured):
    """One study over the space; ordered knobs are integers of their rank."""

    def __init__(
        self,
        w: Searched,
        seed: int,
        sampler: Callable[[int], optuna.samplers.BaseSampler],
        penalty: bool,
    ) -> None:
        super().__init__()
        self.w, self.penalty = w, penalty
        self.rng = np.random.default_rng([seed, 3])
        self.study = optuna.create_study(sampler=sampler(seed))
        self.space = {k["name"]: k["distribution"] for k in distributions(w)}
        self.worst = 0.0
        self.first: list[Setting] = []

    def ask(self) -> Setting:
        if self.first:
            return self.first.pop(0)
        setting = self.suggest()
        for _ in range(REPEATS - 1):
            if self.w.valid(setting) is None:
                return setting
            setting = self.suggest()
        return self.w.repaired(setting, self.rng)

    def suggest(self) -> Setting:
        """A suggestion, allowed or not; what is run is added to the study when told."""
        trial = self.study.ask(dict(self.space))
        self.study.tell(trial, state=TrialState.FAIL)
        return {k.name: decoded(k, trial.params[k.name]) for k in self.w.knobs}

    def tell(self, setting: Setting, outcome: Outcome) -> None:
        super().tell(setting, outcome)
        value = None
        if outcome["status"] == "ok":
            value = math.log(outcome["step_time_s"])
            self.worst = max(self.worst, value) if self.worst else value
        elif self.penalty:
            value = self.worst + math.log(2)
        state = TrialState.FAIL if value is None else TrialState.COMPLETE
        params = {k.name: encoded(k, setting[k.name]) for k in self.w.knobs}
        self.study.add_trial(
            optuna.trial.create_trial(
                state=state, params=params, distributions=dict(self.space), value=value
            )
        )


def distributions(w: Searched) -> list[dict[str, Any]]:
    """Optuna's distribution of every knob."""
    return [{"name": k.name, "distribution": distribution(k)} for k in w.knobs]


def distribution(k: Knob) -> BaseDistribution:
    """Ranks of ordered knobs, else categories."""
    if k.type in ("ordinal", "integer"):
        return IntDistribution(0, len(k.choices) - 1)
    return CategoricalDistribution(list(k.choices))


def decoded(k: Knob, value: Any) -> Any:
    """A knob's value from Optuna's."""
    return k.choices[value] if k.type in ("ordinal", "integer") else value


def encoded(k: Knob, value: Any) -> Any:
    """Optuna's value of a knob's."""
    return k.choices.index(value) if k.type in ("ordinal", "integer") else value


def first_of_ours(w: Workload, seed: int, count: int) -> list[Setting]:
    """The settings `Searcher` would start with, before it learned anything but the baseline."""
    if not count:
        return []
    searcher = Ours(w, seed)
    searcher.tell(w.baseline, w.run(w.baseline, np.random.default_rng([seed, 4])))
    return [searcher.ask() for _ in range(count)]


def tpe(seed: int) -> optuna.samplers.BaseSampler:
    """Optuna's default sampler."""
    return optuna.samplers.TPESampler(seed=seed)


def gp(seed: int) -> optuna.samplers.BaseSampler:
    """Optuna's Gaussian process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return optuna.samplers.GPSampler(seed=seed, deterministic_objective=False)


def seeded_tpe(w: Workload, seed: int) -> Optuna:
    """TPE that starts with what ours would start with."""
    method = Optuna(w, seed, tpe, penalty=True)
    method.first = first_of_ours(w, seed, 6)
    return method


PEERS: dict[str, Callable[[Searched, int], Optuna]] = {
    "optuna-tpe": lambda w, s: Optuna(w, s, tpe, penalty=False),
    "optuna-tpe-penalised": lambda w, s: Optuna(w, s, tpe, penalty=True),
    "optuna-gp": lambda w, s: Optuna(w, s, gp, penalty=False),
    "optuna-gp-penalised": lambda w, s: Optuna(w, s, gp, penalty=True),
}
