"""Sends the tick of a step when the step has really ended, without making the job wait for it.

On the CPU that is at once. On a GPU the work of the step is still queued: an event is recorded
and a thread waits for it, so that the job can queue ahead as it does without the probe.
"""

import queue
import threading

import torch

from infrarsi_probe.control import RunnerGoneError


class _Now:
    def __init__(self, send):
        self._send = send

    def tick(self, index):
        self._send(type="step", index=index)

    def finish(self):
        pass


class _WhenDone:
    def __init__(self, send):
        self._send = send
        self._queue = queue.Queue()
        self._gone = None
        self._thread = threading.Thread(target=self._run, name="probe-ticks", daemon=True)
        self._thread.start()

    def tick(self, index):
        if self._gone is not None:
            raise self._gone
        event = torch.cuda.Event(blocking=True)
        event.record()
        self._queue.put((index, event))

    def _run(self):
        while True:
            item = self._queue.get()
            if item is None:
                return
            index, event = item
            event.synchronize()
            try:
                self._send(type="step", index=index)
            except RunnerGoneError as error:
                self._gone = error
                return

    def finish(self):
        self._queue.put(None)
        self._thread.join()


def ticker(send):
    """Something with `tick(index)`, which may raise RunnerGoneError, and `finish()`."""
    return _WhenDone(send) if torch.cuda.is_initialized() else _Now(send)
