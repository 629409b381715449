"""A thread that looks every 4 ms at what line the training thread is on.

It splits the gaps that no hook covers by the configured spans of lines, and says which lines of
the user's files a step spends its time on.
"""

import sys
import threading
from pathlib import Path

from infrarsi_probe import clocks
from infrarsi_probe.failures import own_file

INTERVAL_S = 0.004
LONGEST_S = 0.5


class Sampler:
    """Samples the thread that made it, while `recording`."""

    def __init__(self, phases, spans, root):
        self._phases = phases
        self._root = root
        self._thread_id = threading.get_ident()
        self._spans = {}
        for span in spans:
            path = str(Path(span["file"]).resolve())
            rows = (span["first_line"], span["last_line"], span["phase"])
            self._spans.setdefault(path, []).append(rows)
        self._own = {}
        self._stop = threading.Event()
        self.recording = False
        self.n_samples = 0
        self.gaps = {}
        self.lines = {}
        self._thread = threading.Thread(target=self._run, name="probe-sampler", daemon=True)

    def start(self):
        """Start looking."""
        self._thread.start()

    def stop(self):
        """Stop looking and wait for the thread."""
        self.recording = False
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(1.0)

    def _run(self):
        last = clocks.now()
        while not self._stop.is_set():
            clocks.sleep(INTERVAL_S)
            at = clocks.now()
            if self.recording:
                frame = sys._current_frames().get(self._thread_id)
                if frame is not None:
                    self._take(frame, min(at - last, LONGEST_S))
            last = at

    def _resolved(self, filename):
        if filename not in self._own:
            path = str(Path(filename).resolve()) if not filename.startswith("<") else None
            self._own[filename] = (path, path is not None and own_file(path, self._root))
        return self._own[filename]

    def _take(self, frame, seconds):
        phase, gap = self._phases.where()
        innermost, named = None, None
        while frame is not None:
            path, own = self._resolved(frame.f_code.co_filename)
            line = frame.f_lineno
            if own and innermost is None:
                innermost = (path, line)
            for first, last, span_phase in self._spans.get(path, ()):
                if named is None and first <= line <= last:
                    named = span_phase
            frame = frame.f_back
        self._add(phase, gap, named, innermost, seconds)

    def _add(self, phase, gap, named, innermost, seconds):
        self.n_samples += 1
        if phase is None:
            shares = self.gaps.setdefault(gap, {})
            shares[named] = shares.get(named, 0.0) + seconds
        if innermost is not None:
            key = (*innermost, phase, gap, named)
            self.lines[key] = self.lines.get(key, 0.0) + seconds
