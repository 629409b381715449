"""Searcher: ask for a candidate, tell what came of it. Deterministic given seed and tells.

Plain dictionaries in and out, so that a service or a script can drive it. Leaves out running
anything, confirmation (the search's own best reading is never a claimed gain), and experience
from the bank.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator

from infrarsi.errors import UsageError
from infrarsi.knobs import Setting
from infrarsi.models.prediction import Prediction
from infrarsi.search.acquisition import score
from infrarsi.search.beliefs import Beliefs, fit_beliefs
from infrarsi.search.claims import read_claims, values_out
from infrarsi.search.outcomes import Told, read_outcome
from infrarsi.search.pool import gather
from infrarsi.search.prices import price_all
from infrarsi.search.seeds import draw_from, next_seed
from infrarsi.search.space import Valid, read_space

_N_BEST = 5
_MOST_SAMPLES = 50


class Searcher:
    """Bayesian search over a space of knobs and patches.

    The next ask depends on the seed, what was told in which order, and what is pending; not on
    whether what was told had been asked for. A space without knobs has one setting, `{}`.

    Args:
        space: `{"knobs": {name: {"type": "ordinal|integer|categorical|bool", "choices": [...],
            "kind": "setting|parallelism|patch"}}}`, optionally with "default".
        valid: says why a setting is not allowed, or None where it is.
        sample: a random allowed setting, where constraints are too tight to guess.
        job: what is known of the job; used here: `capacity_gib`, `base_mem_gib` (what a process
            uses before the job allocates).
        claims: dictionaries that name a `knob` and a `value`, see `search.claims`.
        bank: accepted and not used yet.
        seed: of all random choices.
    """

    def __init__(
        self,
        space: Mapping[str, Any],
        valid: Valid | None = None,
        sample: Callable[[Generator], Setting] | None = None,
        job: Mapping[str, Any] | None = None,
        claims: Iterable[Mapping[str, Any]] = (),
        bank: object | None = None,
        seed: int = 0,
    ) -> None:
        """Check the space and the claims; raises UsageError where they cannot be used."""
        self._space = read_space(space, valid)
        self._claims = read_claims(claims, self._space)
        self._sample = sample
        self._capacity_gib: float | None = (job or {}).get("capacity_gib")
        self._base_gib: float = (job or {}).get("base_mem_gib") or 0.0
        self._bank = bank
        self._seed = seed
        self._told: list[Told] = []
        self._pending: list[Setting] = []
        self._beliefs: Beliefs | None = None

    def ask(self) -> Setting:
        """The next setting to try, complete; never one asked for or told before.

        The first is the baseline unless it was told. Raises UsageError where every allowed
        setting was tried.
        """
        setting = self._choose(self._stream())
        self._pending.append(setting)
        return dict(setting)

    def exhausted(self) -> bool:
        """Whether `ask` would raise, because every allowed setting was told or is pending.

        In a space too large to list: whether no other was found. Changes nothing.
        """
        used, rng = self._used(), self._stream()
        return bool(used) and self._next_seed(used, rng) is None and not self._pool(used, rng)

    def tell(self, setting: Mapping[str, Any], outcome: Mapping[str, Any]) -> None:
        """Learn from a trial; the baseline is told like any other, and may be told first.

        Args:
            setting: knob to value; knobs left out have the baseline's.
            outcome: `{"status": "ok|oom|compile_error|nan|timeout|crashed|rejected",
                "step_time_s", "peak_mem_gib", "mem_at_least_gib", "code"}` where known; a
                rejection's code such as "S405" can take patches out, see `search.claims`.
        """
        if not self._told and not self._pending and not self._has_start():
            self._space = self._space.with_baseline(setting)
        complete = self._space.complete(setting)
        told = read_outcome(complete, outcome)
        key = self._space.key(complete)
        self._pending = [p for p in self._pending if self._space.key(p) != key]
        self._told.append(told)
        self._space = self._space.without(values_out(self._space, self._told))
        self._beliefs = None

    def best(self) -> Setting | None:
        """The completed setting with the lowest expected step time, or None before one."""
        ranked = self._ranked()
        return dict(ranked[0]) if ranked else None

    def predict(self, settings: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """What each setting would give.

        `step_time_s` and `peak_mem_gib` are `{"value", "low", "high"}` (90 %), None where no
        trial has told anything of the quantity; `p_fit` and `p_valid` are probabilities.
        """
        complete = [self._space.complete(s) for s in settings]
        if not complete:
            return []
        beliefs = self._current()
        times = beliefs.step_time.predict(complete) if beliefs.step_time else None
        peaks = beliefs.memory.predict(complete) if beliefs.memory else None
        p_fit, p_valid = beliefs.p_fit(complete), beliefs.validity.p_valid(complete)
        return [
            {
                "step_time_s": _interval(times, i),
                "peak_mem_gib": _interval(peaks, i),
                "p_fit": float(p_fit[i]),
                "p_valid": float(p_valid[i]),
            }
            for i in range(len(complete))
        ]

    def prices(self) -> list[dict[str, Any]]:
        """What each value costs or saves against the baseline's: see `search.prices`."""
        return price_all(self._space, self._told, self._current())

    def _choose(self, rng: Generator) -> Setting:
        used = self._used()
        if not used:
            return self._first(rng)
        seed = self._next_seed(used, rng)
        if seed is not None:
            return seed
        pool = self._pool(used, rng)
        if not pool:
            raise UsageError("Every allowed setting was tried.", "Stop the search here.")
        beliefs = self._imagined()
        if beliefs.step_time is None:
            return pool[int(np.argmax(_log_chances(beliefs, pool)))]
        best_log_time = float(np.min(beliefs.step_time.log_time(self._starts())[0]))
        return pool[int(np.argmax(score(pool, beliefs.step_time, beliefs, best_log_time)))]

    def _stream(self) -> Generator:
        """Randomness of the next ask: a replay that only tells gives the same as asking did."""
        return np.random.default_rng([self._seed, len(self._told) + len(self._pending)])

    def _used(self) -> list[Setting]:
        return [*(t.setting for t in self._told), *self._pending]

    def _next_seed(self, used: Sequence[Setting], rng: Generator) -> Setting | None:
        return next_seed(self._space, self._claims, used, lambda: self._draw(rng))

    def _pool(self, used: Sequence[Setting], rng: Generator) -> list[Setting]:
        return gather(self._space, self._starts(), used, lambda: self._draw(rng))

    def _starts(self) -> list[Setting]:
        return self._ranked()[:_N_BEST] or [self._space.baseline]

    def _has_start(self) -> bool:
        return self._space.has_default and self._space.allows(self._space.baseline)

    def _first(self, rng: Generator) -> Setting:
        """The user's own start; where that is not allowed, a setting that is becomes the start."""
        if not self._space.allows(self._space.baseline):
            self._space = self._space.with_baseline(self._draw(rng))
            self._beliefs = None
        return self._space.baseline

    def _draw(self, rng: Generator) -> Setting:
        if self._sample is None:
            return draw_from(self._space, rng)
        for _ in range(_MOST_SAMPLES):
            setting = self._space.complete(self._sample(rng))
            if not self._space.has_value_out(setting):
                return setting
        return self._space.baseline

    def _ranked(self) -> list[Setting]:
        """Distinct completed settings, the fastest expected first."""
        completed = {self._space.key(t.setting): t.setting for t in self._told if t.status == "ok"}
        settings = list(completed.values())
        model = self._current().step_time
        if model is None or not settings:
            return []
        order = np.argsort(model.log_time(settings)[0], kind="stable")
        return [settings[int(i)] for i in order]

    def _current(self) -> Beliefs:
        if self._beliefs is None:
            self._beliefs = self._fit(self._told)
        return self._beliefs

    def _imagined(self) -> Beliefs:
        """Beliefs if every pending trial came out as expected, so that asks spread."""
        model = self._current().step_time
        if model is None or not self._pending:
            return self._current()
        expected = np.exp(model.log_time(self._pending)[0])
        imagined = [
            Told(setting=s, status="nan", step_time_s=float(t))
            for s, t in zip(self._pending, expected, strict=True)
        ]
        step_time = self._fit([*self._told, *imagined]).step_time
        return replace(self._current(), step_time=step_time)

    def _fit(self, told: Sequence[Told]) -> Beliefs:
        return fit_beliefs(self._space, told, self._claims, self._capacity_gib, self._base_gib)


def _log_chances(beliefs: Beliefs, pool: Sequence[Setting]) -> np.ndarray[Any, Any]:
    fits = np.log(np.maximum(beliefs.p_fit(pool), 1e-12))
    return fits + np.log(np.maximum(beliefs.validity.p_valid(pool), 1e-12))


def _interval(prediction: Prediction | None, i: int) -> dict[str, float] | None:
    if prediction is None:
        return None
    return {
        "value": float(prediction.value[i]),
        "low": float(prediction.low[i]),
        "high": float(prediction.high[i]),
    }
