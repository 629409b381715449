"""The methods behind one interface: `ask`, `tell`, `chosen`; ours with its ablations.

Peers choose the best they measured; ours answers `best()`. Every method is told the baseline
first, and that counts as its first trial.
"""

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from infrarsi.search import Searcher
from search.claims import make_claims
from search.workload import Searched, Setting, Workload

Outcome = dict[str, Any]


class Method(Protocol):
    """A search that is asked and told."""

    def ask(self) -> Setting: ...
    def tell(self, setting: Setting, outcome: Outcome) -> None: ...
    def chosen(self) -> Setting | None: ...


class BestMeasured:
    """Remembers the fastest setting measured."""

    def __init__(self) -> None:
        self.best: Setting | None = None
        self.seconds = math.inf

    def tell(self, setting: Setting, outcome: Outcome) -> None:
        if outcome["status"] == "ok" and outcome["step_time_s"] < self.seconds:
            self.best, self.seconds = setting, outcome["step_time_s"]

    def chosen(self) -> Setting | None:
        return self.best


class RandomValid(BestMeasured):
    """A random allowed setting every time."""

    def __init__(self, w: Searched, seed: int) -> None:
        super().__init__()
        self.sample, self.rng = w.sample, np.random.default_rng([seed, 1])

    def ask(self) -> Setting:
        return self.sample(self.rng)


class CoordinateDescent(BestMeasured):
    """One change to the best so far at a time, each knob in turn, in random order."""

    def __init__(self, w: Workload, seed: int) -> None:
        super().__init__()
        self.w, self.rng = w, np.random.default_rng([seed, 2])
        self.queue: list[Setting] = []
        self.tried: set[str] = set()

    def ask(self) -> Setting:
        start = self.best or self.w.baseline
        for _ in range(3):
            while self.queue:
                setting = start | self.queue.pop()
                if str(setting) not in self.tried and self.w.valid(setting) is None:
                    self.tried.add(str(setting))
                    return setting
            self.fill()
        return self.w.sample(self.rng)

    def fill(self) -> None:
        """Every single change, and as many whole layouts as there are knobs."""
        moves: list[Setting] = [
            {k.name: x} for k in self.w.knobs if k.kind != "parallelism" for x in k.choices
        ]
        layouts = self.w.layouts
        picks = self.rng.permutation(len(layouts))[: len(self.w.knobs)]
        moves += [layouts[int(i)] for i in picks]
        self.queue = [moves[int(i)] for i in self.rng.permutation(len(moves))]


class Ours:
    """`infrarsi.search.Searcher` through its public surface."""

    def __init__(self, w: Workload, seed: int, *, claims: str = "true", **options: Any) -> None:
        job = None if options.pop("no_job", False) else w.job
        told = [] if claims == "none" else make_claims(w, seed, flipped=claims == "flipped")
        known = {"valid": w.valid, "sample": w.sample, "job": job, "claims": told, "seed": seed}
        self.searcher = Searcher(w.space, **known, **options)  # pyright: ignore[reportArgumentType]

    def ask(self) -> Setting:
        return self.searcher.ask()

    def tell(self, setting: Setting, outcome: Outcome) -> None:
        self.searcher.tell(setting, outcome)

    def chosen(self) -> Setting | None:
        return self.searcher.best()


def ours(**options: Any) -> Callable[[Workload, int], Method]:
    """A maker of `Ours` with options."""
    return lambda w, seed: Ours(w, seed, **options)


def without(part: str, **options: Any) -> Callable[[Workload, int], Method]:
    """A maker of `Ours` with one part taken out."""
    return ours(without=(part,), **options)


OURS: dict[str, Callable[[Workload, int], Method]] = {
    "ours": ours(),
    "ours-no-censoring": without("censoring"),
    "ours-no-pairing": without("pairing"),
    "ours-no-claims": ours(claims="none"),
    "ours-no-priors": without("priors"),
    "ours-no-revision": without("revision"),
    "ours-flipped": ours(claims="flipped"),
    "ours-flipped-no-revision": without("revision", claims="flipped"),
    "ours-single-incumbent": without("seeds"),
    "ours-no-physics": without("physics"),
    "ours-no-job": ours(no_job=True),
}


def methods() -> dict[str, Callable[[Workload, int], Method]]:
    """Every method by name; the peers that need Optuna are imported only here."""
    from search.peers import PEERS, seeded_tpe

    simple = {"random": RandomValid, "coordinate": CoordinateDescent}
    return {**OURS, **simple, **PEERS, "optuna-tpe-our-seeds": seeded_tpe}
