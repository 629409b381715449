"""Folders a job has written in: copied without following links, removed whatever their modes."""

import os
import shutil
import stat
from pathlib import Path


def copy_folder(source: Path, target: Path) -> None:
    """Copy a folder with its links as links. `target` must not exist."""
    shutil.copytree(source, target, symlinks=True)


def remove_folder(path: Path) -> None:
    """Remove a folder and what is in it; a folder that is not there is fine.

    A job may leave folders without write permission; they are opened again on the way.
    """
    if not path.exists():
        return
    for folder, _, _ in os.walk(path):
        if not os.access(folder, os.W_OK | os.X_OK):
            Path(folder).chmod(stat.S_IRWXU)
    shutil.rmtree(path)
