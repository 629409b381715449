"""Jobs on this machine: plain processes, each in a session of its own."""

import contextlib
import os
import signal
import subprocess
from typing import IO

from infrarsi.errors import RunnerError
from infrarsi_runner.launch.base import Command, Ended, Identity
from infrarsi_runner.process_tree import ProcessTree, start_time


class LocalLauncher:
    """Starts jobs as children of the daemon."""

    def __init__(self) -> None:
        """No job yet."""
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._ended: dict[Identity, Ended] = {}

    def start(self, command: Command) -> tuple[Identity, IO[bytes]]:
        """Start it; RunnerError where the program cannot be executed."""
        try:
            process = subprocess.Popen(
                command.argv,
                env=dict(command.env),
                cwd=command.cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise RunnerError(
                f"{command.argv[0]} cannot be started: {error.strerror}.",
                "Check that it is installed and executable on the runner's machine.",
            ) from error
        self._children[process.pid] = process
        assert process.stdout is not None
        return Identity(pid=process.pid, start_time=start_time(process.pid) or 0), process.stdout

    def poll(self, job: Identity) -> Ended | None:
        """Reap it if it ended; the answer is kept."""
        if job not in self._ended and (process := self._children.get(job.pid)):
            pid, status, usage = os.wait4(job.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                process.returncode = code
                del self._children[job.pid]
                self._ended[job] = Ended(exit_code=code, cpu_s=usage.ru_utime + usage.ru_stime)
        return self._ended.get(job)

    def kill(self, job: Identity) -> None:
        """Kill the whole tree; RunnerError if something of it survives."""
        if self.running(job):
            gone = ProcessTree(job.pid).kill()
            if job.pid in self._children:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(job.pid, signal.SIGKILL)
            if not gone:
                raise RunnerError(
                    f"Processes of job {job.pid} could not be killed.", "End them by hand."
                )

    def running(self, job: Identity) -> bool:
        """Whether the process of that number is still the one that was started."""
        return start_time(job.pid) == job.start_time and self.poll(job) is None
