"""The examples run as their READMEs say; the fixtures do what their traps need."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
pytestmark = pytest.mark.live


def run(folder: Path, *command: str, **more: str) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **more},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def losses(output: str) -> list[float]:
    return [float(found) for found in re.findall(r"loss (\d+\.\d+)", output)]


@pytest.mark.parametrize("name", ["dense_gpt", "moe_gpt"])
def test_an_example_trains_alone_and_on_two_ranks(name: str) -> None:
    folder = ROOT / "examples" / name
    alone = losses(run(folder, "train.py", "--steps", "2"))
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    ranks = losses(run(folder, *torchrun, "train.py", "--steps", "2"))
    assert len(alone) == len(ranks) == 2
    assert alone[0] == pytest.approx(ranks[0], rel=0.05)


@pytest.mark.parametrize("name", ["dense_gpt", "moe_gpt"])
def test_an_example_knows_nothing_of_us(name: str) -> None:
    texts = [path.read_text() for path in (ROOT / "examples" / name).rglob("*.py")]
    assert texts
    assert not any("infrarsi" in text.lower() for text in texts)


def test_the_checkpointing_job_resumes_and_prunes(tmp_path: Path) -> None:
    script = str(FIXTURES / "checkpointing" / "train.py")
    first = run(tmp_path, script, "--steps", "12")
    assert "resumed" not in first
    kept = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert kept == ["step-10.pt", "step-5.pt"]
    again = run(tmp_path, script, "--steps", "13")
    assert "resumed from step-10.pt" in again
    assert len(losses(again)) == 2


def test_the_packaged_job_imports_what_is_first_on_its_path(tmp_path: Path) -> None:
    package = FIXTURES / "editable_package"
    other = tmp_path / "src"
    shutil.copytree(package / "src", other)
    model = other / "tinylm" / "model.py"
    model.write_text(model.read_text().replace("WIDTH = 32", "WIDTH = 48"))
    script = (package / "train.py").read_text().replace("range(1000)", "range(2)")
    (tmp_path / "train.py").write_text(script)
    for source, width in ((package / "src", 32), (other, 48)):
        output = run(tmp_path, "train.py", PYTHONPATH=str(source))
        assert output.startswith(f"width {width}\n")
        assert len(losses(output)) == 2
