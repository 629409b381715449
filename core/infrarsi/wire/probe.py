"""Runner to probe: the configuration file. Probe to runner: control lines and evidence.

The probe speaks plain JSON of these shapes (it can import nothing of ours). The configuration's
path is in the environment variable INFRARSI_PROBE; evidence is written as
`<evidence_dir>/rank<R>.json`, whole or not at all; raw tensors as
`<evidence_dir>/step<K>.rank<R>.bin`.
"""

from typing import Annotated, Literal

from pydantic import Field

from infrarsi.frozen import Frozen
from infrarsi.run import Mode

PROBE_ENV = "INFRARSI_PROBE"


class PhaseSpan(Frozen):
    """Lines of a file, 1-based inclusive, that belong to a phase. `file` is absolute."""

    file: str
    first_line: int
    last_line: int
    phase: Literal["data", "forward", "backward", "communication", "optimizer", "other"]


class ProbeConfig(Frozen):
    """What the probe of every rank reads at start.

    `warmup_steps` are ignored, then `window_steps` recorded, then the job is ended cleanly.
    With `control_socket` (a unix stream socket) the probe announces each step and obeys the
    runner instead: it ends only when told to, or after `max_steps`. `redo_dir` holds the
    candidate's audit files: at each of `redo_steps` they are swapped in before the step. Dropout
    is held still in audited and redone steps, but for `natural_steps`. With
    `autocast` (a 16-bit type) the redone steps' forward runs under it: the reference arm; with
    `rounds_weights` they start from weights rounded to bfloat16 instead.
    `memory_budget_bytes` is granted to each rank on top of what it uses once torch is imported.
    """

    version: Literal[1] = 1
    mode: Mode
    evidence_dir: str
    control_socket: str | None = None
    warmup_steps: int = 2
    window_steps: int = 10
    max_steps: int = 100_000
    hash_key: str = "0"
    seed: int | None = None
    memory_budget_bytes: int | None = None
    audit_steps: tuple[int, ...] = ()
    audit_limit_bytes: int = 4 << 30
    redo_steps: tuple[int, ...] = ()
    natural_steps: tuple[int, ...] = ()
    redo_dir: str | None = None
    autocast: Literal["bfloat16"] | None = None
    rounds_weights: bool = False
    spans: tuple[PhaseSpan, ...] = ()
    source_root: str | None = None


class StepRecord(Frozen):
    """One step on one rank, as seen in-process: a hint, never what decides.

    `rows` and `tokens` are summed over micro-steps; hashes are hexadecimal, 64 bit, sums over
    rows modulo 2**64 and so independent of grouping; `losses` are the values that entered
    backward, one a micro-step. `rows_seen` are the rows that an earlier step of the rank had too,
    counted in a redo only.
    """

    index: int
    end_s: float
    cpu_s: float
    micro_steps: int
    rows: int
    tokens: int
    seq_len: int | None = None
    inputs_hash: str | None = None
    targets_hash: str | None = None
    positions_in_loss: int | None = None
    rows_seen: int | None = None
    losses: tuple[float | None, ...] = ()
    learning_rates: tuple[float, ...] = ()
    changed_samples: int | None = None
    autocast: str | None = None
    loss_dtype: str | None = None
    skipped: bool = False


class OptimizerRecord(Frozen):
    """An optimizer as constructed: class, and per group its hyper-parameters as text."""

    name: str
    groups: tuple[dict[str, str], ...]
    n_parameters: int


class AuditTensor(Frozen):
    """One tensor in an audit file. `role`: before, grad, after, or state.<name>."""

    role: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    offset: int
    n_bytes: int


class Audit(Frozen):
    """One audited step: the raw file and its index. `scalars` are non-tensor optimizer state."""

    step: int
    file: str
    tensors: tuple[AuditTensor, ...]
    scalars: dict[str, float] = {}


class LineCost(Frozen):
    """Seconds a step spends with this line innermost in the user's files."""

    file: str
    line: int
    phase: str
    seconds_per_step: float


class Profile(Frozen):
    """Seconds per step by phase, medians over the profiled steps; the sum is the step time."""

    step_time_s: float
    data_s: float
    forward_s: float
    backward_s: float
    communication_s: float
    optimizer_s: float
    other_s: float
    lines: tuple[LineCost, ...] = ()
    n_steps: int
    n_samples: int = 0


class ProbeFailure(Frozen):
    """Why a rank ended before its window."""

    kind: Literal["oom", "exception", "no_optimizer_step", "no_backward", "exit", "audit_too_large"]
    message: str
    requested_bytes: int | None = None
    file: str | None = None
    line: int | None = None


class FlopCount(Frozen):
    """FLOPs of one preflight step of this rank, forward and backward, two per multiply-add.

    `attention` is the part in batched products with a square matrix of the sequence length
    (scores, and scores times values); a causal convention halves it.
    """

    total: int
    attention: int
    by_dtype: dict[str, int] = {}


class RankEvidence(Frozen):
    """The evidence file of one rank."""

    version: Literal[1] = 1
    mode: Mode
    rank: int
    local_rank: int = 0
    world_size: int
    pid: int
    device: str = "cpu"
    torch_version: str
    python_version: str
    n_threads: int
    n_dropouts: int = 0
    dropped_elements: float = 0.0
    root_module: str | None = None
    n_parameters: int = 0
    n_trainable: int = 0
    parameter_dtypes: dict[str, int] = {}
    parameter_shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    optimizers: tuple[OptimizerRecord, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    audits: tuple[Audit, ...] = ()
    profile: Profile | None = None
    flops: FlopCount | None = None
    failure: ProbeFailure | None = None
    base_rss_bytes: int = 0
    peak_rss_bytes: int = 0
    overhead_s: float = 0.0
    overhead_steps: int = 0
    tampering: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    outside_imports: tuple[str, ...] = ()


class Hello(Frozen):
    """First line of each rank on the control socket."""

    type: Literal["hello"] = "hello"
    rank: int
    world_size: int


class Stepped(Frozen):
    """A step has ended (its optimizer calls and all queued device work)."""

    type: Literal["step"] = "step"
    index: int


class Bye(Frozen):
    """The last line: evidence is on disk."""

    type: Literal["bye"] = "bye"
    reason: str


ProbeLine = Annotated[Hello | Stepped | Bye, Field(discriminator="type")]


class AuditCommand(Frozen):
    """Dump the step of this index, with dropout held still unless `natural`.

    Sent at least two steps ahead.
    """

    type: Literal["audit"] = "audit"
    step: int
    natural: bool = False


class StopCommand(Frozen):
    """End the job cleanly when the step of this index has ended."""

    type: Literal["stop"] = "stop"
    after: int


RunnerLine = Annotated[AuditCommand | StopCommand, Field(discriminator="type")]
