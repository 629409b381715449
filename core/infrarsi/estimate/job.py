"""A described job, read from a plain mapping: model, hardware, layout, precision, memory modes.

`read_job` accepts the configuration columns of the public runs and the names the search's `job`
has; what is missing is inferred where it can be and named in `Job.assumed`. Leaves out outcomes:
a column that tells what a run did is never read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from infrarsi.estimate.fields import Fields, UnreadableJob
from infrarsi.estimate.layout import Layout, read_layout
from infrarsi.estimate.machine import Machine, read_machine
from infrarsi.estimate.modes import Modes, read_modes
from infrarsi.estimate.shape import Shape
from infrarsi.estimate.shape_reading import read_shape

__all__ = ["Job", "UnreadableJob", "read_job"]


@dataclass(frozen=True, slots=True)
class Job:
    """One training job on one kind of device. `assumed` names the columns that were inferred."""

    model: Shape
    machine: Machine
    layout: Layout
    modes: Modes
    flops_per_token: float | None
    assumed: tuple[str, ...]

    @property
    def micro_tokens(self) -> float:
        """Tokens of one micro-batch on one device (a context-parallel rank has its share)."""
        return self.layout.micro_batch * self.layout.seq / self.layout.cp

    @property
    def step_tokens(self) -> float:
        """Tokens of an optimizer step, all devices together."""
        return float(self.layout.global_batch * self.layout.seq)


def read_job(told: Mapping[str, Any]) -> Job:
    """Read a job from a mapping of column names to values; None, NaN and "" mean unknown.

    Besides the columns, `gpus layers heads kv_heads head_dim ffn vocab seq global_batch experts
    top_k` name the same things; `params_dense params_expert flops_per_token` win over what the
    shape gives, and `capacity_gib peak_bf16 peak_fp8 hbm nvlink ib gpus_per_node` (GiB, FLOP/s,
    bytes/s) over the hardware table, so `hardware` may then be absent.

    Raises:
        UnreadableJob: size or device unknown, or a number that is none.
    """
    fields = Fields(told)
    machine = read_machine(fields)
    model = read_shape(fields)
    modes = read_modes(fields)
    layout = read_layout(fields, machine.domain, model.experts)
    return Job(
        model=model,
        machine=machine,
        layout=layout,
        modes=modes,
        flops_per_token=fields.positive("flops_per_token"),
        assumed=model.assumed + layout.assumed + modes.assumed,
    )
