"""How a process with the probe in it ends, and that it leaves evidence in every case.

The window's end is `os._exit(0)` and not SystemExit, on purpose: a script may catch SystemExit
(a bare `except:` around its loop), and process groups and worker pools may hang in their exit
handlers while other ranks are already gone. So the evidence is written, then each rank waits a
little until its peers have written theirs (none is cut off in a collective), workers are ended,
output is flushed, and all ranks leave with 0, which is what torchrun reports as success.
Uncaught exceptions and a script that ends by itself keep their own exit code.
"""

import atexit
import contextlib
import os
import sys
from pathlib import Path

from infrarsi_probe import clocks, evidence, failures, ranks

PEER_SECONDS = 10.0
POLL_SECONDS = 0.01


class Lifetime:
    """Holds the session once torch is there, and writes the evidence exactly once."""

    def __init__(self, config, process):
        self.config = config
        self.process = process
        self.base_rss = 0
        self.session = None
        self._finished = False
        self._active = True

    def listen(self):
        """Hear of uncaught exceptions, exit and fork."""
        previous = sys.excepthook

        def excepthook(kind, error, trace):
            self.failed(error)
            previous(kind, error, trace)

        sys.excepthook = excepthook
        atexit.register(self.at_exit)
        os.register_at_fork(after_in_child=self._forked)

    @property
    def active(self):
        """False in a child forked after training began: workers are not the rank."""
        return self._active

    def _forked(self):
        self.process.is_first = False
        if self.session is not None and self.session.begun:
            self._active = False
            self._finished = True

    @property
    def source_root(self):
        """The user's source folder: as configured, else the main script's."""
        main = getattr(sys.modules.get("__main__"), "__file__", None)
        root = self.config.source_root or (str(Path(main).parent) if main else ".")
        return Path(root).resolve()

    def failed(self, error):
        """An exception that nothing caught; the interpreter reports it and exits by itself."""
        if isinstance(error, (SystemExit, KeyboardInterrupt)):
            return
        if self.session is not None and self.session.stopped_by_peers():
            self.finish("stopped")
            return
        self.finish("failed", failures.from_exception(error, self.source_root))

    def at_exit(self):
        """The interpreter is going: a failure nobody told us of, or the script just ended."""
        if self._finished:
            return
        error = getattr(sys, "last_value", None)
        if error is not None:
            self.failed(error)
        else:
            self.finish("exit", self._early_exit())

    def _early_exit(self):
        session = self.session
        if session is None or not session.machine.n_backward:
            return failures.failure("no_backward", "the script ended without any backward call")
        session.close_pending()
        if not session.machine.index:
            message = "the script ended without any optimizer step"
            return failures.failure("no_optimizer_step", message)
        if session.has_all_steps():
            return None
        done, wanted = session.machine.index, self.config.end_step
        return failures.failure("exit", f"the script ended after {done} of {wanted} steps")

    def finish(self, reason, failure=None):
        """Write the evidence and say bye, once."""
        if self._finished or not self._may_speak():
            return
        self._finished = True
        content = evidence.base_evidence(self.config, self.base_rss)
        if self.session is not None:
            content.update(self.session.evidence())
        if failure is not None:
            content["failure"] = failure
        content["outside_imports"] = evidence.outside_imports(self.config.source_root)
        evidence.write_evidence(evidence.evidence_path(self.config), content)
        if self.session is not None:
            self.session.say_bye(reason)

    def _may_speak(self):
        if self.session is not None and self.session.machine.n_optimizer_calls:
            return True
        return self.process.speaks and not evidence.evidence_path(self.config).exists()

    def end_job(self, reason, failure=None):
        """Finish and leave the process at once with exit code 0."""
        self.finish(reason, failure)
        if failure is None:
            self._wait_for_peers()
        _end_workers()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(0)

    def _wait_for_peers(self):
        folder = Path(self.config.evidence_dir)
        missing = [folder / f"rank{r}.json" for r in range(ranks.world_size())]
        until = clocks.monotonic() + PEER_SECONDS
        while missing and clocks.monotonic() < until:
            missing = [path for path in missing if not path.exists()]
            if missing:
                clocks.sleep(POLL_SECONDS)


def _end_workers():
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None:
        for worker in multiprocessing.active_children():
            worker.terminate()
