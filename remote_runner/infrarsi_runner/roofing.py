"""Measuring the machine's roof: the probe's matmul script, run confined on the job's Python."""

import json
import os
from pathlib import Path

from infrarsi.errors import RunnerError
from infrarsi_runner.folders import remove_folder
from infrarsi_runner.job_log import JobLog
from infrarsi_runner.launch.base import Command
from infrarsi_runner.sandbox import Confinement
from infrarsi_runner.site import Site

_WITHIN_S = 300.0
_POLL_S = 0.05


def measure_roof(site: Site, python: str, threads: int | None) -> dict[str, float]:
    """FLOP/s by dtype, as the last line of the script's output says.

    Raises:
        RunnerError: the script fails, or says nothing within five minutes.
    """
    folder = site.runs / "roof"
    remove_folder(folder)
    folder.mkdir(parents=True)
    try:
        output = _run(site, python, threads, folder)
    finally:
        remove_folder(folder)
    try:
        answer = json.loads(output.splitlines()[-1])
        return {str(name): float(value) for name, value in answer.items()}
    except (IndexError, ValueError, AttributeError, TypeError) as error:
        last = output.splitlines()[-1][:200] if output.strip() else "nothing"
        raise RunnerError(
            f"The matmul roof could not be measured: {last}.",
            f"Check that {python} has a working torch.",
        ) from error


def _run(site: Site, python: str, threads: int | None, folder: Path) -> str:
    readable = [Path(path) for path in site.interpreter(python).folders]
    confinement = Confinement(
        readable=(*readable, *site.readable, site.probe), writable=(), tmp=folder, cwd=site.probe
    )
    environment = {
        "PATH": os.pathsep.join((str(Path(python).parent), "/usr/bin", "/bin")),
        "HOME": str(site.sandbox.tmp(confinement)),
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if threads is not None:
        environment["OMP_NUM_THREADS"] = str(threads)
    argv = site.sandbox.wrap((python, str(site.probe / "roof.py")), confinement)
    job, pipe = site.launcher.start(Command(argv=argv, env=environment, cwd=site.probe))
    site.ledger.started(job, folder)
    log = JobLog(pipe, folder / "log")
    deadline_s = site.clock() + _WITHIN_S
    try:
        while site.launcher.poll(job) is None and site.clock() < deadline_s:
            site.stop.wait(_POLL_S)
    finally:
        site.launcher.kill(job)
        text = log.finish()
        site.ledger.ended(job)
    return text
