"""Launch lines found in a workspace: a launch file, else the one script that trains.

What READMEs and Makefiles say about launching is not read.
"""

import ast
import posixpath
from collections.abc import Iterator

from infrarsi.errors import UsageError
from infrarsi.launch import Launch
from infrarsi.reading import Sources, read
from infrarsi.reading.shell import LAUNCH_FILES, read_launch_file, starts_training

_TRAINING_ROLES = {"backward", "step"}
_MAX_READ = 40
_DEFINITIONS = (
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Assign,
    ast.AnnAssign,
)


def find_launch(sources: Sources) -> Launch:
    """The launch a launch file says, else that of the one training script.

    `train.py` is preferred to other names, and a script nearer to the root to one below.

    Raises:
        LaunchRefused: the launch file's line would disturb what is measured.
        UsageError: the launch file is not understood, there is no training script, or several
            are equally likely.
    """
    said = file_launch(sources)
    if said is not None:
        return said
    scripts = [path for path in _candidates(sources) if _trains(sources, path)]
    if not scripts:
        raise UsageError(
            "No training script was found (one that calls backward and an optimizer's step).",
            'Name it: infrarsi init --launch "python train.py"',
        )
    best = min(map(_rank, scripts))
    likely = [script for script in scripts if _rank(script) == best]
    if len(likely) > 1:
        raise UsageError(
            f"There are several training scripts: {', '.join(likely[:5])}.",
            f'Name one: infrarsi init --launch "python {likely[0]}"',
        )
    return Launch(script=likely[0])


def launch_file(sources: Sources) -> str | None:
    """The launch file at the root that starts a training, None where there is none."""
    there = tuple(path for path in LAUNCH_FILES if _starts(sources, path))
    return next(iter(there), None)


def file_launch(sources: Sources) -> Launch | None:
    """What the launch file says; None where there is none.

    Raises:
        LaunchRefused: its line would disturb what is measured.
        UsageError: it is not understood.
    """
    name = launch_file(sources)
    return None if name is None else read_launch_file(name, sources.text(name) or "")


def _starts(sources: Sources, path: str) -> bool:
    text = sources.text(path)
    return text is not None and (path == LAUNCH_FILES[0] or starts_training(text))


def _rank(path: str) -> tuple[int, int]:
    return (path.count("/"), 0 if posixpath.basename(path) == "train.py" else 1)


def _candidates(sources: Sources) -> list[str]:
    found = [path for path in sources.paths() if path.endswith(".py") and not _is_test(path)]
    scripts = (path for path in found if _is_script(sources.text(path) or ""))
    return sorted(scripts, key=_rank)[:_MAX_READ]


def _is_test(path: str) -> bool:
    folders = posixpath.dirname(path).split("/")
    name = posixpath.basename(path)
    return name.startswith("test_") or name == "conftest.py" or "tests" in folders


def _is_script(text: str) -> bool:
    """Whether running the file does something."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        return "__main__" in text
    return any(_acts(statement) for statement in body)


def _acts(statement: ast.stmt) -> bool:
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return not is_text and not isinstance(statement, _DEFINITIONS)


def _trains(sources: Sources, path: str) -> bool:
    return set(_roles(sources, path)) >= _TRAINING_ROLES


def _roles(sources: Sources, path: str) -> Iterator[str]:
    return (span.role for span in read(sources, Launch(script=path)).roles)
