"""TaskContract: workload, loss, timing, scope and environment of one job, with the policy."""

from typing import Annotated, Literal

from pydantic import Field

from infrarsi.frozen import Frozen, Scalar
from infrarsi.launch import Launch
from infrarsi.place import Place

Precision = Literal["fp32", "bf16", "fp16"]


class Fact(Frozen):
    """Something read from source or observed, with its place, or the reason it is unknown.

    `name` is canonical: micro_batch, accumulation, world_size, global_batch, seq_len, optimizer,
    lr, weight_decay, clip, precision, loss, seed, updates, tokens_per_step, ... Exactly one of
    `value` and `unknown` is set. `guess` is an editable proposal where the value is unknown.
    `given` marks what the user said rather than what was read.
    """

    name: str
    value: Scalar | None = None
    place: Place | None = None
    unknown: str | None = None
    guess: Scalar | None = None
    given: bool = False


class EquivalencePolicy(Frozen):
    """How far an honest candidate may differ, fixed at lock.

    In 16 bit an error may be `reference_factor_16bit` times that of the reference arm (the
    baseline's own code under autocast), up to a ceiling; `*_16bit` hold where no such run was
    made. Relative errors are norms of the difference over all tensors divided by the norm of the
    baseline's. Source of the defaults: the tried audit (honest fp32 rewrites 1e-6, bf16 autocast
    2e-3 on gradients; the mildest cheat 0.2).
    """

    allow_bf16_autocast: bool = True
    grad_rel_err_fp32: float = 1e-4
    grad_rel_err_16bit: float = 1.5e-2
    reference_factor_16bit: float = 3.0
    grad_rel_err_16bit_ceiling: float = 0.1
    update_rel_err_fp32: float = 1e-3
    update_rel_err_16bit: float = 1.5e-1
    loss_rel_err_fp32: float = 1e-3
    loss_rel_err_16bit: float = 1e-2


class Protocol(Frozen):
    """The promotion protocol's numbers, fixed at lock.

    A unit is a balanced couple of process pairs; turns are of `steps_per_turn` steps, the first
    dropped; looks are after that many units; `alpha` is per campaign.
    """

    min_gain_frac: float = Field(default=0.01, ge=0, lt=1)
    alpha: float = Field(default=0.01, gt=0, le=0.05)
    looks: tuple[Annotated[int, Field(ge=1, le=64)], ...] = Field(default=(2, 4, 8), min_length=1)
    turn_pairs: int = Field(default=2, ge=1, le=50)
    steps_per_turn: int = Field(default=10, ge=3, le=1000)
    max_finalists: int = Field(default=3, ge=1, le=3)


class Scope(Frozen):
    """Globs, relative to the workspace root. What is in neither may change but is not proposed."""

    editable: tuple[str, ...]
    locked: tuple[str, ...]


class Workload(Frozen):
    """What one optimizer step works on, all ranks together. None where it could not be read."""

    global_batch_rows: int | None = None
    seq_len_tokens: int | None = None
    world_size: int = 1


class TaskContract(Frozen):
    """The contract of one job."""

    job: str
    launch: Launch
    workload: Workload
    precision: Precision = "fp32"
    facts: tuple[Fact, ...] = ()
    scope: Scope
    policy: EquivalencePolicy = EquivalencePolicy()
    protocol: Protocol = Protocol()
    memory_limit_bytes: int | None = None
    run_timeout_s: float = 600.0
    seed: int = 1337

    def fact(self, name: str) -> Fact | None:
        """The fact of that name, if there is one."""
        return next((f for f in self.facts if f.name == name), None)


class Lock(Frozen):
    """The frozen contract: `.infrarsi/contract.lock.json` holds one for each job.

    `digest` is SHA-256 over the canonical JSON of every other field.
    """

    version: Literal[1] = 1
    contract: TaskContract
    locked_files: dict[str, str]
    baseline_commit: str
    digest: str
