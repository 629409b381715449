"""Ticks only: what the full probe's cost is measured against. Set INFRARSI_PROBE_MINIMAL=1.

One optimizer hook that sends a line a step and obeys a stop, nothing else.
"""

import os

from infrarsi_probe import ranks
from infrarsi_probe.control import Control, RunnerGoneError


class _Ticks:
    def __init__(self, config):
        self._config = config
        self._control = None
        self._index = 0
        self._stop = config.max_steps - 1

    def step(self, optimizer, args, kwargs):
        """Optimizer post hook."""
        try:
            if self._control is None:
                self._control = Control(self._config.control_socket)
                size = ranks.world_size()
                self._control.send(type="hello", rank=ranks.rank(), world_size=size)
            self._control.send(type="step", index=self._index)
            for command in self._control.commands():
                if command.get("type") == "stop":
                    self._stop = command["after"]
        except RunnerGoneError:
            os._exit(0)
        if self._index >= self._stop:
            os._exit(0)
        self._index += 1


def install(config):
    """Register the hook; needs a control socket and a job with one optimizer."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    register_optimizer_step_post_hook(_Ticks(config).step)
