"""The job's own Python: where it and its packages lie, so that a sandbox can show them.

Asked once by running it, confined, with its site packages but without the job's environment.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

from infrarsi.errors import RunnerError, UsageError
from infrarsi.frozen import Frozen
from infrarsi_runner.sandbox import Confinement, Sandbox

_QUESTION = (
    "import json, os, sys; print(json.dumps({'executable': sys.executable, 'prefixes': "
    "[sys.prefix, sys.base_prefix, sys.exec_prefix], 'path': [p for p in sys.path if p]}))"
)
_ANSWER_WITHIN_S = 60.0


class Interpreter(Frozen):
    """`folders` are all that it needs to be seen; absolute, with and without links resolved."""

    executable: str
    folders: tuple[str, ...]


def ask_interpreter(python: str, sandbox: Sandbox) -> Interpreter:
    """What that interpreter says of itself.

    Raises:
        UsageError: the path is not absolute, not executable or not a Python that answers.
    """
    if not Path(python).is_absolute() or not os.access(python, os.X_OK):
        raise UsageError(
            f"The job's Python {python} is not an executable file on the runner's machine.",
            "Set python in infrarsi.toml to an absolute path.",
        )
    with tempfile.TemporaryDirectory(prefix="infrarsi-python-") as folder:
        answer = _run(python, sandbox, Path(folder))
    folders = _with_real_paths((*answer["prefixes"], *answer["path"], *_links_of(python)))
    return Interpreter(
        executable=str(answer["executable"]) or python, folders=_refused_removed(folders)
    )


def _run(python: str, sandbox: Sandbox, folder: Path) -> dict[str, list[str]]:
    root = Path("/")
    prefixes = tuple(dict.fromkeys(Path(bin_).parent for bin_ in _links_of(python)))
    confinement = Confinement(readable=(root, *prefixes), writable=(), tmp=folder, cwd=root)
    environment = {"PATH": f"{Path(python).parent}:/usr/bin:/bin", "HOME": str(folder)}
    try:
        done = subprocess.run(
            sandbox.wrap((python, "-I", "-c", _QUESTION), confinement),
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ANSWER_WITHIN_S,
            check=True,
        )
        return json.loads(done.stdout)
    except (subprocess.SubprocessError, ValueError) as error:
        raise UsageError(
            f"The job's Python {python} does not answer.",
            "Run it by hand; set python in infrarsi.toml to one that works.",
        ) from error
    except OSError as error:
        raise RunnerError(
            f"The sandbox cannot be started: {error}.", "Check the runner."
        ) from error


def _links_of(python: str) -> tuple[str, ...]:
    """The folders of the executable and of each link on the way to the real one."""
    found: list[str] = []
    path = Path(python)
    for _ in range(16):
        found.append(str(path.parent))
        if not path.is_symlink():
            break
        path = path.parent / path.readlink()
    return tuple(found)


def _with_real_paths(paths: tuple[str, ...]) -> tuple[str, ...]:
    spelled = (os.path.normpath(p) for path in paths for p in (path, os.path.realpath(path)))
    return tuple(dict.fromkeys(p for p in spelled if Path(p).exists()))


def _refused_removed(folders: tuple[str, ...]) -> tuple[str, ...]:
    """Without folders that would show the user's home, and without those below another one."""
    home = str(Path("~").expanduser().resolve())
    kept = [f for f in folders if not f"{home}/".startswith(f"{f.rstrip('/')}/")]
    return tuple(
        f for f in kept if not any(f != other and f.startswith(f"{other}/") for other in kept)
    )
