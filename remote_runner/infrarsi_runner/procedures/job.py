"""One job under measurement: its tree, what was read of it, and the specs of its runs."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from infrarsi.contract.contract import Lock
from infrarsi.errors import JobFailed
from infrarsi.knobs import Candidate, Space
from infrarsi.launch import Launch
from infrarsi.patches import patch_knobs
from infrarsi.reading import Program, Reading, follow
from infrarsi.reading.sources import Sources
from infrarsi.run import Mode
from infrarsi.trial import Completed, Crashed, Outcome, OutOfMemory, TimedOut, Unstable
from infrarsi.units import format_bytes, format_seconds
from infrarsi.wire.probe import PhaseSpan
from infrarsi_runner.context import Context
from infrarsi_runner.running import RunSpec

N_CPUS = os.cpu_count() or 1
AVAILABLE_FRAC = 0.4
"""Two sides of a pair live at once, and the machine is left standing."""


@dataclass(frozen=True)
class Job:
    """The baseline as the campaign holds it. `space` has the launch knobs and the patches.

    `memory_budget_bytes` is granted to every rank of every run: the contract's limit, or a share
    of what was free when the campaign began.
    """

    lock: Lock
    commit: str
    tree: Path
    sources: Sources
    program: Program
    space: Space
    python: str
    editable_roots: tuple[str, ...]
    memory_budget_bytes: int

    @property
    def reading(self) -> Reading:
        """What was read of the baseline."""
        return self.program.reading

    @property
    def drops_out(self) -> bool:
        """Whether the baseline's code speaks of dropout."""
        texts = (self.sources.text(file) or "" for file in self.reading.files)
        return any("drop" in text.lower() for text in texts)

    @property
    def patch_names(self) -> tuple[str, ...]:
        """The knobs that switch a patch."""
        return tuple(knob.name for knob in self.space.knobs if knob.kind == "patch")

    @property
    def launch(self) -> Launch:
        """The baseline's launch."""
        return self.lock.contract.launch

    def spec(self, mode: Mode, label: str) -> RunSpec:
        """A run of the untouched baseline in that mode."""
        contract = self.lock.contract
        return RunSpec(
            tree=self.tree,
            launch=contract.launch,
            python=self.python,
            mode=mode,
            label=label,
            timeout_s=contract.run_timeout_s,
            memory_budget_bytes=self.memory_budget_bytes,
            editable_roots=self.editable_roots,
        )

    def candidate_spec(self, mode: Mode, label: str, tree: Path, launch: Launch) -> RunSpec:
        """The same run of a candidate's worktree."""
        return replace(self.spec(mode, label), tree=tree, launch=launch)

    def spans(self) -> tuple[PhaseSpan, ...]:
        """Where the reading found the fetch, for the profiler; absolute paths."""
        return tuple(
            PhaseSpan(
                file=str(self.tree / span.place.file),
                first_line=span.place.line,
                last_line=span.place.end_line,
                phase="data",
            )
            for span in self.reading.roles
            if span.role == "fetch"
        )

    def baseline_candidate(self) -> Candidate:
        """The user's own start."""
        return Candidate(setting=self.space.default_setting())


def open_job(context: Context, lock: Lock, commit: str) -> Job:
    """Check the commit out and read it."""
    tree = context.trees.tree(commit)
    sources = context.trees.sources(tree)
    launch = lock.contract.launch
    program = follow(sources, launch, n_cpus=N_CPUS)
    patches, _ = patch_knobs(sources, launch)
    return Job(
        lock=lock,
        commit=commit,
        tree=tree,
        sources=sources,
        program=program,
        space=Space(knobs=(*program.reading.knobs, *patches)),
        python=context.request.python,
        editable_roots=context.request.editable_roots,
        memory_budget_bytes=lock.contract.memory_limit_bytes
        or context.once("memory/share", int, lambda: _fair_share_bytes(launch.n_processes)),
    )


def _fair_share_bytes(n_processes: int) -> int:
    """What a rank may take where no limit is set."""
    return round(AVAILABLE_FRAC * psutil.virtual_memory().available / n_processes)


def require_completed(outcome: Outcome, stage: str) -> Completed:
    """The outcome of a baseline run, or JobFailed with what to do."""
    if isinstance(outcome, Completed):
        return outcome
    what, do = _explain(outcome)
    raise JobFailed(f"The untouched baseline {what} ({stage}).", do)


def _explain(outcome: Outcome) -> tuple[str, str]:
    if isinstance(outcome, OutOfMemory):
        limit = (
            f" under its limit of {format_bytes(outcome.limit_bytes)}"
            if outcome.limit_bytes
            else ""
        )
        return (
            f"ran out of memory: it needs at least {format_bytes(outcome.at_least_bytes)}{limit}",
            "Raise memory_limit_gib in infrarsi.toml or start from a smaller micro-batch.",
        )
    if isinstance(outcome, TimedOut):
        seen = "no step" if outcome.last_step is None else f"{outcome.last_step + 1} steps"
        return (
            f"showed {seen} within {format_seconds(outcome.limit_s)}",
            "Run the launch line by hand; if it is only slow, raise timeout_s in infrarsi.toml.",
        )
    if isinstance(outcome, Unstable):
        return (
            f"produced a loss that is not finite at step {outcome.step}",
            "A job that does not train cannot be verified: mend the loss first.",
        )
    assert isinstance(outcome, Crashed)
    return (
        f"failed: {outcome.cause.rstrip('.')}",
        "Run the launch line by hand and mend it first.",
    )
