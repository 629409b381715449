"""What a run is asked to be, and what is left of it. Data only; see `running` for the doing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from infrarsi.frozen import Frozen
from infrarsi.launch import Launch
from infrarsi.pair import ProcessPair
from infrarsi.run import Mode, RunObservation
from infrarsi.wire.probe import PhaseSpan, RankEvidence

Side = Literal["baseline", "candidate"]


@dataclass(frozen=True)
class RunSpec:
    """One run. `tree` is copied for it and stays as it is; paths in `spans` are below `tree`.

    `timeout_s` counts the time the job may run, not the time it is paused. `redo_from` is the
    `evidence_dir` of the run whose audited steps are taken again, under `autocast` or from
    weights rounded to 16 bit where set.
    Dropout is as it is in `natural_steps` only. `late_audit` is a step of an endurance run's second
    half that it learns of half-way.
    `editable_roots` are absolute source roots in the user's workspace; the job gets their
    counterparts in its tree.
    """

    tree: Path
    launch: Launch
    python: str
    mode: Mode
    timeout_s: float
    warmup_steps: int = 2
    window_steps: int = 10
    memory_budget_bytes: int | None = None
    seed: int | None = None
    threads: int | None = None
    audit_steps: tuple[int, ...] = ()
    redo_from: Path | None = None
    redo_steps: tuple[int, ...] = ()
    natural_steps: tuple[int, ...] = ()
    late_audit: int | None = None
    autocast: Literal["bfloat16"] | None = None
    rounds_weights: bool = False
    spans: tuple[PhaseSpan, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    editable_roots: tuple[str, ...] = ()
    label: str = "run"

    @property
    def counted(self) -> bool:
        """Whether the job announces its steps to the runner and is told when to end."""
        return self.mode in ("timed", "endurance")

    @property
    def last_step(self) -> int:
        """Index of the last step of a counted run; endurance has no warm-up."""
        warmup_steps = 0 if self.mode == "endurance" else self.warmup_steps
        return warmup_steps + self.window_steps - 1


class RunResult(Frozen):
    """What is left of a run.

    `changed_files` are files of the tree that the job changed, removed or replaced, as posix
    paths. `startup_*` count up to the first step that all ranks ended, `window_cpu_s` the
    processor time of the whole tree in the window; they are 0 and None where no steps were
    announced. `problems` say what of the evidence could not be used.
    """

    observation: RunObservation
    evidence: tuple[RankEvidence, ...]
    folder: str
    evidence_dir: str
    startup_wall_s: float = 0.0
    startup_cpu_s: float = 0.0
    window_cpu_s: float | None = None
    changed_files: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class PairResult(Frozen):
    """A process pair, or None, and then `failed` is the side that kept it from being one.

    `audited_steps` are the candidate's step indices at which it dumped its state with dropout held
    still, `natural_steps` those with dropout as it is.
    """

    pair: ProcessPair | None
    baseline: RunResult
    candidate: RunResult
    audited_steps: tuple[int, ...] = ()
    natural_steps: tuple[int, ...] = ()
    failed: Side | None = None


def never_ran(sandbox_level: str) -> RunResult:
    """The result of a side that was not started because the other had failed already."""
    observation = RunObservation(
        end="cancelled", wall_s=0.0, cpu_s=0.0, sandbox_level=sandbox_level
    )
    return RunResult(observation=observation, evidence=(), folder="", evidence_dir="")
