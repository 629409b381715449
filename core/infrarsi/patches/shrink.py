"""The same job, smaller, for runs that only ask whether something runs at all.

Facts the reading can set (rows a step, sequence length, layers) are set to small values through
the bindings every knob is set through, and the result is read again: a job whose micro-batch or
processes would change with them is not taken. Whether a smaller job runs is for a run of the
smaller baseline to say.
"""

from infrarsi.edits import Edit
from infrarsi.frozen import Frozen, Scalar
from infrarsi.knobs import Binding, Candidate, Knob, Space
from infrarsi.launch import Launch
from infrarsi.patches.depth import depth_bindings
from infrarsi.patches.materialise import Materialised, materialise
from infrarsi.patches.overlay import overlay
from infrarsi.patches.recipe import Declined
from infrarsi.reading import follow
from infrarsi.reading.reading import Reading
from infrarsi.reading.sources import Sources

_SHORTEST_SEQ = 16
_BLOCK = 128
"""Attention kernels that want whole blocks of tokens still get them."""

_SEQ_DIVISORS = (8, 4, 2)
_MICRO_STEPS = 2
"""Accumulation stays accumulation."""

_LAYERS = 2
"""At least one a process: pipelines put their stages there."""

_KEPT = ("micro_batch", "world_size", "optimizer", "loss", "precision")


class Shrunk(Frozen):
    """Edits on top of the sources, the launch, and which facts are smaller now."""

    edits: tuple[Edit, ...]
    launch: Launch
    smaller: dict[str, Scalar]


def shrink(reading: Reading, sources: Sources, launch: Launch) -> Shrunk | None:
    """The job made as small as what was read of it allows; None where nothing can be.

    Args:
        reading: what was read of these very sources.
        sources: a candidate's, its own edits included.
        launch: the candidate's.
    """
    sizes = _small_sizes(reading) | _few_layers(reading, sources)
    for wanted in (sizes, {k: v for k, v in sizes.items() if k in reading.bindings}):
        made = _write(wanted, reading, sources, launch) if wanted else None
        if made is not None:
            return made
    return None


Sizes = dict[str, tuple[int, int, Binding]]
"""Smaller value, value now, binding; by the fact's name."""


def _small_sizes(reading: Reading) -> Sizes:
    sizes: Sizes = {}
    for name, small in (
        ("seq_len", _short_sequence(_whole(reading, "seq_len"))),
        ("global_batch", _few_rows(reading)),
        ("accumulation", _MICRO_STEPS),
    ):
        now, binding = _whole(reading, name), reading.bindings.get(name)
        if binding is not None and small is not None and now is not None and small < now:
            sizes[name] = (small, now, binding)
    return sizes


def _few_layers(reading: Reading, sources: Sources) -> Sizes:
    found = depth_bindings(reading.files, sources)
    if len(found) != 1:
        return {}
    [(now, binding)] = found
    few = max(_LAYERS, _whole(reading, "world_size") or 1)
    return {"layers": (few, now, binding)} if now > few else {}


def _short_sequence(seq_len: int | None) -> int | None:
    """An eighth, or a little more where whole blocks have to stay whole blocks."""
    if seq_len is None:
        return None
    block = _BLOCK if seq_len % _BLOCK == 0 else 1
    for divisor in _SEQ_DIVISORS:
        short = seq_len // divisor
        if seq_len % divisor == 0 and short % block == 0 and short >= _SHORTEST_SEQ:
            return short
    return None


def _few_rows(reading: Reading) -> int | None:
    micro, ranks = _whole(reading, "micro_batch"), _whole(reading, "world_size")
    return None if micro is None or ranks is None else micro * ranks * _MICRO_STEPS


def _whole(reading: Reading, name: str) -> int | None:
    fact = reading.fact(name)
    value = fact.value if fact is not None else None
    return value if type(value) is int else None


def _write(sizes: Sizes, reading: Reading, sources: Sources, launch: Launch) -> Shrunk | None:
    knobs = tuple(
        Knob(
            name=name,
            type="integer",
            choices=(small, now),
            default=now,
            role=name,
            bindings=(binding,),
        )
        for name, (small, now, binding) in sizes.items()
    )
    setting: dict[str, Scalar] = {name: small for name, (small, _, _) in sizes.items()}
    made = materialise(Candidate(setting=setting), Space(knobs=knobs), sources, launch)
    if isinstance(made, Declined) or not _is_same_job(made, setting, reading, sources):
        return None
    return Shrunk(edits=made.edits, launch=made.launch, smaller=setting)


def _is_same_job(
    made: Materialised, setting: dict[str, Scalar], reading: Reading, sources: Sources
) -> bool:
    """Whether only the sizes changed, as far as can be read."""
    now = follow(overlay(sources, made.edits), made.launch).reading
    kept = all(_value(now, name) == _value(reading, name) for name in _KEPT)
    return kept and all(
        _value(now, name) == value for name, value in setting.items() if name in reading.bindings
    )


def _value(reading: Reading, name: str) -> Scalar | None:
    fact = reading.fact(name)
    return fact.value if fact is not None else None
