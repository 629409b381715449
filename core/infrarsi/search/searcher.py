"""Searcher: ask for a candidate, tell what came of it. Deterministic given seed and tells.

Plain dictionaries in and out, so that a service or a script can drive it. Leaves out running
anything, confirmation (the search's own best reading is never a claimed gain), and experience
from the bank.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from infrarsi.errors import UsageError
from infrarsi.knobs import Setting
from infrarsi.models.encoding import Floats, Rows
from infrarsi.models.prediction import Prediction, Z
from infrarsi.models.step_time import NOISE_SD
from infrarsi.search.acquisition import log_chances, score
from infrarsi.search.beliefs import Beliefs, Facts, fit_beliefs
from infrarsi.search.claims import read_claims, values_out
from infrarsi.search.dominated import is_dominated
from infrarsi.search.layouts import Layouts
from infrarsi.search.outcomes import Told, read_outcome
from infrarsi.search.physics import job_physics
from infrarsi.search.pool import SMALL, climb, gather
from infrarsi.search.practice import common_practice
from infrarsi.search.prices import price_all
from infrarsi.search.seeds import diversity, draw_from, n_seeds
from infrarsi.search.space import Valid, read_space
from infrarsi.search.threads import on_one_thread

PARTS = ("censoring", "pairing", "priors", "revision", "seeds", "physics")
"""What a search can be run without, to see what it is worth."""

_NUMBERS = ("capacity_gib", "base_mem_gib", "noise_frac")
_N_BEST = 5
_MOST_SAMPLES = 50


class Searcher:
    """Bayesian search over a space of knobs and patches.

    The next ask depends on the seed, what was told in which order, and what is pending; not on
    whether what was told had been asked for. A space without knobs has one setting, `{}`.

    Args:
        space: `{"knobs": {name: {"type": "ordinal|integer|categorical|bool", "choices": [...],
            "kind": "setting|parallelism|patch"}}}`, optionally with "default" and "acts_when".
        valid: says why a setting is not allowed, or None where it is.
        sample: a random allowed setting, where constraints are too tight to guess.
        job: what is known of the job: the columns of `infrarsi.estimate` or their short names
            (model shape, hardware); `capacity_gib`, `base_mem_gib` (what a process uses before
            the job allocates), `noise_frac` (standard deviation of one reading).
        claims: dictionaries that name a `knob` and a `value`, see `search.claims`.
        bank: accepted and not used yet.
        seed: of all random choices.
        without: parts left out, of `PARTS`; for measuring what they are worth.
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
        without: Collection[str] = (),
    ) -> None:
        """Check the space and the claims; raises UsageError where they cannot be used."""
        self._without = _known_parts(without)
        self._space = read_space(space, valid)
        self._claims = read_claims(() if "priors" in self._without else claims, self._space)
        self._sample = sample
        self._job = _sound_facts(job)
        self._bank = bank
        self._seed = seed
        self._told: list[Told] = []
        self._pending: list[Rows] = []
        self._beliefs: Beliefs | None = None
        self._facts: Facts | None = None
        self._layouts: Layouts | None = None

    @on_one_thread
    def ask(self) -> Setting:
        """The next setting to try, complete; never one asked for or told before.

        The first is the baseline unless it was told. Raises UsageError where every allowed
        setting was tried.
        """
        row = self._choose(self._stream())
        self._pending.append(row)
        return self._space.setting(row)

    @on_one_thread
    def exhausted(self) -> bool:
        """Whether `ask` would raise, because every allowed setting was told or is pending.

        In a space too large to list: whether no other was found. Changes nothing.
        """
        return bool(len(self._used())) and not len(self._pool(self._stream()))

    def tell(self, setting: Mapping[str, Any], outcome: Mapping[str, Any]) -> None:
        """Learn from a trial; the baseline is told like any other, and may be told first.

        Args:
            setting: knob to value; knobs left out have the baseline's.
            outcome: `{"status": "ok|oom|compile_error|nan|timeout|crashed|rejected",
                "step_time_s", "peak_mem_gib", "mem_at_least_gib", "cost_s", "code"}` where known;
                "ok" without a step time says that it ran (a smoke run, a memory probe). A
                rejection's code such as "S405" can take patches out, see `search.claims`.
        """
        if not self._told and not self._pending and not self._has_start():
            self._start_from(setting)
        complete = self._space.complete(setting)
        told = read_outcome(complete, outcome)
        row = self._row(complete)
        if told.teaches_speed or told.status != "ok":
            self._pending = [p for p in self._pending if (p != row).any()]
        self._told.append(told)
        self._space = self._space.without(values_out(self._space, self._told))
        self._beliefs = None

    @on_one_thread
    def best(self) -> Setting | None:
        """The completed setting with the lowest expected step time, or None before one."""
        ranked = self._ranked()
        return self._space.setting(ranked[0]) if len(ranked) else None

    @on_one_thread
    def predict(self, settings: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """What each setting would give.

        `step_time_s` and `peak_mem_gib` are `{"value", "low", "high"}` (90 %), None where neither
        a trial nor the job's facts tell anything of the quantity; `p_fit` and `p_valid` are
        probabilities.
        """
        rows = self._space.encoding.rows([self._space.complete(s) for s in settings])
        if not len(rows):
            return []
        beliefs = self._current()
        times = beliefs.step_time.predict(rows) if beliefs.step_time else None
        peaks = beliefs.memory.predict(rows) if beliefs.memory else None
        p_fit, p_valid = beliefs.p_fit(rows), beliefs.validity.p_valid(rows)
        return [
            {
                "step_time_s": _interval(times, i),
                "peak_mem_gib": _interval(peaks, i),
                "p_fit": float(p_fit[i]),
                "p_valid": float(p_valid[i]),
            }
            for i in range(len(rows))
        ]

    @on_one_thread
    def prices(self) -> list[dict[str, Any]]:
        """What each value costs or saves against the baseline's: see `search.prices`."""
        return price_all(self._space, self._told, self._current())

    @on_one_thread
    def reliability(self) -> list[dict[str, Any]]:
        """How much of what each source claims has held so far.

        `{"source", "kind", "n", "kept_frac": {"value", "low", "high"}}`: 1 is all of it, 0
        nothing, below 0 the reverse; `n` counts the trials that carried one of its claims.
        """
        model = self._current().step_time
        return [
            {
                "source": trust.source,
                "kind": trust.kind,
                "n": trust.n,
                "kept_frac": {
                    "value": trust.mean,
                    "low": trust.mean - Z * trust.sd,
                    "high": trust.mean + Z * trust.sd,
                },
            }
            for trust in (model.trust() if model else ())
        ]

    @on_one_thread
    def suspects(self, setting: Mapping[str, Any]) -> list[list[list[Any]]]:
        """Changes and pairs of changes that never stood in a good trial, most suspicious first.

        Each is a list of one or two `[knob, value]`.
        """
        found = self._current().validity.suspects(self._space.complete(setting))
        return [[[name, value] for name, value in cause] for cause in found]

    def _choose(self, rng: Generator) -> Rows:
        used = self._used()
        if not len(used):
            return self._first(rng)
        pool = self._pool(rng)
        if not len(pool):
            raise UsageError("Every allowed setting was tried.", "Stop the search here.")
        beliefs = self._imagined()
        promise = self._promise(used, beliefs)
        if self._space.n_settings <= SMALL:
            return pool[int(np.argmax(promise(pool)))]
        met, scores = climb(self._space, pool, promise)
        fresh = self._is_unused(met)
        return met[fresh][int(np.argmax(scores[fresh]))]

    def _promise(self, used: Rows, beliefs: Beliefs) -> Callable[[Rows], Floats]:
        """The score of rows; while the start is made, with a bonus for being unlike those used."""
        best = self._best_log_time(beliefs)
        is_start = "seeds" not in self._without and len(used) <= n_seeds(self._space)

        def promise(rows: Rows) -> Floats:
            made = score(rows, beliefs, best) if best is not None else log_chances(rows, beliefs)
            if is_start:
                made = made + diversity(self._space, rows, used) + log_chances(rows, beliefs)
            return made

        return promise

    def _best_log_time(self, beliefs: Beliefs) -> float | None:
        if beliefs.step_time is None:
            return None
        return float(np.min(beliefs.step_time.log_time(self._starts())[0]))

    def _stream(self) -> Generator:
        """Randomness of the next ask: a replay that only tells gives the same as asking did."""
        return np.random.default_rng([self._seed, len(self._told) + len(self._pending)])

    def _used(self) -> Rows:
        """Rows that are not asked for again, shape (n, n_knobs).

        What only ran without being timed is not among them.
        """
        tried = [t.setting for t in self._told if t.status != "ok" or t.teaches_speed]
        rows = self._space.encoding.rows(tried)
        return np.concatenate([rows, *(p[None, :] for p in self._pending)])

    def _pool(self, rng: Generator) -> Rows:
        rows = gather(
            self._space,
            self._starts(),
            self._table(rng),
            lambda: self._draw(rng),
            self._current(),
            self._without,
        )
        return rows[self._is_unused(rows)] if len(rows) else rows

    def _is_unused(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether a row was neither tried nor is sure to fail as one tried did, shape (n,)."""
        used = {row.tobytes() for row in self._used()}
        fresh = np.asarray([row.tobytes() not in used for row in rows], dtype=np.bool_)
        return fresh & ~is_dominated(self._space, rows, self._told, self._claims)

    def _table(self, rng: Generator) -> Layouts:
        if self._layouts is None:
            facts = self._known_facts()
            self._layouts = Layouts(
                self._space, lambda: self._draw(rng), facts.physics, facts.capacity_gib
            )
        return self._layouts

    def _starts(self) -> Rows:
        ranked = self._ranked()[:_N_BEST]
        return ranked if len(ranked) else self._space.start[None, :]

    def _has_start(self) -> bool:
        return self._space.has_default and self._space.allows(self._space.baseline)

    def _start_from(self, setting: Mapping[str, Any]) -> None:
        self._space = self._space.with_baseline(setting)
        self._beliefs = self._facts = self._layouts = None

    def _first(self, rng: Generator) -> Rows:
        """The user's own start; where that is not allowed, a setting that is becomes the start."""
        if not self._space.allows(self._space.baseline):
            drawn = self._draw(rng)
            if not len(self._space.allowed(drawn[None, :])):
                raise UsageError("No allowed setting was found.", "Give `sample`, or allow one.")
            self._start_from(self._space.setting(drawn))
        return self._space.start

    def _draw(self, rng: Generator) -> Rows:
        if self._sample is None:
            return draw_from(self._space, rng)
        for _ in range(_MOST_SAMPLES):
            rows = self._space.allowed(self._row(self._space.complete(self._sample(rng)))[None, :])
            if len(rows):
                return rows[0]
        return self._space.start

    def _row(self, setting: Setting) -> Rows:
        return self._space.encoding.rows([setting])[0]

    def _ranked(self) -> Rows:
        """Distinct completed rows, the fastest expected first."""
        measured = self._space.encoding.rows([t.setting for t in self._told if t.is_measured])
        model = self._current().step_time
        if model is None or not len(measured):
            return measured[:0]
        _, first = np.unique(measured, axis=0, return_index=True)
        rows = measured[np.sort(first)]
        return rows[np.argsort(model.log_time(rows)[0], kind="stable")]

    def _current(self) -> Beliefs:
        if self._beliefs is None:
            self._beliefs = self._fit(self._told)
        return self._beliefs

    def _imagined(self) -> Beliefs:
        """Beliefs if every pending trial came out as expected, so that asks spread."""
        model = self._current().step_time
        if model is None or not self._pending:
            return self._current()
        expected = np.exp(model.log_time(np.stack(self._pending))[0])
        imagined = [
            Told(setting=self._space.setting(row), status="nan", step_time_s=float(t))
            for row, t in zip(self._pending, expected, strict=True)
        ]
        step_time = self._fit([*self._told, *imagined]).step_time
        return replace(self._current(), step_time=step_time)

    def _fit(self, told: Sequence[Told]) -> Beliefs:
        return fit_beliefs(self._space.encoding, told, self._known_facts())

    def _known_facts(self) -> Facts:
        if self._facts is None:
            self._facts = self._read_facts()
        return self._facts

    def _read_facts(self) -> Facts:
        job = None if "physics" in self._without else self._job
        practice = () if "priors" in self._without else common_practice(self._space, self._claims)
        return Facts(
            claims=(*self._claims, *practice),
            physics=job_physics(self._space.encoding, job),
            capacity_gib=self._job.get("capacity_gib"),
            base_gib=self._job.get("base_mem_gib") or 0.0,
            noise_frac=self._job.get("noise_frac") or NOISE_SD,
            without=self._without,
        )


def _sound_facts(job: Mapping[str, Any] | None) -> dict[str, Any]:
    """The job's facts; raises UsageError where one the search itself uses is no sound number."""
    if job is not None and not isinstance(job, Mapping):
        raise UsageError(
            f"The job's facts cannot be {job!r}.", "Give a mapping of names to values."
        )
    facts = dict(job or {})
    for name in _NUMBERS:
        value = facts.get(name)
        if value is None:
            continue
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value) or value < 0:
            raise UsageError(f"{name} cannot be {value!r}.", "Give a positive number.")
    return facts


def _known_parts(without: Collection[str]) -> frozenset[str]:
    unknown = [part for part in without if part not in PARTS]
    if unknown:
        raise UsageError(f"There is no part {unknown[0]!r}.", f"Parts are {', '.join(PARTS)}.")
    return frozenset(without)


def _interval(prediction: Prediction | None, i: int) -> dict[str, float] | None:
    if prediction is None:
        return None
    return {
        "value": float(prediction.value[i]),
        "low": float(prediction.low[i]),
        "high": float(prediction.high[i]),
    }
