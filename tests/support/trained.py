"""Running a job given as texts, in this process, for its printed lines."""

import contextlib
import io
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch

torch.set_num_threads(1)


def printed(texts: Mapping[str, str]) -> list[list[float]]:
    """The numbers on each line the job prints."""
    return [[float(word) for word in line.split()] for line in printed_lines(texts)]


def printed_lines(
    texts: Mapping[str, str], args: Sequence[str] = (), file: Path = Path("train.py")
) -> list[str]:
    """The lines the job prints, run as `file` with these arguments."""
    scope = {"__name__": "__main__", "__file__": str(file)}
    argv = sys.argv
    sys.argv = [str(file), *args]
    try:
        with _importable(texts), contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(texts["train.py"], "train.py", "exec"), scope)
    finally:
        sys.argv = argv
    return out.getvalue().splitlines()


@contextlib.contextmanager
def _importable(texts: Mapping[str, str]) -> Iterator[None]:
    """The other texts as modules, in dependency order of their depth."""
    added: list[str] = []
    for path in sorted(texts, key=lambda p: (not p.endswith("__init__.py"), p)):
        if path == "train.py":
            continue
        name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        module = types.ModuleType(name)
        module.__path__ = [] if path.endswith("__init__.py") else None
        sys.modules[name] = module
        added.append(name)
        exec(compile(texts[path], path, "exec"), module.__dict__)
    try:
        yield
    finally:
        for name in added:
            del sys.modules[name]
