"""The probe's start in a Python process: before torch, before the user's first line."""

import os

from infrarsi_probe import memory, ranks, seeds
from infrarsi_probe.config import read_config
from infrarsi_probe.import_hook import after_import
from infrarsi_probe.lifetime import Lifetime

MINIMAL = "INFRARSI_PROBE_MINIMAL"


def start(config_path):
    """Read the configuration and wait for torch. Raises OSError or ValueError."""
    config = read_config(config_path)
    process = ranks.Process()
    lifetime = Lifetime(config, process)
    if os.environ.get(MINIMAL) == "1":
        after_import("torch", lambda: _start_minimal(config))
        return
    if config.seed is not None:
        seeds.shift_seeds(config.seed, ranks.rank())
    lifetime.listen()
    after_import("torch", lambda: _torch_ready(lifetime))


def _start_minimal(config):
    from infrarsi_probe import minimal

    minimal.install(config)


def _torch_ready(lifetime):
    import torch

    from infrarsi_probe import hooks
    from infrarsi_probe.session import Session

    config = lifetime.config
    lifetime.base_rss = memory.status_bytes("VmRSS")
    shifted = config.seed is None or seeds.shift_torch(torch, config.seed)
    if config.memory_budget_bytes is not None and not lifetime.process.is_agent:
        memory.limit_data(config.memory_budget_bytes)
    lifetime.session = Session(lifetime)
    if not shifted:
        lifetime.session.note("seeds of torch.Generator objects cannot be shifted")
    hooks.install(lifetime.session)
