"""Init: read the training jobs of a folder and propose `infrarsi.toml`.

What the user has written is never changed: a job that is there stays as it is, and running it
twice changes nothing.
"""

import os
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from infrarsi.contract import Config, Fact, JobConfig, add_job, parse_config
from infrarsi.errors import UsageError
from infrarsi.frozen import Frozen
from infrarsi.knobs import Knob
from infrarsi.launch import Launch, named_interpreter, parse_launch, render_launch
from infrarsi.reading import Reading, Sources, default_job, propose_contract, read
from infrarsi.report.findings import problem_text
from infrarsi_server.operations.launches import find_launch
from infrarsi_server.operations.project import read_file, write_file
from infrarsi_server.workspace.files import FolderSources
from infrarsi_server.workspace.interpreter import Choice, choose_python, resolve_python
from infrarsi_server.workspace.root import CONFIG_NAME, find_root


class UnderstoodJob(Frozen):
    """What was understood of a job. A fact that is unknown has its reason and perhaps a guess."""

    job: str
    launch: str
    python: str
    is_new: bool
    facts: tuple[Fact, ...]
    knobs: tuple[Knob, ...]
    problems: tuple[str, ...]


class InitResult(Frozen):
    """The jobs of a workspace. `written` is false where `infrarsi.toml` did not change."""

    root: str
    config: str
    written: bool
    jobs: tuple[UnderstoodJob, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Proposal:
    """What init would write; `text` is None where nothing has to change."""

    result: InitResult
    text: str | None

    def write(self) -> InitResult:
        """Write it; the result as it then is."""
        if self.text is None:
            return self.result
        write_file(Path(self.result.root, self.result.config), self.text)
        return self.result.model_copy(update={"written": True})


def propose_init(
    folder: Path | None,
    launch: str | None,
    python: str | None,
    environ: Mapping[str, str],
    current: Path,
) -> Proposal:
    """Read and propose; nothing is written.

    Args:
        folder: the workspace; None finds the one `current` is in.
        launch: a launch line, or None to keep the jobs there are, or else find one.
        python: the job's own interpreter, or None to choose one that has torch.
        environ: where PATH and the active environment are looked up.
        current: where relative paths start.

    Raises:
        UsageError: no folder, no launch line, or its script is not there.
        ConfigError: `infrarsi.toml` cannot be used.
    """
    asked = None if launch is None else parse_launch(launch)
    root = _init_root(folder, asked, current)
    text = read_file(root / CONFIG_NAME)
    config = Config() if text is None else parse_config(text)
    sources = FolderSources(root)
    new = _new_launch(config, asked, sources)
    jobs = [_understand(job, sources, is_new=False)[0] for job in config.jobs.values()]
    notes: tuple[str, ...] = ()
    added = None
    if new is not None:
        choice = _interpreter(root, launch, python, environ, current)
        understood, added = _propose_job(config, text, new, choice, sources)
        jobs.append(understood)
        notes = () if choice.has_torch else (choice.note,)
    result = InitResult(
        root=str(root), config=CONFIG_NAME, written=False, jobs=tuple(jobs), notes=notes
    )
    return Proposal(result, added)


def _init_root(folder: Path | None, asked: Launch | None, current: Path) -> Path:
    if folder is not None:
        if not (current / folder).is_dir():
            raise UsageError(f"{folder} is not a folder.", "Name an existing folder.")
        return (current / folder).resolve()
    root = find_root(current)
    if asked and not (root / asked.script).is_file() and (current / asked.script).is_file():
        return current.resolve()
    return root


def _new_launch(config: Config, asked: Launch | None, sources: Sources) -> Launch | None:
    if asked is None:
        return None if config.jobs else find_launch(sources)
    if sources.text(asked.script) is None:
        raise UsageError(
            f"The script {asked.script} is not in the workspace.",
            "Name it relative to the workspace root.",
        )
    is_known = any(parse_launch(job.launch) == asked for job in config.jobs.values())
    return None if is_known else asked


def _propose_job(
    config: Config, text: str | None, launch: Launch, choice: Choice, sources: Sources
) -> tuple[UnderstoodJob, str]:
    reading = _read(sources, launch)
    job = default_job(_job_name(config, launch), launch, reading, choice.python, sources)
    understood, facts = _understand(job, sources, is_new=True)
    return understood, add_job(text, job, facts, choice.note)


def _understand(
    job: JobConfig, sources: Sources, *, is_new: bool
) -> tuple[UnderstoodJob, tuple[Fact, ...]]:
    launch = parse_launch(job.launch)
    reading = _read(sources, launch)
    facts = propose_contract(job, launch, reading).facts
    understood = UnderstoodJob(
        job=job.name,
        launch=render_launch(launch),
        python=job.python,
        is_new=is_new,
        facts=facts,
        knobs=reading.knobs,
        problems=tuple(problem_text(problem) for problem in reading.problems),
    )
    return understood, facts


def _read(sources: Sources, launch: Launch) -> Reading:
    return read(sources, launch, n_cpus=os.cpu_count() or 1)


def _interpreter(
    root: Path, launch: str | None, python: str | None, environ: Mapping[str, str], current: Path
) -> Choice:
    if python is not None:
        found = str(resolve_python(current, python, environ))
        inside = posixpath.relpath(found, root)
        written = found if inside.startswith("..") else inside
        return Choice(written, "The job's own interpreter, as given.", True)
    if launch is not None and (named := named_interpreter(launch)):
        return Choice(named, "The job's own interpreter, from the launch line.", True)
    return choose_python(root, environ)


def _job_name(config: Config, launch: Launch) -> str:
    if not config.jobs:
        return "main"
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", posixpath.splitext(posixpath.basename(launch.script))[0])
    names = [stem, *(f"{stem}-{n}" for n in range(2, len(config.jobs) + 3))]
    return next(name for name in names if name not in config.jobs)
