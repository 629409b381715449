"""The job's own Python: which it is, and which of its editable installs lie in the workspace.

The interpreter is the user's, chosen because it can import torch. It is started outside of the
workspace with fixed code, so that nothing of the repository is executed here.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from infrarsi.errors import ConfigError

_TIMEOUT_S = 60
_HAS_TORCH = "import importlib.util as u; raise SystemExit(u.find_spec('torch') is None)"
_EDITABLE = """
import json, re, sys
from importlib.metadata import distributions
from pathlib import Path
from urllib.parse import unquote, urlparse
roots = []
for entry in map(Path, sys.path):
    for pth in sorted(entry.glob("*.pth")) if entry.is_dir() else []:
        for line in pth.read_text(errors="replace").splitlines():
            if line.strip() and not line.startswith(("#", "import ", "import\\t")):
                roots.append(str(entry / line.strip()))
    for finder in sorted(entry.glob("__editable___*_finder.py")) if entry.is_dir() else []:
        mapping = re.search(r"^MAPPING[^=]*= (\\{.*\\})", finder.read_text(), re.M)
        if mapping:
            import ast
            roots += [str(Path(p).parent) for p in ast.literal_eval(mapping[1]).values()]
for dist in distributions():
    try:
        origin = json.loads(dist.read_text("direct_url.json") or "{}")
    except ValueError:
        continue
    if origin.get("dir_info", {}).get("editable"):
        root = Path(unquote(urlparse(origin["url"]).path))
        roots += [str(p) for p in (root / "src", root) if p.is_dir()][:1]
print(json.dumps(roots))
"""


@dataclass(frozen=True)
class Choice:
    """An interpreter as it is written into `infrarsi.toml`, and one line on how it was chosen."""

    python: str
    note: str
    has_torch: bool


def choose_python(root: Path, environ: Mapping[str, str]) -> Choice:
    """The first of `.venv`, the active environment, PATH and our own Python that has torch."""
    found = list(dict.fromkeys(_candidates(root, environ)))
    for python, where in found:
        if has_torch(_absolute(root, python)):
            return Choice(python, f"The job's own interpreter: {where}, which has torch.", True)
    python, where = found[0]
    return Choice(python, f"No interpreter with torch was found; this is {where}.", False)


def has_torch(python: Path) -> bool:
    """Whether that interpreter starts and finds torch (it is not imported)."""
    try:
        return _run(python, _HAS_TORCH).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def need_torch(python: Path) -> None:
    """Refuse an interpreter that cannot run a training job.

    Raises:
        ConfigError: it has no torch.
    """
    if not has_torch(python):
        raise ConfigError(
            f"{python} has no torch.",
            "Set python in infrarsi.toml to the interpreter that runs the job.",
        )


def resolve_python(root: Path, python: str, environ: Mapping[str, str]) -> Path:
    """The interpreter of `infrarsi.toml` as an absolute path, symbolic links kept.

    Raises:
        ConfigError: there is no such program.
    """
    if "/" in python:
        path = _absolute(root, os.path.expanduser(python))  # noqa: PTH111 (kept relative)
        found = path if os.access(path, os.X_OK) and path.is_file() else None
    else:
        on_path = shutil.which(python, path=environ.get("PATH"))
        found = Path(on_path).absolute() if on_path else None
    if found is None:
        raise ConfigError(
            f"The job's interpreter `{python}` was not found.",
            "Set `python` in infrarsi.toml to the one the job runs with.",
        )
    return found


def editable_roots(python: Path, root: Path) -> tuple[str, ...]:
    """Import roots of editable installs inside the workspace, as absolute paths.

    An interpreter that cannot say has none.
    """
    try:
        answer: list[str] = json.loads(_run(python, _EDITABLE).stdout or b"[]")
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ()
    paths = [Path(path).resolve() for path in answer]
    return tuple(dict.fromkeys(str(path) for path in paths if _is_source(path, root)))


def _is_source(path: Path, root: Path) -> bool:
    is_inside = path.is_relative_to(root.resolve())
    return is_inside and path.is_dir() and "site-packages" not in path.parts


def _candidates(root: Path, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for folder in (".venv", "venv"):
        if (root / folder / "bin" / "python").exists():
            yield f"{folder}/bin/python", f"the workspace's {folder}"
    if active := environ.get("VIRTUAL_ENV"):
        python = Path(active, "bin", "python")
        if python.exists():
            yield str(python), "the active environment's"
    for name in ("python", "python3"):
        if on_path := shutil.which(name, path=environ.get("PATH")):
            yield on_path, f"{name} on PATH"
    yield sys.executable, "the one InfraRSI itself runs in"


def _absolute(root: Path, python: str) -> Path:
    return root.resolve() / python


def _run(python: Path, code: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [str(python), "-c", code], cwd="/", capture_output=True, timeout=_TIMEOUT_S, check=False
    )
