"""Knobs with their bindings: what may be set otherwise without changing the workload.

A micro-batch is a knob only where the rows per step provably stay: every choice is tried on the
evaluator with the literals overridden. Sequence length, learning rate and the like are facts.
"""

import ast
from collections.abc import Mapping
from itertools import chain

from infrarsi.frozen import Scalar
from infrarsi.knobs import Binding, Knob
from infrarsi.reading.attached import attached
from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.fetching import argument_named
from infrarsi.reading.syntax import SourceFile
from infrarsi.reading.values import Known, Origin
from infrarsi.reading.workload import StepWork, read_step_work, whole_number

_MAX_CHOICES = 16


def find_knobs(evaluator: Evaluator, work: StepWork, n_cpus: int) -> tuple[Knob, ...]:
    """All knobs of the job; `n_cpus` bounds threads and workers."""
    knobs = (
        _micro_batch(evaluator, work),
        _threads(evaluator, n_cpus),
        _workers(evaluator, work, n_cpus),
    )
    return tuple(knob for knob in knobs if knob is not None)


def _setters(work: StepWork, micro: int, rows: int) -> list[tuple[Origin, int | None]]:
    """The literals to set for another micro-batch, each with what is divided by it, if any.

    Accumulation has one of its own unless it follows from the micro-batch; it may be scaled on
    its way (divided by the number of processes).
    """
    if not isinstance(work.micro, Known) or not isinstance(work.accumulation, Known):
        return []
    sets_micro = _settable(work.micro.direct())
    theirs = [o for o in work.accumulation.origins if o.carrier != "launcher"]
    follows = sets_micro is not None and any(o.key == sets_micro.key for o in theirs)
    setters: list[tuple[Origin, int | None]] = [] if sets_micro is None else [(sets_micro, None)]
    if follows:
        return setters
    sets_accumulation = theirs[0] if len(theirs) == 1 else None
    steps = _whole(sets_accumulation)
    if sets_accumulation is None or steps is None:
        return []
    scaled = steps * micro if sets_micro is not None else rows
    return [*setters, (sets_accumulation, scaled)]


def _whole(origin: Origin | None) -> int | None:
    """The whole number a literal is; an environment variable holds it as text."""
    value = origin.value if origin is not None else None
    if isinstance(value, str) and origin is not None and origin.carrier == "environment":
        return int(value) if value.isascii() and value.isdecimal() and len(value) < 19 else None
    return value if type(value) is int else None


def _settable(origin: Origin | None) -> Origin | None:
    return origin if origin is not None and origin.carrier != "launcher" else None


def _micro_batch(evaluator: Evaluator, work: StepWork) -> Knob | None:
    micro, accumulation = whole_number(work.micro), whole_number(work.accumulation)
    if micro is None or accumulation is None:
        return None
    rows = micro * accumulation
    origins = _setters(work, micro, rows)
    if not origins:
        return None
    choices = {n for n in _powers_of_two(rows) if rows % n == 0} | {micro}
    kept = [
        n
        for n in sorted(choices)[:_MAX_CHOICES]
        if n == micro or _keeps_rows(evaluator, work, _assignment(origins, n), n)
    ]
    bindings = tuple(b for o, q in origins if (b := o.binding(q)) is not None)
    if len(kept) < 2:
        return None
    return Knob(
        name="micro_batch",
        type="ordinal",
        choices=tuple(kept),
        default=micro,
        role="micro_batch",
        bindings=bindings,
    )


def _assignment(origins: list[tuple[Origin, int | None]], value: int) -> dict[str, Scalar]:
    return {
        origin.key: value if quotient_of is None else quotient_of // value
        for origin, quotient_of in origins
    }


def _keeps_rows(
    evaluator: Evaluator, work: StepWork, overrides: Mapping[str, Scalar], micro: int
) -> bool:
    """Whether the step works on as many rows, `micro` at a time, with the literals changed."""
    changed = read_step_work(Evaluator(evaluator.project, overrides, evaluator))
    same_length = whole_number(changed.seq_len) == whole_number(work.seq_len)
    rows = changed.rows()
    return (
        rows is not None
        and rows == work.rows()
        and same_length
        and (whole_number(changed.micro) == micro)
    )


def _powers_of_two(limit: int) -> set[int]:
    return {1 << n for n in range(limit.bit_length()) if 1 << n <= limit}


def _threads(evaluator: Evaluator, n_cpus: int) -> Knob | None:
    """Threads of each process, unless launch line or script pin them. 0 means unset."""
    variable = "OMP_NUM_THREADS"
    project, launch = evaluator.project, evaluator.launch
    if variable in launch.env or "set_num_threads" in project.calls_by_name:
        return None
    if any(variable in _set_variables(source) for source in project.files.values()):
        return None
    most = max(1, n_cpus // launch.n_processes)
    counts = sorted(_powers_of_two(most) | {most})
    torchrun_pins = launch.launcher == "torchrun" and launch.n_processes > 1
    default = 1 if torchrun_pins else 0
    if len(counts) < 2:
        return None
    return Knob(
        name="threads",
        type="ordinal",
        choices=tuple(counts) if torchrun_pins else (0, *counts),
        default=default,
        role="threads",
        bindings=(Binding(carrier="environment", name=variable),),
    )


@attached
def _set_variables(source: SourceFile) -> frozenset[str]:
    """What a file sets as `os.environ["VARIABLE"] = ...` or `os.environ.setdefault(...)`."""
    return frozenset(chain.from_iterable(map(_set_by, source.nodes)))


def _set_by(node: ast.AST) -> tuple[str, ...]:
    match node:
        case ast.Subscript(slice=ast.Constant(value=str() as name), ctx=ast.Store()):
            return (name,)
        case ast.Call(
            func=ast.Attribute(attr="setdefault" | "putenv"),
            args=[ast.Constant(value=str() as name), *_],
        ):
            return (name,)
        case _:
            return ()


def _workers(evaluator: Evaluator, work: StepWork, n_cpus: int) -> Knob | None:
    """Worker processes of the loader the step fetches from."""
    for loader in work.fetching.loaders:
        given = argument_named(loader.call, "num_workers", 5)
        if given is None:
            continue
        value = evaluator.named(given, loader.frame, "num_workers")
        origin = _settable(value.direct()) if isinstance(value, Known) else None
        binding = origin.binding() if origin is not None else None
        default = value.value if isinstance(value, Known) else None
        if binding is None or type(default) is not int:
            continue
        choices = sorted({0, default, *_powers_of_two(max(1, n_cpus))})
        return Knob(
            name="num_workers",
            type="ordinal",
            choices=tuple(choices),
            default=default,
            role="workers",
            bindings=(binding,),
        )
    return None
