"""Choosing finalists, and pruning each before it is frozen.

A part is dropped where the searcher expects the bundle to be faster without it by more than a
reading's noise, or not to change at all; what the noise cannot resolve stays grouped with the
rest. The pruned bundle is confirmed as it is, on pairs of its own, whatever was expected of it.

Where the judge rejects a bundle, whatever holds all of it would be rejected too and is passed
over; a bundle that has lost one part of a rejected one may take the free place. Where it was the
numerics of a bundle of another precision, bundles in the job's own precision go first.
"""

import math
from collections.abc import Sequence

from infrarsi.frozen import Frozen
from infrarsi.knobs import Candidate, Setting, Space
from infrarsi.patches import Declined, materialise, overlay
from infrarsi.reading import read
from infrarsi.trial import Trial
from infrarsi_runner.predictions import Predicting
from infrarsi_runner.procedures.job import Job

_NO_CHANGE = 1e-9
"""A part that changes less does nothing here: it does not act in this setting."""


class FrozenBundle(Frozen):
    """A finalist as it goes to confirmation; `pruned` are the parts of its trial it has lost.

    `without` is the one of them it lost in case the rest together with it is rejected.
    `keeps_precision` is whether it reads as being in the job's own precision.
    """

    trial: int
    candidate: Candidate
    pruned: tuple[str, ...] = ()
    without: str | None = None
    keeps_precision: bool = False

    @property
    def name(self) -> str:
        """Names its confirmation in the campaign."""
        return f"trial-{self.trial}" + (f"-without-{self.without}" if self.without else "")


class Chosen(Frozen):
    """The finalists in the order they are confirmed, and what may take a rejected one's place."""

    finalists: tuple[FrozenBundle, ...]
    fallbacks: tuple[FrozenBundle, ...] = ()


class Tried(Frozen):
    """A bundle that was confirmed, and what came of it; `codes` are of its violations."""

    bundle: FrozenBundle
    verdict: str
    codes: tuple[str, ...] = ()

    @property
    def is_of_precision(self) -> bool:
        """Whether its numerics were rejected and its precision may be why."""
        is_numeric = any(code.startswith("L") for code in self.codes)
        return is_numeric and not self.bundle.keeps_precision


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
        bundle = _read(job, _prune(job.space, trial, search, noise_sd))
        if bundle.candidate.changed(job.space) and all(
            bundle.candidate != other.candidate for other in chosen
        ):
            chosen.append(bundle)
    fallbacks = _fallbacks(job.space, chosen, search, baseline_s)
    return Chosen(
        finalists=tuple(chosen), fallbacks=tuple(_read(job, bundle) for bundle in fallbacks)
    )


def next_finalist(
    chosen: Chosen, space: Space, tried: Sequence[Tried], most: int
) -> FrozenBundle | None:
    """What is confirmed next, or None.

    Args:
        chosen: as `choose_finalists` chose.
        space: the job's.
        tried: what was confirmed so far.
        most: how many may be confirmed in all.
    """
    if len(tried) >= most:
        return None
    rejected = [one for one in tried if one.verdict == "rejected"]
    trials = {one.bundle.trial for one in rejected}
    known = [one.bundle.candidate for one in tried]
    refused = [one.bundle.candidate.changed(space).items() for one in rejected]
    left = [
        bundle
        for bundle in (*chosen.finalists, *(b for b in chosen.fallbacks if b.trial in trials))
        if bundle.candidate not in known
        and not any(parts <= bundle.candidate.changed(space).items() for parts in refused)
    ]
    if any(one.is_of_precision for one in rejected):
        left.sort(key=lambda bundle: not bundle.keeps_precision)
    return left[0] if left else None


def _fallbacks(
    space: Space, chosen: Sequence[FrozenBundle], search: Predicting, baseline_s: float
) -> tuple[FrozenBundle, ...]:
    """Each bundle without one of its parts, those that are expected to be fastest first."""
    start = space.default_setting()
    made = [
        FrozenBundle(
            trial=bundle.trial,
            candidate=Candidate(setting={**bundle.candidate.setting, name: start[name]}),
            pruned=(*bundle.pruned, name),
            without=name,
        )
        for bundle in chosen
        for name in bundle.candidate.changed(space)
        if len(bundle.candidate.changed(space)) > 1
    ]
    predicted = search.predict([bundle.candidate.setting for bundle in made]) if made else []
    timed = [(p["step_time_s"]["value"], b) for p, b in zip(predicted, made, strict=True)]
    faster = sorted((pair for pair in timed if pair[0] < baseline_s), key=lambda pair: pair[0])
    return tuple(bundle for _, bundle in faster)


def _read(job: Job, bundle: FrozenBundle) -> FrozenBundle:
    """The bundle with its precision as it reads."""
    made = materialise(bundle.candidate, job.space, job.sources, job.launch)
    if isinstance(made, Declined):
        return bundle
    now = read(overlay(job.sources, made.edits), made.launch).fact("precision")
    own = job.reading.fact("precision")
    keeps = now is not None and own is not None and now.value == own.value
    return bundle.model_copy(update={"keeps_precision": keeps})


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
