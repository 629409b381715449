"""The daemon with procedures made for tests: `python daemon_under_test.py STATE [IDLE_S]`.

What a campaign does is the first word of its id.
"""

import sys
from pathlib import Path

from infrarsi.errors import InfraRSIError, JobFailed
from infrarsi.knobs import Candidate
from infrarsi.launch import Launch
from infrarsi.trial import Trial
from infrarsi.wire.messages import Progressed, TrialEnded
from infrarsi.wire.results import PredictionTable, VerifyResult
from infrarsi_runner.context import Context
from infrarsi_runner.running import RunSpec, outcome_of
from infrarsi_runner.serve import serve


def quick(context: Context) -> VerifyResult:
    context.emit(Progressed(stage="test", message="at work"))
    return VerifyResult(verdict="accepted")


def runs(context: Context) -> VerifyResult:
    """As many runs of the stub job as the budget has trials; their names are the result."""
    done: list[str] = []
    for number in range(1, context.request.budget.n_trials + 1):
        trial = context.once(
            f"trial/{number}", Trial, lambda number=number: _trial(context, number)
        )
        context.emit_once(f"trial/{number}", TrialEnded(trial=trial))
        done.append(f"{trial.number} {trial.outcome.kind if trial.outcome else None}")
    return VerifyResult(verdict="accepted", missing=tuple(done))


def _trial(context: Context, number: int) -> Trial:
    spec = RunSpec(
        tree=context.trees.tree(context.request.source),
        launch=Launch(script="train.py", args=("--step-s", "0.03")),
        python=context.request.python,
        mode="timed",
        timeout_s=30,
        warmup_steps=2,
        window_steps=5,
        label=f"trial {number}",
    )
    result = context.runs.execute(spec)
    return Trial(number=number, candidate=Candidate(), outcome=outcome_of(result, spec))


def wait(context: Context) -> VerifyResult:
    while True:
        context.runs.execute(
            RunSpec(
                tree=context.trees.tree(context.request.source),
                launch=Launch(script="train.py", args=("--at", "1", "hang")),
                python=context.request.python,
                mode="timed",
                timeout_s=600,
            )
        )


def fill(context: Context) -> VerifyResult:
    context.emit(Progressed(stage="test", message="before"))
    for number in range(100_000):
        context.once(f"memo/{number}", str, lambda: "x" * 100_000)
    return VerifyResult(verdict="accepted")


def publish(context: Context) -> VerifyResult:
    for version in (1, 2, 2):
        digest = context.request.lock.digest
        context.publish(PredictionTable(contract_digest=digest, version=version, rows=()))
    return VerifyResult(verdict="accepted")


def fail(context: Context) -> VerifyResult:
    raise JobFailed("The untouched baseline crashes.", "Mend it first.")


def bug(context: Context) -> VerifyResult:
    raise ValueError("a mistake of ours")


BEHAVIOURS = {f.__name__: f for f in (quick, runs, wait, fill, publish, fail, bug)}


def behave(context: Context) -> VerifyResult:
    return BEHAVIOURS[context.request.id.partition("-")[0]](context)


if __name__ == "__main__":
    idle_s = float(sys.argv[2]) if len(sys.argv) > 2 else None
    try:
        serve(Path(sys.argv[1]), {"verify": behave}, idle_exit_s=idle_s)
    except InfraRSIError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
