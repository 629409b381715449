"""How well what was predicted before each run came true, in counts a reader can check.

Only what was journalled before a run is scored, so that no fit can look at its own answer.
"""

from collections.abc import Iterable, Sequence

from infrarsi.frozen import Frozen
from infrarsi.trial import Completed, Expected, OutOfMemory, Trial, TurnedAway

LEVEL = 0.9
"""Coverage the predicted intervals claim."""


class Coverage(Frozen):
    """Of `n` predicted intervals, `n_within` held what came."""

    n: int
    n_within: int


class Chance(Frozen):
    """Of `n` candidates with a predicted chance, `expected` were to come true and `n_true` did."""

    n: int
    expected: float
    n_true: int


class Scores(Frozen):
    """The predictions of a campaign against what came; intervals are meant to hold `level`.

    Step times are compared as anchored. `fits` and `runs` count candidates, those turned away by
    a short run included: whether they stayed within the memory, and whether they ran at all.
    """

    level: float = LEVEL
    step_time: Coverage = Coverage(n=0, n_within=0)
    peak_mem: Coverage = Coverage(n=0, n_within=0)
    fits: Chance = Chance(n=0, expected=0.0, n_true=0)
    runs: Chance = Chance(n=0, expected=0.0, n_true=0)


def score(trials: Iterable[Trial], turned_away: Iterable[TurnedAway] = ()) -> Scores:
    """Score every prediction that can be; a rejected trial says nothing of speed or memory."""
    tried = [t for t in trials if t.outcome is not None]
    done: list[Trial | TurnedAway] = [*tried, *turned_away]
    return Scores(
        step_time=_coverage((t.predicted_step_time_s, t.step_time_s) for t in tried),
        peak_mem=_coverage((t.predicted_peak_mem_bytes, _peak_bytes(t)) for t in tried),
        fits=_chance(
            [
                (t.predicted_p_fit, isinstance(t.outcome, Completed))
                for t in done
                if isinstance(t.outcome, Completed | OutOfMemory)
            ]
        ),
        runs=_chance(
            [
                (t.predicted_p_valid, isinstance(t.outcome, Completed))
                for t in done
                if not isinstance(t.outcome, OutOfMemory)
            ]
        ),
    )


def is_within(expected: Expected, came_s: float | None) -> bool | None:
    """Whether a step time fell within its predicted interval; None where that cannot be said."""
    return _holds(expected.predicted_step_time_s, came_s)


def describe_scores(scores: Scores) -> tuple[str, ...]:
    """One sentence a quantity that was scored: `7 of 8 step times fell within ...`."""
    sentences = [
        f"{found.n_within} of {found.n} {words} fell within their {100 * scores.level:.0f} % "
        "interval, predicted before the trial."
        for words, found in (("step times", scores.step_time), ("memory peaks", scores.peak_mem))
        if found.n
    ]
    sentences += [
        f"{found.n_true} of {found.n} candidates {words}; {found.expected:.1f} were expected to."
        for words, found in (("fit", scores.fits), ("ran", scores.runs))
        if found.n
    ]
    return tuple(sentences)


def _peak_bytes(trial: Trial) -> float | None:
    return trial.outcome.peak_mem_bytes if isinstance(trial.outcome, Completed) else None


def _holds(bounds: tuple[float, float, float] | None, came: float | None) -> bool | None:
    return None if bounds is None or came is None else bounds[1] <= came <= bounds[2]


def _coverage(
    pairs: Iterable[tuple[tuple[float, float, float] | None, float | None]],
) -> Coverage:
    held = [h for bounds, came in pairs if (h := _holds(bounds, came)) is not None]
    return Coverage(n=len(held), n_within=sum(held))


def _chance(pairs: Sequence[tuple[float | None, bool]]) -> Chance:
    known = [(chance, came) for chance, came in pairs if chance is not None]
    return Chance(
        n=len(known),
        expected=sum(chance for chance, _ in known),
        n_true=sum(came for _, came in known),
    )
