"""What a knob means, told from its name and values: the words trainers use for one thing.

A role is a configuration column of `infrarsi.estimate`, so that a setting can be put beside what
is known of the job and estimated. A knob without a role is only learned from trials. Leaves out
patches: what they do is claimed or learned.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from infrarsi.frozen import Scalar
from infrarsi.knobs import Setting
from infrarsi.models.encoding import EncodedKnob

Columns = dict[str, Scalar]
Read = Callable[[Scalar], Columns]


@dataclass(frozen=True)
class Role:
    """`column` is the role's name; `read` turns a value into columns of an estimate."""

    column: str
    read: Read


def find_roles(knobs: tuple[EncodedKnob, ...]) -> dict[str, Role]:
    """The roles of the knobs that have one, by the knob's name; each role once."""
    found: dict[str, Role] = {}
    for knob in knobs:
        role = None if knob.is_patch else _role_of(knob)
        if role is not None and all(role.column != r.column for r in found.values()):
            found[knob.name] = role
    return found


def columns_of(setting: Setting, roles: Mapping[str, Role]) -> Columns:
    """The setting as columns of an estimate; knobs without a role say nothing."""
    made: Columns = {}
    for name, role in roles.items():
        made.update(role.read(setting[name]))
    return made


def _role_of(knob: EncodedKnob) -> Role | None:
    words = _words(knob.name)
    for pattern, column, make in _NAMES:
        if re.fullmatch(pattern, words):
            read = make(column)
            if any(read(choice) for choice in knob.choices):
                return Role(column, read)
    return None


def _words(name: str) -> str:
    """Lower-case words joined by one space; camel case is parted too."""
    parted = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name.rsplit(".", 1)[-1])
    return re.sub(r"[^a-z0-9]+", " ", parted.lower()).strip()


def _count(column: str) -> Read:
    def read(value: Scalar) -> Columns:
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
        return {column: value} if is_number else {}

    return read


def _switch(column: str) -> Read:
    def read(value: Scalar) -> Columns:
        truth = _truth(value)
        return {} if truth is None else {column: truth}

    return read


def _stage(column: str) -> Read:
    def read(value: Scalar) -> Columns:
        if isinstance(value, bool):
            return {column: 3 if value else 0}
        if isinstance(value, int | float):
            return {column: int(value)} if 0 <= value <= 3 else {}
        words = value.lower()
        for spelled, stage in _STAGES:
            if spelled in words:
                return {column: stage}
        return {}

    return read


def _checkpointing(column: str) -> Read:
    def read(value: Scalar) -> Columns:
        truth = _truth(value)
        if truth is not None:
            return {column: "full" if truth else "none"}
        words = str(value).lower()
        for spelled, mode in _CHECKPOINTS:
            if spelled in words:
                return {column: mode}
        return {}

    return read


def _precision(column: str) -> Read:
    def read(value: Scalar) -> Columns:
        words = str(value).lower().replace("bfloat16", "bf16").replace("float", "fp")
        for name in ("mxfp8", "nvfp4", "fp8", "tf32", "bf16", "fp16", "fp32"):
            if name in words:
                return {column: name}
        return {column: "fp8"} if words.startswith(("e4m3", "hybrid")) else {}

    return read


def _switched_precision(name: str) -> Callable[[str], Read]:
    def make(column: str) -> Read:
        def read(value: Scalar) -> Columns:
            truth = _truth(value)
            on = str(value).lower() not in {"none", ""} if truth is None else truth
            return {column: name} if on else {}

        return read

    return make


def _offload(column: str) -> Read:
    def read(value: Scalar) -> Columns:
        truth = _truth(value)
        words = "" if truth is not None else str(value).lower()
        on = truth if truth is not None else words not in {"none", "off", ""}
        if column == "act_offload":
            return {column: bool(on)}
        return {"sharding": "optimizer offload"} if on else {}

    return read


def _attention(column: str) -> Read:
    def read(value: Scalar) -> Columns:
        truth = _truth(value)
        if truth is not None:
            return {column: "flash" if truth else "eager"}
        words = str(value).lower()
        plain = any(w in words for w in ("eager", "math", "naive", "manual", "unfused", "vanilla"))
        return {column: "eager" if plain else words}

    return read


def _compile(column: str) -> Read:
    def read(value: Scalar) -> Columns:
        truth = _truth(value)
        on = truth if truth is not None else str(value).lower() not in {"none", "off", "eager", ""}
        return {column: bool(on)}

    return read


def _truth(value: Scalar) -> bool | None:
    if isinstance(value, bool):
        return value
    words = str(value).lower()
    if words in {"true", "yes", "on", "1"}:
        return True
    return False if words in {"false", "no", "off", "0"} else None


_STAGES = (
    ("shard grad", 2), ("shard_grad", 2), ("full_shard", 3), ("hsdp", 3), ("hybrid", 3),
    ("fsdp", 3), ("ddp", 0), ("3", 3), ("2", 2), ("1", 1), ("0", 0), ("none", 0), ("no", 0),
    ("off", 0), ("replic", 0), ("optim", 1), ("full", 3),
)  # fmt: skip

_CHECKPOINTS = (
    ("selective", "selective"), ("attn", "selective"), ("attention", "selective"),
    ("partial", "selective"), ("offload", "offload"), ("full", "full"), ("all", "full"),
    ("block", "full"), ("layer", "full"), ("uniform", "full"), ("none", "none"),
)  # fmt: skip

_DEGREE = r"(?: model)?(?: parallel(?:ism)?)?(?: size| degree| world size| dim)?"

_NAMES: tuple[tuple[str, str, Callable[[str], Read]], ...] = tuple(
    (pattern, column, make)
    for column, make, patterns in (
        ("micro_batch_seqs", _count, (
            r"micro ?(batch|bs|bsz)( size)?( seqs| sequences| rows)?", r"mbs|ubatch",
            r"(per device |per gpu |device |train |local )+(train )?batch( size)?",
            r"train micro batch size per gpu", r"batch( size)?( per (gpu|device))?", r"bsz?",
        )),
        ("grad_accum", _count, (
            r"(grad(ient)? )?acc(um(ulation)?)?( steps?)?", r"gas|(n |num )?micro ?batches",
        )),
        ("tp", _count, (r"tp( size| degree)?", "tensor" + _DEGREE)),
        ("pp", _count, (r"pp( size| degree)?", "pipeline" + _DEGREE)),
        ("vpp", _count, (
            r"vpp?( size| degree)?",
            r"(virtual|interleaved?)( pipeline)?( model)?( parallel)?( size| degree)?",
            r"virtual( pipeline)?( stages?| chunks?)",
            r"(num )?(virtual|model) (stages|chunks)( per rank)?",
        )),
        ("cp", _count, (r"cp( size| degree)?", "context" + _DEGREE)),
        ("ep", _count, (r"ep( size| degree)?", "expert" + _DEGREE)),
        ("dp", _count, (r"dp( size| degree)?", "data" + _DEGREE)),
        ("sequence_parallel", _switch, (r"sp", r"seq(uence)? parallel(ism)?")),
        ("zero_stage", _stage, (
            r"zero( stage)?", r"(fsdp|zero) (stage|strategy|mode|level)", r"shard(ed)?|fsdp",
            r"sharding( strategy| stage| mode)?", r"(use )?distributed optimizer",
            r"data parallel (shard(ing)?|mode|strategy)", r"dp (mode|strategy|type)",
        )),
        ("act_ckpt_class", _checkpointing, (
            r"(act(ivation)?s? )?(ckpt|checkpoint(s|ing)?)( mode| class| policy)?",
            r"(act(ivation)? )?recompute( granularity| mode| policy)?", r"ac( mode)?",
            r"remat( policy)?", r"(activation )?recomputation", r"grad(ient)? checkpointing",
        )),
        ("precision_class", _precision, (
            r"precision( class)?", r"(compute |param )?dtype", r"mixed precision", r"amp( dtype)?",
        )),
        ("precision_class", _switched_precision("bf16"), (r"(use )?bf16",)),
        ("precision_class", _switched_precision("fp8"), (
            r"(use )?(fp8|float8)( format| recipe| mode)?",
        )),
        ("act_offload", _offload, (
            r"(act(ivation)?s? )(cpu )?offload(ing)?", r"offload act(ivation)?s?",
        )),
        ("offload_optimizer", _offload, (
            r"(cpu )?offload( optimi[sz]er| optim)?( states?)?",
            r"optim(i[sz]er)?( states?)? (cpu )?offload(ing)?", r"cpu offload",
        )),
        ("attn_impl", _attention, (
            r"att(e)?n(tion)?( impl(ementation)?| backend| kernel)?", r"sdpa",
            r"(use )?flash( att(e)?n(tion)?)?( 2)?",
        )),
        ("compile", _compile, (r"(use )?(torch )?compile( mode)?",)),
    )
    for pattern in patterns
)  # fmt: skip
