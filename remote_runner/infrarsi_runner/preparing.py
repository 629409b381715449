"""From a spec to a command ready to be started: folder, probe configuration, sandbox."""

import secrets
import socket
from dataclasses import dataclass
from pathlib import Path

from infrarsi.errors import UsageError
from infrarsi.wire.probe import PhaseSpan, ProbeConfig
from infrarsi_runner.launch.base import Command
from infrarsi_runner.launch.command import TORCHRUN, Places, job_argv, job_environment
from infrarsi_runner.run_folder import RunFolder
from infrarsi_runner.run_spec import RunSpec
from infrarsi_runner.sandbox import Confinement
from infrarsi_runner.site import Site

_SOCKET_NAME = "c"


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A run that can be started. `tree` is where the job finds its tree.

    `socket` is the control socket's path, the same inside and outside, if the run has one.
    """

    command: Command
    folder: RunFolder
    tree: Path
    socket: Path | None


def prepare(spec: RunSpec, site: Site) -> Prepared:
    """Make the run's folder and command; nothing runs yet. Raises UsageError for a bad launch."""
    site.interpreter(spec.python)
    folder = RunFolder.make(site.runs, spec.label, spec.tree)
    tree = spec.tree if site.sandbox.can_mount else folder.tree
    control = _socket_folder(site.sockets) / _SOCKET_NAME if spec.counted else None
    folder.probe_config.write_text(_config(spec, site, folder, tree, control).model_dump_json())
    confinement = _confinement(spec, site, folder, tree, control)
    places = Places(
        tree=tree,
        scratch=folder.scratch,
        tmp=site.sandbox.tmp(confinement),
        door=site.probe / "enter",
        probe_config=folder.probe_config,
    )
    environment = job_environment(
        spec.launch,
        spec.env,
        spec.python,
        places,
        mode=spec.mode,
        threads=spec.threads,
        editable=tuple(_counterpart(root, site, tree) for root in spec.editable_roots),
        daemon=site.daemon_environment,
    )
    argv = site.sandbox.wrap(job_argv(spec.python, spec.launch, free_port()), confinement)
    command = Command(argv=argv, env=environment, cwd=folder.tree)
    return Prepared(command=command, folder=folder, tree=tree, socket=control)


def workspace_to_show(workspace: Path) -> tuple[Path, ...]:
    """The user's workspace, for data by absolute path; never where it would show their home."""
    home = Path("~").expanduser().resolve()
    shown = workspace.is_dir() and not home.is_relative_to(workspace.resolve())
    return (workspace,) if shown else ()


def free_port() -> int:
    """A port nobody listens on now. In a network namespace of its own any would do."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _config(
    spec: RunSpec, site: Site, folder: RunFolder, tree: Path, control: Path | None
) -> ProbeConfig:
    """What the job can read: the same for timed and endurance, with no number of steps."""
    told = ProbeConfig.model_fields["window_steps"].default if spec.counted else spec.window_steps
    return ProbeConfig(
        mode="timed" if spec.counted else spec.mode,
        evidence_dir=str(folder.evidence),
        control_socket=str(control) if control else None,
        warmup_steps=spec.warmup_steps,
        window_steps=told,
        hash_key=site.hash_key,
        seed=spec.seed,
        memory_budget_bytes=spec.memory_budget_bytes,
        audit_steps=spec.audit_steps,
        redo_steps=spec.redo_steps,
        natural_steps=spec.natural_steps,
        rounds_weights=spec.rounds_weights,
        redo_dir=str(spec.redo_from) if spec.redo_from else None,
        autocast=spec.autocast,
        spans=tuple(_moved(span, spec.tree, tree) for span in spec.spans),
        source_root=str(tree),
    )


def _confinement(
    spec: RunSpec, site: Site, folder: RunFolder, tree: Path, control: Path | None
) -> Confinement:
    interpreter = site.interpreter(spec.python)
    readable = [Path(path) for path in interpreter.folders if Path(path).is_absolute()]
    readable += workspace_to_show(site.workspace)
    readable += [*site.readable, site.probe, TORCHRUN.parent, folder.probe_config]
    readable += [control.parent] if control else []
    readable += [spec.redo_from] if spec.redo_from else []
    mounted = site.sandbox.can_mount
    return Confinement(
        readable=tuple(readable),
        writable=(folder.evidence, folder.scratch, *(() if mounted else (folder.tree,))),
        mounts={tree: folder.tree} if mounted else {},
        tmp=folder.tmp,
        etc=folder.etc,
        cwd=tree,
    )


def _socket_folder(sockets: Path) -> Path:
    path = sockets / secrets.token_hex(4)
    path.mkdir(mode=0o700, parents=True)
    return path


def _counterpart(root: str, site: Site, tree: Path) -> Path:
    try:
        return tree / Path(root).relative_to(site.workspace)
    except ValueError as error:
        raise UsageError(
            f"The editable install {root} lies outside the workspace {site.workspace}.",
            "Install that package normally, or open the workspace that holds it.",
        ) from error


def _moved(span: PhaseSpan, old: Path, new: Path) -> PhaseSpan:
    path = Path(span.file)
    if not path.is_relative_to(old):
        return span
    return span.model_copy(update={"file": str(new / path.relative_to(old))})
