"""Recorded-looking results of a campaign for tests of report, apply and their commands."""

from infrarsi.contract import Fact, Scope, TaskContract, Workload, make_lock
from infrarsi.contract.catalogue import violation
from infrarsi.contract.contract import Lock
from infrarsi.edits import Edit
from infrarsi.knobs import Candidate, Knob, Space
from infrarsi.launch import Launch
from infrarsi.place import Place
from infrarsi.trial import (
    Completed,
    Crashed,
    Outcome,
    OutOfMemory,
    Rejected,
    TimedOut,
    Trial,
    Unstable,
)
from infrarsi.units import GIB
from infrarsi.wire.results import (
    Calibration,
    Cost,
    Finalist,
    Interval,
    Promotion,
    PromotionPart,
    Resolvable,
    Roof,
    RunResult,
    Speedup,
)

TRAIN = "import torch\n\nBATCH = 2\nACCUMULATE = 4\n\nfor step in range(100):\n    loss = f()\n"


def edit(text: str, old: str, new: str, file: str = "train.py") -> Edit:
    return Edit(file=file, start=text.index(old), old=old, new=new)


EDITS = (
    edit(TRAIN, "BATCH = 2\n", "BATCH = 4\n"),
    edit(TRAIN, "ACCUMULATE = 4\n", "ACCUMULATE = 2\n"),
    edit(TRAIN, "    loss", "    with autocast():\n        loss"),
)


def make_contract(launch: Launch | None = None) -> TaskContract:
    place = Place(file="train.py", line=3, column=9, end_line=3, end_column=10)
    return TaskContract(
        job="main",
        launch=launch or Launch(script="train.py"),
        workload=Workload(global_batch_rows=8, seq_len_tokens=512),
        facts=(
            Fact(name="micro_batch", value=2, place=place),
            Fact(name="loss", unknown="no loss function was recognised | in <train.py>"),
        ),
        scope=Scope(editable=("*.py",), locked=("data/**",)),
    )


def lock(baseline_commit: str = "0" * 40) -> Lock:
    return make_lock(make_contract(), {"data/a.txt": "ab" * 32}, baseline_commit)


def calibration(digest: str) -> Calibration:
    return Calibration(
        contract_digest=digest,
        machine="4 cores",
        step_time_s=Interval(value=2.0, low=1.9, high=2.1),
        step_cv_frac=0.02,
        tokens_per_step=4096,
        flops_per_token=1.2e7,
        flops_convention="v1",
        roof=Roof(flops_per_s=1e11, dtype="bf16", fp32_flops_per_s=5e10, how="best matmul"),
        mfu_frac=0.245,
        peak_mem_bytes=(2 * GIB,),
        pair_log_sd=0.02,
        aa_log_ratios=(0.01, -0.01),
        resolvable=(Resolvable(minutes=4, gain_frac=None), Resolvable(minutes=8, gain_frac=0.05)),
        sandbox_level="bubblewrap",
    )


SPACE = Space(
    knobs=(
        Knob(
            name="micro_batch", type="ordinal", choices=(1, 2, 4, 8), default=2, role="micro_batch"
        ),
        Knob(
            name="bf16_autocast",
            type="bool",
            choices=(False, True),
            kind="patch",
            default=False,
            role="patch",
        ),
    )
)


def trial(number: int, setting: dict[str, int | bool], outcome: Outcome) -> Trial:
    candidate = Candidate(setting={**SPACE.default_setting(), **setting})
    origin = "search" if number else "baseline"
    return Trial(number=number, candidate=candidate, origin=origin, outcome=outcome, wall_s=20.0)


TRIALS = (
    trial(0, {}, Completed(step_time_s=2.0, peak_mem_bytes=2 * GIB)),
    trial(1, {"micro_batch": 8}, OutOfMemory(at_least_bytes=9 * GIB)),
    trial(
        2,
        {"micro_batch": 4, "bf16_autocast": True},
        Completed(step_time_s=1.0, peak_mem_bytes=3 * GIB),
    ),
    trial(3, {"micro_batch": 1}, Rejected(violations=(violation("W101", "8 rows became 4."),))),
    trial(4, {"bf16_autocast": True}, Unstable(step=3)),
    trial(5, {"bf16_autocast": True}, TimedOut(limit_s=600.0)),
    trial(
        6,
        {"micro_batch": 4},
        Crashed(cause="exit code 1", log_tail="\x1b[31mTraceback ``` <b>\x1b[0m\nValueError: x\n"),
    ),
)


def promotion(launch: Launch | None = None) -> Promotion:
    return Promotion(
        candidate=TRIALS[2].candidate,
        parts=(
            PromotionPart(knob="micro_batch", value=4, why="Fewer, larger matrix products."),
            PromotionPart(knob="bf16_autocast", value=True, why="16-bit products, fp32 loss."),
        ),
        speedup=Speedup(ratio=1.93, low=1.85, high=2.02),
        n_units=4,
        mfu_before_frac=0.245,
        mfu_after_frac=0.473,
        tokens_per_s_before=2048.0,
        tokens_per_s_after=3953.0,
        peak_mem_bytes_before=2 * GIB,
        peak_mem_bytes_after=3 * GIB,
        edits=EDITS,
        launch=launch or Launch(script="train.py"),
        checks=("update audit at step 7",),
    )


def run_result(
    *, promoted: Promotion | None, campaign: str = "c1", locked: Lock | None = None
) -> RunResult:
    locked = locked or lock()
    verdict = "accepted" if promoted else "not_resolved"
    speedup = Speedup(ratio=1.93, low=1.85, high=2.02) if promoted else None
    return RunResult(
        campaign=campaign,
        lock=locked,
        calibration=calibration(locked.digest),
        space=SPACE,
        trials=TRIALS,
        finalists=(Finalist(trial=2, verdict=verdict, speedup=speedup),),
        promoted=promoted,
        cost=Cost(
            total_s=400.0,
            doctor_s=60.0,
            trials_s=140.0,
            failed_trials_s=100.0,
            confirmation_s=200.0,
            n_trials=6,
            n_oom=1,
            n_failed=5,
        ),
    )
