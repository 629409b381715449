"""From a parsed launch to argv and environment. Nothing of a repository is run as a launcher.

The environment is made here name by name: a few of the daemon's, the launch's own where they are
harmless, and private folders for whatever a job caches.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from infrarsi.errors import UsageError
from infrarsi.launch import Launch
from infrarsi.run import Mode
from infrarsi.wire.probe import PROBE_ENV

TORCHRUN = Path(__file__).with_name("torchrun") / "start.py"

_INHERITED = ("LANG", "LC_ALL", "TZ", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_OURS = frozenset(
    {"PATH", "HOME", "TMPDIR", "TMP", "TEMP", "ENV", "BASH_ENV", "MASTER_ADDR", "MASTER_PORT"}
)
_OURS_PREFIXES = ("LD_", "DYLD_", "INFRARSI_", "TORCHELASTIC_", "XDG_", "BASH_FUNC_")
_PYTHON_ALLOWED = frozenset(
    {"PYTHONPATH", "PYTHONHASHSEED", "PYTHONWARNINGS", "PYTHONFAULTHANDLER", "PYTHONUNBUFFERED"}
)


@dataclass(frozen=True, kw_only=True)
class Places:
    """Folders as the job sees them. `door` is the probe's folder that goes on the import path."""

    tree: Path
    scratch: Path
    tmp: Path
    door: Path
    probe_config: Path


def job_argv(python: str, launch: Launch, rendezvous_port: int) -> tuple[str, ...]:
    """The job's own command line, run in the root of its tree.

    Raises:
        UsageError: the script's path leaves the tree.
    """
    script = PurePosixPath(launch.script)
    if script.is_absolute() or ".." in script.parts or not script.parts:
        raise UsageError(
            f"The script {launch.script!r} is not a path inside the workspace.",
            "Name it relative to the workspace's root.",
        )
    job = (f"./{script}" if str(script).startswith("-") else str(script), *launch.args)
    if launch.launcher == "python":
        return (python, *job)
    rendezvous = ("--master-addr", "127.0.0.1", "--master-port", str(rendezvous_port))
    processes = ("--nnodes", "1", "--nproc-per-node", str(launch.n_processes))
    return (python, str(TORCHRUN), *processes, *rendezvous, *job)


def job_environment(
    launch: Launch,
    extra: Mapping[str, str],
    python: str,
    places: Places,
    *,
    mode: Mode,
    threads: int | None,
    editable: tuple[Path, ...],
    daemon: Mapping[str, str],
) -> dict[str, str]:
    """The whole environment of a job. `editable` are source roots inside its own tree.

    Raises:
        UsageError: the launch sets a variable that is the runner's to set.
    """
    asked = {**launch.env, **extra}
    refuse_variables(asked)
    scratch = places.scratch
    environment = {name: daemon[name] for name in _INHERITED if name in daemon}
    environment.setdefault("LANG", "C.UTF-8")
    environment["OMP_WAIT_POLICY"] = "PASSIVE"
    environment |= {name: value for name, value in asked.items() if name != "PYTHONPATH"}
    environment |= {
        "PATH": os.pathsep.join((str(Path(python).parent), "/usr/local/bin", "/usr/bin", "/bin")),
        "HOME": str(scratch / "home"),
        "TMPDIR": str(places.tmp),
        "XDG_CACHE_HOME": str(scratch / "cache"),
        "TORCHINDUCTOR_CACHE_DIR": str(scratch / "inductor"),
        "TRITON_CACHE_DIR": str(scratch / "triton"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": _import_path(asked.get("PYTHONPATH", ""), places, editable),
        "MASTER_ADDR": "127.0.0.1",
        "GLOO_SOCKET_IFNAME": "lo",
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "WANDB_MODE": "offline",
        PROBE_ENV: str(places.probe_config),
    }
    if threads is not None:
        environment["OMP_NUM_THREADS"] = str(threads)
    if mode == "preflight":
        environment["TORCHDYNAMO_DISABLE"] = "1"
    return environment


def refuse_variables(asked: Mapping[str, str]) -> None:
    """Raise UsageError for a variable that would change how the job is run or watched."""
    for name, value in asked.items():
        python = name.startswith("PYTHON") and name not in _PYTHON_ALLOWED
        if name in _OURS or python or name.startswith(_OURS_PREFIXES):
            raise UsageError(
                f"The launch sets {name}, which the runner sets itself.",
                "Take it out of the launch line.",
            )
        if not name or "=" in name or "\0" in name + value:
            raise UsageError(f"{name!r} is not a name for a variable.", "Mend the launch line.")


def _import_path(asked: str, places: Places, editable: tuple[Path, ...]) -> str:
    """The probe's door first, then the tree's own source roots, then what the launch adds."""
    added = [os.path.normpath(places.tree / entry) for entry in asked.split(os.pathsep) if entry]
    for entry in added:
        if not f"{entry}/".startswith(f"{places.tree}/"):
            raise UsageError(
                f"The launch adds {entry} to PYTHONPATH, which is outside the workspace.",
                "Install that package into the job's environment instead.",
            )
    return os.pathsep.join((str(places.door), *map(str, editable), *added))
