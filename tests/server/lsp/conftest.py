"""A locked training repository, and a server for all tests."""

import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from editor import Editor, start_editor
from repositories import make_repository

from infrarsi_server.operations.lock import lock_jobs
from infrarsi_server.operations.project import open_project

TRAIN = """\
# naïve → 😀
import torch

import settings

MICRO_BATCH = 4; ACCUM = 8  # 😀
SEQ_LEN = 128


def main():
    model = torch.nn.Linear(SEQ_LEN, SEQ_LEN)
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.LR)
    data = torch.randn(1000, SEQ_LEN)
    for step in range(100):
        for _ in range(ACCUM):
            rows = torch.randint(len(data), (MICRO_BATCH,))
            x = data[rows]
            loss = (model(x) - x).pow(2).mean() / ACCUM
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
"""
SETTINGS = "LR = 1e-3\n"
CONFIG = f"""\
[job.main]
launch = "python train.py"
python = "{sys.executable}"
editable = ["*.py"]
locked = ["data.txt"]
"""


@pytest.fixture(scope="session")
def locked_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one locked job, made once."""
    files = {
        "train.py": TRAIN,
        "settings.py": SETTINGS,
        "data.txt": "rows\n",
        "infrarsi.toml": CONFIG,
    }
    folder = make_repository(tmp_path_factory.mktemp("locked") / "repo", files)
    lock_jobs(open_project(folder))
    return folder


@pytest.fixture
def project(locked_repository: Path, tmp_path: Path) -> Path:
    """A copy of the locked repository, in a folder with a space and a quote in its name."""
    return shutil.copytree(locked_repository, tmp_path / "my 'run'")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def editor(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Editor]:
    """One server for all tests; each test opens a repository of its own."""
    folder = tmp_path_factory.mktemp("editor")
    environ = {"INFRARSI_STATE": str(folder / "state")}
    async with start_editor(folder, environ=environ) as started:
        yield started
