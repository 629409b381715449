"""A candidate made real: its worktree and launch, unless it cannot be built or breaks a rule."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from infrarsi.edits import Edit
from infrarsi.knobs import Candidate
from infrarsi.launch import Launch
from infrarsi.patches import Declined, materialise
from infrarsi.reading import Reading, follow
from infrarsi.rules import check_change
from infrarsi.trial import Crashed, Rejected
from infrarsi_runner.context import Context
from infrarsi_runner.procedures.job import N_CPUS, Job


@dataclass(frozen=True)
class Built:
    """What may be run: nothing in it breaks a static rule."""

    edits: tuple[Edit, ...]
    tree: Path
    launch: Launch
    reading: Reading


@contextmanager
def built(
    context: Context, job: Job, candidate: Candidate, name: str
) -> Generator[Built | Crashed | Rejected]:
    """Build the candidate in a tree of its own, which is gone when the block is left."""
    made = materialise(candidate, job.space, job.sources, job.launch)
    if isinstance(made, Declined):
        yield Crashed(cause=f"The candidate cannot be built: {made.reason}")
        return
    tree = context.trees.candidate(job.commit, made.edits, name)
    try:
        now = follow(context.trees.sources(tree), made.launch, n_cpus=N_CPUS)
        errors = tuple(v for v in check_change(job.lock, now, job.program) if v.severity == "error")
        if errors:
            yield Rejected(violations=errors)
        else:
            yield Built(edits=made.edits, tree=tree, launch=made.launch, reading=now.reading)
    finally:
        context.trees.discard(tree)
