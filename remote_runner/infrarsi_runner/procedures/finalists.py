"""Choosing finalists, and pruning each before it is frozen.

A part is dropped where the searcher expects the bundle to be at least as fast without it; what
noise cannot tell apart from a gain stays grouped. The pruned bundle is confirmed as it is, on
pairs of its own, whatever was expected of it.
"""

from infrarsi.frozen import Frozen
from infrarsi.knobs import Candidate, Setting
from infrarsi.trial import Completed, Trial
from infrarsi_runner.predictions import Predicting
from infrarsi_runner.procedures.job import Job


class FrozenBundle(Frozen):
    """A finalist as it goes to confirmation; `pruned` are the parts of its trial it has lost."""

    trial: int
    candidate: Candidate
    pruned: tuple[str, ...] = ()


class Chosen(Frozen):
    """The finalists in the order they are confirmed."""

    finalists: tuple[FrozenBundle, ...]


def choose_finalists(job: Job, trials: list[Trial], search: Predicting) -> Chosen:
    """The fastest measured trials that beat the baseline, pruned, no two alike."""
    measured = [t for t in trials if isinstance(t.outcome, Completed)]
    baseline_s = step_s(measured[0])
    better = sorted((t for t in measured[1:] if step_s(t) < baseline_s), key=step_s)
    chosen: list[FrozenBundle] = []
    for trial in better:
        bundle = _prune(job, trial, search)
        if bundle.candidate.changed(job.space) and all(
            bundle.candidate != other.candidate for other in chosen
        ):
            chosen.append(bundle)
    return Chosen(finalists=tuple(chosen[: job.lock.contract.protocol.max_finalists]))


def step_s(trial: Trial) -> float:
    """A completed trial's step time, s."""
    assert isinstance(trial.outcome, Completed)
    return trial.outcome.step_time_s


def _prune(job: Job, trial: Trial, search: Predicting) -> FrozenBundle:
    """Drop the part whose absence is expected to gain most, until none is."""
    start = job.space.default_setting()
    setting: Setting = job.space.complete(trial.candidate.setting)
    dropped: list[str] = []
    while names := [name for name in setting if setting[name] != start[name]]:
        without = [{**setting, name: start[name]} for name in names]
        now, *then = (p["step_time_s"]["value"] for p in search.predict([setting, *without]))
        fastest = min(range(len(names)), key=lambda i: then[i])
        if then[fastest] > now:
            break
        setting = without[fastest]
        dropped.append(names[fastest])
    return FrozenBundle(
        trial=trial.number, candidate=Candidate(setting=setting), pruned=tuple(dropped)
    )
