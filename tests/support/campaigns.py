"""A campaign's context in this process: a real journal, real trees, real runs of a small job."""

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from repositories import git, make_repository
from stub_runs import make_site

from infrarsi.contract import Lock, Protocol, make_lock
from infrarsi.knobs import Binding, Knob, Space
from infrarsi.launch import Launch
from infrarsi.reading import MappingSources, read
from infrarsi.reading.propose import default_job, propose_contract
from infrarsi.wire.messages import Budget, StartCampaign
from infrarsi.wire.results import Calibration, Interval, Roof
from infrarsi_runner.context import Context
from infrarsi_runner.git_store import GitStore
from infrarsi_runner.journal import Journal
from infrarsi_runner.procedures.job import Job, open_job
from infrarsi_runner.running import Runs
from infrarsi_runner.stopping import StopFlag
from infrarsi_runner.surroundings import find_probe
from infrarsi_runner.worktrees import Trees

TRAINING = Path(__file__).with_name("switched_training.py").read_text()


@dataclass
class Bench:
    """A folder in which the context of one campaign can be opened again and again."""

    folder: Path
    request: StartCampaign

    @contextmanager
    def context(self) -> Generator[Context]:
        """The campaign's context, as a daemon that has just started would open it."""
        journal = Journal(self.folder / "journal.sqlite", time.time)
        try:
            if self.request.id not in {view.id for view in journal.views()}:
                journal.add(self.request)
            store = GitStore(self.folder / "objects.git")
            site = make_site(self.folder, sandbox="off", probe=find_probe())
            trees = Trees(store, self.folder / "trees")
            yield Context(self.request, journal, Runs(site), trees, StopFlag(), time.time)
        finally:
            journal.close()

    def runs(self) -> list[str]:
        """Labels of all runs that were ever started, in order."""
        folders = sorted((self.folder / "runs").glob("*")) if self.folder.exists() else []
        return [folder.name.partition("-")[2] for folder in folders]


def make_bench(folder: Path, text: str = TRAINING, **contract: Any) -> Bench:
    """A bench whose job is one script of that text."""
    repository = make_repository(folder / "user", {"train.py": text})
    bundle = folder / "sent.bundle"
    git(repository, "bundle", "create", "--quiet", str(bundle), "HEAD")
    (commit,) = GitStore(folder / "objects.git").add_bundle(bundle)
    return Bench(
        folder=folder,
        request=StartCampaign(
            id="screening",
            kind="run",
            lock=_lock(commit, text, contract),
            source=commit,
            python=sys.executable,
            workspace=str(folder / "user"),
            budget=Budget(n_trials=2, minutes=5),
        ),
    )


def _lock(commit: str, text: str, changes: dict[str, Any]) -> Lock:
    launch = Launch(script="train.py", env={"OMP_NUM_THREADS": "1"})
    sources = MappingSources({"train.py": text})
    reading = read(sources, launch)
    job = default_job("main", launch, reading, sys.executable, sources)
    always = {
        "protocol": Protocol(looks=(2,), turn_pairs=1, steps_per_turn=8),
        "run_timeout_s": 60.0,
    }
    contract = propose_contract(job, launch, reading).model_copy(update=always | changes)
    return make_lock(contract, {}, commit)


def switch(name: str, *choices: int) -> Knob:
    """A knob that is a constant of the script; its first choice is the baseline's."""
    return Knob(
        name=name.lower(),
        type="ordinal",
        choices=choices,
        default=choices[0],
        role=name.lower(),
        bindings=(Binding(carrier="constant", name=name, file="train.py"),),
    )


def open_switched(context: Context, *knobs: Knob) -> Job:
    """The job of the bench with exactly these knobs."""
    job = open_job(context, context.request.lock, context.request.source)
    return replace(job, space=Space(knobs=knobs))


def calibration_of(job: Job, step_time_s: float, peak_mem_bytes: int, **more: Any) -> Calibration:
    """A calibration as doctor would leave it."""
    found = Calibration(
        contract_digest=job.lock.digest,
        machine="here",
        step_time_s=Interval(value=step_time_s, low=step_time_s, high=step_time_s),
        step_cv_frac=0.02,
        tokens_per_step=512,
        flops_per_token=1e3,
        flops_convention="v1",
        roof=Roof(flops_per_s=1e11, dtype="float32", fp32_flops_per_s=1e11, how="given"),
        mfu_frac=0.1,
        peak_mem_bytes=(peak_mem_bytes,),
        base_mem_bytes=(peak_mem_bytes // 2,),
        mem_limit_bytes=None,
        pair_log_sd=0.02,
        aa_log_ratios=(0.01, -0.01),
        resolvable=(),
        sandbox_level="off",
    )
    return found.model_copy(update=more)
