"""Who this process is: its rank, and whether it may speak for that rank.

Every Python process of a job loads the probe: the launcher's agent, data-loader workers,
compiler workers, scripts the script calls. A process that takes optimizer steps always speaks
for its rank. One that takes none speaks only where no ancestor has the same rank, and not as
torchrun's agent: the environment carries who was first.
"""

import os
import sys

MARK = "INFRARSI_PROBE_OWNER"


def _environment_rank():
    for key in ("RANK", "SLURM_PROCID"):
        value = os.environ.get(key, "")
        if value.isdigit():
            return int(value)
    return None


class Process:
    """This process's place among the job's processes."""

    def __init__(self):
        rank = _environment_rank()
        mark = "-" if rank is None else str(rank)
        self.is_first = os.environ.get(MARK) != mark
        os.environ[MARK] = mark

    @property
    def is_agent(self):
        """Whether this is torchrun's own process, which imports torch but never trains."""
        return _environment_rank() is None and "torch.distributed.run" in sys.modules

    @property
    def speaks(self):
        """Whether evidence without any optimizer step may be written from here."""
        return self.is_first and not self.is_agent


def _initialized():
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed
    return None


def rank():
    """This process's rank: the process group's where there is one, else the environment's."""
    group = _initialized()
    return group.get_rank() if group else _environment_rank() or 0


def world_size():
    """Number of ranks, by the same rule."""
    group = _initialized()
    if group:
        return group.get_world_size()
    for key in ("WORLD_SIZE", "SLURM_NTASKS"):
        if os.environ.get(key, "").isdigit():
            return int(os.environ[key])
    return 1


def local_rank():
    """Rank on this machine, as the launcher says; 0 where it says nothing."""
    for key in ("LOCAL_RANK", "SLURM_LOCALID"):
        if os.environ.get(key, "").isdigit():
            return int(os.environ[key])
    return 0
