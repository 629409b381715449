"""Results of doctor, run and verify: what the report is made of."""

from typing import Literal

from infrarsi.contract.contract import Lock
from infrarsi.contract.violation import Violation
from infrarsi.edits import Edit
from infrarsi.frozen import Frozen, Scalar
from infrarsi.knobs import Candidate, Space
from infrarsi.launch import Launch
from infrarsi.trial import Trial, TurnedAway
from infrarsi.wire.probe import LineCost, Profile


class Interval(Frozen):
    """A value with its interval; `level` is the coverage, 0.95 unless said."""

    value: float
    low: float
    high: float
    level: float = 0.95


class Roof(Frozen):
    """The fixed roof of one device: the best measured matmul rate, FLOP/s, all its threads."""

    flops_per_s: float
    dtype: str
    fp32_flops_per_s: float
    how: str


class Resolvable(Frozen):
    """The smallest gain that `minutes` of pairs can tell from noise with 80 % power.

    None where no planned look fits into the minutes.
    """

    minutes: float
    gain_frac: float | None


class Calibration(Frozen):
    """What was measured for one contract on one machine; bound to both.

    `aa_log_ratios` are the log ratios of the baseline against itself, one a unit, and
    `aa_slot_log_ratios` how much slower the job started first was in each; `pair_log_sd` is the
    standard deviation of a unit's log ratio that both tell of.
    """

    contract_digest: str
    machine: str
    step_time_s: Interval
    step_cv_frac: float
    tokens_per_step: int
    flops_per_token: float
    flops_convention: str
    roof: Roof
    mfu_frac: float
    peak_mem_bytes: tuple[int, ...]
    base_mem_bytes: tuple[int, ...] = ()
    mem_limit_bytes: int | None = None
    pair_log_sd: float
    aa_log_ratios: tuple[float, ...]
    aa_slot_log_ratios: tuple[float, ...] = ()
    resolvable: tuple[Resolvable, ...]
    sandbox_level: str
    baseline_losses: tuple[float, ...] = ()


class DoctorResult(Frozen):
    """Doctor's answer."""

    calibration: Calibration
    profile: Profile
    hints: tuple[Violation, ...] = ()


class KnobPrediction(Frozen):
    """One row of a hover: what a value of a knob would give, the rest as in the baseline."""

    knob: str
    value: Scalar
    step_time_s: Interval
    peak_mem_bytes: Interval
    mfu_frac: float
    p_fit: float
    known: Literal["measured", "predicted", "estimate"]
    n_trials: int = 0


class Price(Frozen):
    """What one value adds to a step against the baseline's value, negative where it saves.

    None where nothing was measured of the quantity. `n_trials` had that value and told of it.
    """

    knob: str
    value: Scalar
    step_time_s: Interval | None = None
    peak_mem_bytes: Interval | None = None
    n_trials: int = 0


class Reliability(Frozen):
    """How much of the effect a source claims held so far, by kind of claim; `n` were tried."""

    source: str
    kind: str
    n: int
    kept_frac: Interval


class PredictionTable(Frozen):
    """Published by the runner, looked up by the server; `version` grows with each fit."""

    contract_digest: str
    version: int
    rows: tuple[KnobPrediction, ...]
    lines: tuple[LineCost, ...] = ()
    prices: tuple[Price, ...] = ()


class AnchorRun(Frozen):
    """A short run of the baseline beside the trials; `step_time_s` is None where it failed.

    `at_s` is when it began, s after the campaign; it stands before trial `before_trial`.
    """

    before_trial: int
    at_s: float
    wall_s: float
    step_time_s: float | None = None


class Speedup(Frozen):
    """before/after, from confirmation pairs only."""

    ratio: float
    low: float
    high: float
    level: float = 0.95


class PromotionPart(Frozen):
    """One knob or patch of a promotion; not verified alone."""

    knob: str
    value: Scalar
    why: str


class Promotion(Frozen):
    """A candidate that was accepted and confirmed, with the edits that bring it."""

    candidate: Candidate
    parts: tuple[PromotionPart, ...]
    speedup: Speedup
    n_units: int
    mfu_before_frac: float
    mfu_after_frac: float
    tokens_per_s_before: float
    tokens_per_s_after: float
    peak_mem_bytes_before: int
    peak_mem_bytes_after: int
    edits: tuple[Edit, ...]
    launch: Launch
    checks: tuple[str, ...]


class Finalist(Frozen):
    """A candidate that went to confirmation and what came of it.

    `pruned` are knobs of its trial that were set back before it was frozen.
    """

    trial: int
    pruned: tuple[str, ...] = ()
    verdict: Literal["accepted", "rejected", "inconclusive", "not_resolved", "no_gain"]
    violations: tuple[Violation, ...] = ()
    missing: tuple[str, ...] = ()
    speedup: Speedup | None = None


class Cost(Frozen):
    """Where the time went, s of wall clock.

    `smoke_s` and `memory_probe_s` are the short runs before trials, `anchor_s` those of the
    baseline between them; none is in `trials_s`. `n_turned_away` failed a short run, and cost no
    trial: they are not in `n_failed`.
    """

    total_s: float
    doctor_s: float = 0.0
    trials_s: float
    failed_trials_s: float
    confirmation_s: float
    n_trials: int
    n_oom: int
    n_failed: int
    smoke_s: float = 0.0
    memory_probe_s: float = 0.0
    anchor_s: float = 0.0
    n_turned_away: int = 0


class RunResult(Frozen):
    """A finished campaign."""

    campaign: str
    lock: Lock
    calibration: Calibration
    space: Space
    trials: tuple[Trial, ...]
    finalists: tuple[Finalist, ...]
    promoted: Promotion | None
    cost: Cost
    agent: str = "none"
    turned_away: tuple[TurnedAway, ...] = ()
    anchors: tuple[AnchorRun, ...] = ()
    prices: tuple[Price, ...] = ()
    reliability: tuple[Reliability, ...] = ()


class VerifyResult(Frozen):
    """The answer of `infrarsi verify`: the verdict is on the contract, the gain stands beside."""

    verdict: Literal["accepted", "rejected", "inconclusive"]
    violations: tuple[Violation, ...] = ()
    missing: tuple[str, ...] = ()
    speedup: Speedup | None = None
