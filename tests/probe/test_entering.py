"""The door: what happens in a Python process that has it on its path."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from probe_jobs import ENTER, probe_environment, read_evidence

from infrarsi.wire.probe import ProbeConfig

SHOW = "import sys; print(sorted(m for m in sys.modules if 'infrarsi' in m), sys.path)"


def python(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def own_site(folder: Path) -> Path:
    site = folder / "own"
    site.mkdir()
    (site / "sitecustomize.py").write_text("print('own sitecustomize', __file__)\n")
    return site


def test_without_the_variable_only_the_users_sitecustomize_runs(tmp_path: Path):
    paths = f"{ENTER}{os.pathsep}{own_site(tmp_path)}"
    output = python({**os.environ, "PYTHONPATH": paths}, "-c", SHOW)
    assert "own sitecustomize" in output
    assert "infrarsi_probe" not in output
    assert str(ENTER) not in output


def test_with_the_variable_the_users_sitecustomize_still_runs(
    tmp_path: Path, config: Callable[..., ProbeConfig]
):
    path = tmp_path / "config.json"
    path.write_text(config().model_dump_json())
    environment = probe_environment(path)
    environment["PYTHONPATH"] += f"{os.pathsep}{own_site(tmp_path)}"
    output = python(environment, "-c", SHOW)
    assert "own sitecustomize" in output
    assert "infrarsi_probe.start" in output
    assert str(ENTER) not in output
    assert str(ENTER.parents[1]) not in output.split("]", 1)[1].replace("'", " ").split(", ")


def test_torch_is_not_imported_for_a_process_that_does_not_use_it(
    tmp_path: Path, config: Callable[..., ProbeConfig]
):
    path = tmp_path / "config.json"
    path.write_text(config().model_dump_json())
    output = python(probe_environment(path), "-c", "import sys; print('torch' in sys.modules)")
    assert output.strip() == "False"


def test_a_script_that_never_trains_says_so(tmp_path: Path, config: Callable[..., ProbeConfig]):
    settings = config()
    path = tmp_path / "config.json"
    path.write_text(settings.model_dump_json())
    python(probe_environment(path), "-c", "print('nothing to do')")
    (evidence,) = read_evidence(Path(settings.evidence_dir))
    assert evidence.failure is not None
    assert evidence.failure.kind == "no_backward"
