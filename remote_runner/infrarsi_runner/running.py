"""Executing runs: the only way anything of a job is ever started."""

import random
from pathlib import Path

from infrarsi.wire.probe import AuditCommand, StopCommand
from infrarsi_runner.folders import remove_folder
from infrarsi_runner.live_job import LiveJob
from infrarsi_runner.outcomes import outcome_of, step_times_s
from infrarsi_runner.roofing import measure_roof
from infrarsi_runner.run_spec import PairResult, RunResult, RunSpec, Side
from infrarsi_runner.site import Site
from infrarsi_runner.turns import take_turns

__all__ = ["PairResult", "RunResult", "RunSpec", "Runs", "Side", "outcome_of", "step_times_s"]


class Runs:
    """A campaign's runs, one at a time. Every method raises Cancelled when a stop was asked for."""

    def __init__(self, site: Site) -> None:
        """Bind the surroundings."""
        self._site = site

    def execute(self, spec: RunSpec) -> RunResult:
        """One run, alone on the machine. What goes wrong in the job is in the result.

        An endurance job is told its last step half-way, and with it the step to audit; it looks
        like a timed one until then.

        Raises:
            UsageError: the launch, the interpreter or an editable root cannot be used.
            RunnerError: the sandbox or the machine fails.
        """
        with LiveJob(spec, self._site) as job:
            if spec.mode == "endurance":
                job.wait_for_step(spec.last_step // 2)
                if spec.late_audit is not None:
                    job.send(AuditCommand(step=spec.late_audit))
            if spec.counted:
                job.send(StopCommand(after=spec.last_step))
            job.wait_for_end()
            return job.result()

    def pair(
        self,
        baseline: RunSpec,
        candidate: RunSpec,
        *,
        first: Side,
        turn_pairs: int,
        steps_per_turn: int,
        audit: bool,
        natural: bool = False,
        shortest_turn_s: float = 0.0,
        rng: random.Random,
    ) -> PairResult:
        """Two live jobs that take turns, the waiting one stopped; see `turns`."""
        return take_turns(
            {"baseline": baseline, "candidate": candidate},
            self._site,
            first=first,
            turn_pairs=turn_pairs,
            steps_per_turn=steps_per_turn,
            audit=audit,
            natural=natural,
            shortest_turn_s=shortest_turn_s,
            rng=rng,
        )

    def roof(self, python: str, threads: int | None) -> dict[str, float]:
        """The probe's matmul roof of one device: FLOP/s by dtype."""
        return measure_roof(self._site, python, threads)

    def discard(self, result: RunResult) -> None:
        """Remove what a run left on disk, but for its log."""
        remove_folder(Path(result.evidence_dir))
