"""Argv and environment of a job are the runner's own work."""

from pathlib import Path

import pytest

from infrarsi.errors import UsageError
from infrarsi.launch import Launch
from infrarsi_runner.launch.command import TORCHRUN, Places, job_argv, job_environment

PLACES = Places(
    tree=Path("/t"),
    scratch=Path("/s"),
    tmp=Path("/tmp"),
    door=Path("/probe/enter"),
    probe_config=Path("/r/probe.json"),
)


def environment(
    launch: Launch, *, editable: tuple[Path, ...] = (), daemon: dict[str, str] | None = None
) -> dict[str, str]:
    return job_environment(
        launch,
        {},
        "/venv/bin/python",
        PLACES,
        mode="timed",
        threads=2,
        editable=editable,
        daemon=daemon or {},
    )


def test_torchs_launcher_is_started_from_our_file_and_not_through_the_working_folder() -> None:
    launch = Launch(launcher="torchrun", n_processes=2, script="train.py", args=("--lr", "1"))
    argv = job_argv("/venv/bin/python", launch, 29500)
    assert argv[:2] == ("/venv/bin/python", str(TORCHRUN))
    assert "-m" not in argv
    assert argv[-3:] == ("train.py", "--lr", "1")
    assert sorted(p.name for p in TORCHRUN.parent.glob("*.py")) == ["start.py"]


def test_a_script_that_looks_like_an_option_is_none() -> None:
    assert job_argv("/p", Launch(script="-c", args=("import os",)), 1)[1] == "./-c"


RESERVED = [
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "PATH",
    "HOME",
    "TMPDIR",
    "BASH_ENV",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONPYCACHEPREFIX",
    "INFRARSI_PROBE",
    "TORCHELASTIC_ERROR_FILE",
    "A=B",
]


@pytest.mark.parametrize("name", [*RESERVED, ""])
def test_variables_that_change_how_a_job_is_run_are_refused(name: str) -> None:
    with pytest.raises(UsageError):
        environment(Launch(script="t.py", env={name: "1"}))


def test_the_probe_comes_first_then_the_trees_own_roots_then_what_the_launch_adds() -> None:
    launch = Launch(script="t.py", env={"PYTHONPATH": "lib:.", "SEED": "1"})
    made = environment(launch, editable=(Path("/t/src"),))
    assert made["PYTHONPATH"] == "/probe/enter:/t/src:/t/lib:/t"
    assert made["SEED"] == "1"


@pytest.mark.parametrize("path", ["/opt/evil", "../elsewhere", "lib:/usr/lib"])
def test_import_paths_outside_the_tree_are_refused(path: str) -> None:
    with pytest.raises(UsageError, match="outside the workspace"):
        environment(Launch(script="t.py", env={"PYTHONPATH": path}))


def test_of_the_daemons_environment_only_harmless_names_are_passed_on() -> None:
    daemon = {"LANG": "de_DE.UTF-8", "SSH_AUTH_SOCK": "/x", "API_KEY": "k", "LD_PRELOAD": "/e.so"}
    made = environment(Launch(script="t.py"), daemon=daemon)
    assert made["LANG"] == "de_DE.UTF-8"
    assert not {"SSH_AUTH_SOCK", "API_KEY", "LD_PRELOAD"} & made.keys()


def test_offline_modes_and_private_caches_are_set() -> None:
    made = environment(Launch(script="t.py"))
    assert made["WANDB_MODE"] == "offline"
    assert made["HF_HUB_OFFLINE"] == "1"
    assert made["OMP_NUM_THREADS"] == "2"
    assert all(made[n].startswith("/s/") for n in ("HOME", "XDG_CACHE_HOME", "TRITON_CACHE_DIR"))


def test_threads_wait_passively_unless_the_launch_line_says_otherwise() -> None:
    assert environment(Launch(script="t.py"))["OMP_WAIT_POLICY"] == "PASSIVE"
    asked = Launch(script="t.py", env={"OMP_WAIT_POLICY": "ACTIVE"})
    assert environment(asked)["OMP_WAIT_POLICY"] == "ACTIVE"
