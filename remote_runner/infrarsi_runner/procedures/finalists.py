"""Choosing finalists, and pruning each before it is frozen.

A part is dropped where the searcher expects the bundle to be faster without it by more than a
reading's noise, or not to change at all; what the noise cannot resolve stays grouped with the
rest. The pruned bundle is confirmed as it is, on pairs of its own, whatever was expected of it.
"""

import math
from collections.abc import Sequence

from infrarsi.frozen import Frozen
from infrarsi.knobs import Candidate, Setting, Space
from infrarsi.trial import Trial
from infrarsi_runner.predictions import Predicting
from infrarsi_runner.procedures.job import Job

_NO_CHANGE = 1e-9
"""A part that changes less does nothing here: it does not act in this setting."""


class FrozenBundle(Frozen):
    """A finalist as it goes to confirmation; `pruned` are the parts of its trial it has lost."""

    trial: int
    candidate: Candidate
    pruned: tuple[str, ...] = ()


class Chosen(Frozen):
    """The finalists in the order they are confirmed."""

    finalists: tuple[FrozenBundle, ...]


def choose_finalists(
    job: Job, trials: Sequence[Trial], search: Predicting, *, noise_sd: float
) -> Chosen:
    """The fastest measured trials that beat the baseline, pruned, no two alike.

    Args:
        job: its protocol says how many.
        trials: the baseline first.
        search: told of all of them.
        noise_sd: a reading's noise, natural log.
    """
    [(baseline_s, _), *measured] = [(t.step_time_s, t) for t in trials if t.step_time_s is not None]
    better = sorted((pair for pair in measured if pair[0] < baseline_s), key=lambda pair: pair[0])
    most = job.lock.contract.protocol.max_finalists
    chosen: list[FrozenBundle] = []
    for _, trial in better:
        if len(chosen) == most:
            break
        bundle = _prune(job.space, trial, search, noise_sd)
        if bundle.candidate.changed(job.space) and all(
            bundle.candidate != other.candidate for other in chosen
        ):
            chosen.append(bundle)
    return Chosen(finalists=tuple(chosen))


def _prune(space: Space, trial: Trial, search: Predicting, noise_sd: float) -> FrozenBundle:
    """Drop the part whose absence is expected to gain most, until none is worth dropping."""
    start = space.default_setting()
    setting: Setting = space.complete(trial.candidate.setting)
    dropped: list[str] = []
    while names := [name for name in setting if setting[name] != start[name]]:
        without = [{**setting, name: start[name]} for name in names]
        now, *then = (p["step_time_s"]["value"] for p in search.predict([setting, *without]))
        gains = [math.log(now / time) for time in then]
        most = max(range(len(names)), key=lambda i: (_is_worth(gains[i], noise_sd), gains[i]))
        if not _is_worth(gains[most], noise_sd):
            break
        setting = without[most]
        dropped.append(names[most])
    return FrozenBundle(
        trial=trial.number, candidate=Candidate(setting=setting), pruned=tuple(dropped)
    )


def _is_worth(gain: float, noise_sd: float) -> bool:
    """Whether a part should go, by the natural log of what going without it gains."""
    return gain > noise_sd or abs(gain) < _NO_CHANGE
