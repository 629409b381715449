"""Rows and tokens of one step: micro-batch, accumulation, processes, sequence length.

Each is found by its role in control flow first and by its spelling second. Asking again with an
evaluator that overrides a literal tells what an edit of that literal would do.
"""

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass

from infrarsi.reading.aliases import normalise, rank_alias
from infrarsi.reading.cadence import always, divisor
from infrarsi.reading.calls import arguments_record
from infrarsi.reading.doubt import doubted
from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.fetching import Fetching, Size, explore_fetches
from infrarsi.reading.flow import Fetch, Flow, trace_flow, trace_returns
from infrarsi.reading.frames import Frame
from infrarsi.reading.generated import sliced_part, takes_next, yields_count
from infrarsi.reading.growth import grown_length
from infrarsi.reading.operators import binary, computed
from infrarsi.reading.repetition import counter_is_read, loops_apart, times, yields_apart
from infrarsi.reading.syntax import unparse
from infrarsi.reading.trainers.find import find_library
from infrarsi.reading.trainers.library_job import LibraryJob
from infrarsi.reading.training import Loop, Training, find_training
from infrarsi.reading.values import Generated, Known, Many, Origin, Unknown, Value, merge_origins
from infrarsi.reading.walking import walk

_GENERIC = {"batch_size", "train_batch_size", "batch", "bs", "b", "t", "seq", "max_length"}


@dataclass(frozen=True, eq=False)
class StepWork:
    """What one step works on, and the parts of the script that say so."""

    training: Training | None
    flow: Flow
    fetching: Fetching
    micro: Value
    accumulation: Value
    world: Value
    seq_len: Value
    library: LibraryJob | None = None

    @property
    def steps_inside(self) -> bool:
        """Whether a library decides within its own step call if weights are updated."""
        return self.library is not None and self.library.steps_inside

    @property
    def replicas(self) -> Value:
        """Processes that work on different rows."""
        shared = self.library.replicas if self.library is not None else None
        return shared if shared is not None else self.world

    def rows(self) -> int | None:
        """Rows of one step over all processes."""
        factors = [whole_number(value) for value in (self.micro, self.accumulation, self.replicas)]
        known = [factor for factor in factors if factor is not None]
        return math.prod(known) if len(known) == len(factors) else None


def read_step_work(evaluator: Evaluator) -> StepWork:
    """Find the training loop, or the library that holds it, and size its step."""
    return evaluator.ask("step work", lambda: _read_step_work(evaluator))


def _read_step_work(evaluator: Evaluator) -> StepWork:
    training = evaluator.ask("training", lambda: find_training(evaluator))
    library = find_library(evaluator, training)
    if library is not None and library.owns_loop:
        training = None
    flow = trace_flow(evaluator, training) if training is not None else Flow()
    if library is not None and library.step is not None and training is None:
        flow = trace_returns(evaluator, library.step)
    fetches = [*flow.fetches, *(library.fetches if library is not None else ())]
    fetching = explore_fetches(evaluator, fetches)
    stated = library.values if library is not None else {}
    defaults = library.defaults if library is not None else {}
    n_processes = evaluator.launch.n_processes
    launched = Known(n_processes, (Origin("launcher", "world_size", n_processes),))
    world = stated.get("world_size") or launched
    if training is None and library is None and evaluator.launch.launcher == "python":
        half_typed = Unknown("how processes are started is not found while lines are half typed")
        world = half_typed if evaluator.project.half_typed else world
    accumulation = stated.get("accumulation") or _accumulation(evaluator, training, fetching)
    accumulation = doubted(evaluator.project, library, "accumulation", accumulation)
    micro = stated.get("micro_batch") or _micro(
        evaluator, training, fetching, accumulation, defaults.get("micro_batch")
    )
    micro = _of_one_process(micro, world, library)
    return StepWork(
        training=training,
        flow=flow,
        fetching=fetching,
        micro=micro,
        accumulation=accumulation,
        world=world,
        seq_len=stated.get("seq_len") or _seq_len(evaluator, fetching, micro),
        library=library,
    )


def _of_one_process(micro: Value, world: Value, library: LibraryJob | None) -> Value:
    """The rows of one process, where a loader's are cut among them."""
    if library is None or library.splits_rows is False or isinstance(micro, Unknown):
        return micro
    if library.splits_rows is None:
        return Unknown("whether the loader's rows are cut among the processes is not known")
    return binary(ast.FloorDiv(), micro, world)


def whole_number(value: Value) -> int | None:
    """The value as a number of at least 1, None where it is no such number."""
    number = value.value if isinstance(value, Known) else None
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        return None
    return number


def spelled(evaluator: Evaluator, canonical: str, *, sure: bool = False) -> Known | None:
    """The value of the surest spelling of a canonical name anywhere in the job.

    With `sure` there is none while lines are half typed: a name may only seem to be the one used.
    """
    if sure and evaluator.project.half_typed:
        return None
    return evaluator.settled(_surest_spelling, canonical)


def _surest_spelling(evaluator: Evaluator, canonical: str) -> Known | None:
    ranked = [
        (rank, number, value)
        for number, (name, value) in enumerate(_named_values(evaluator, canonical))
        if (rank := rank_alias(canonical, name)) is not None
    ]
    return min(ranked, key=lambda entry: entry[:2])[2] if ranked else None


def _named_values(evaluator: Evaluator, canonical: str) -> Iterator[tuple[str, Known]]:
    for name, value in arguments_record(evaluator).fields.items():
        if isinstance(value, Known) and value.value is not None:
            yield name, value
    for scope, name in evaluator.project.naming(canonical):
        if isinstance(scope.node, ast.ClassDef) and _is_given(evaluator, scope.node, name):
            continue
        value = evaluator.fold(scope.events[name], evaluator.frame(scope), None)
        if isinstance(value, Known) and value.value is not None:
            yield name, value


def _is_given(evaluator: Evaluator, node: ast.ClassDef, field: str) -> bool:
    """Whether some call of the class gives a field another value, or a parser may."""
    calls = evaluator.project.calls_by_name.get(node.name, [])
    parsed = any("dataclass" in unparse(decorator) for decorator in node.decorator_list)
    return (parsed and not calls) or any(
        keyword.arg in {field, None} for site in calls for keyword in site.call.keywords
    )


def _micro(
    evaluator: Evaluator,
    training: Training | None,
    fetching: Fetching,
    accumulation: Value,
    default: Value | None,
) -> Value:
    part = _part(evaluator, training) if training is not None else None
    if part is not None:
        return part
    rows = _surest(evaluator, fetching.rows, "batch_size")
    if rows is not None:
        size, value = rows
        if yields_apart(size.expression, size.frame):
            part = _handed_out(evaluator, training, size)
            if not isinstance(part, Known) or not takes_next(size.fetch.value):
                return part
            value = part
        value = _repeated(evaluator, training, fetching, size, value)
        if training is None or _within_micro_step(training, size.fetch):
            return value
        return binary(ast.FloorDiv(), value, accumulation)
    if default is not None:
        return default
    return _by_spelling(evaluator, "micro_batch", "how many rows a micro-step fetches")


def _handed_out(evaluator: Evaluator, training: Training | None, size: Size) -> Value:
    """The rows a generator hands out at once, where it fetched several times as many before."""
    part = sliced_part(evaluator, Generated(size.frame))
    if part is None:
        return Unknown("in which parts a generator hands its rows out is not known")
    if training is not None and not training.inner and not takes_next(size.fetch.value):
        return Unknown("how many parts of a generator's rows a step takes is not known")
    return part


def _repeated(
    evaluator: Evaluator, training: Training | None, fetching: Fetching, size: Size, rows: Known
) -> Value:
    """The rows of all the fetches of a size that are made for one micro-step, or one step."""
    fetch = size.fetch
    nest = (*training.inner, training.update, *training.outer) if training is not None else ()
    shared: set[ast.AST] = {loop.node for loop in nest if loop is not None}
    apart = tuple(loops_apart(evaluator.frame(fetch.scope), fetch.node, shared))
    repeats = size.repeats[:-1] if fetch.node in shared else size.repeats
    if not repeats and (not apart or training is None):
        return rows
    count = times((*repeats, *apart), lambda node, f: _length(evaluator, node, f, fetching))
    return binary(ast.Mult(), rows, count)


def _seq_len(evaluator: Evaluator, fetching: Fetching, micro: Value) -> Value:
    """The length of a row; a slice of several rows at once depends on their number."""
    sizes = (
        [micro]
        if isinstance(micro, Known)
        else [v for _, v in _sizes(evaluator, fetching.rows, "batch_size")]
    )
    rows = {origin.key for origin in merge_origins(sizes)}
    candidates = _sizes(evaluator, fetching.lengths, "seq_len")
    lengths = [e for e in candidates if rows.isdisjoint(o.key for o in e[1].origins)]
    length = _first_set(lengths)
    if length is not None:
        return length[1]
    return _by_spelling(evaluator, "seq_len", "how long the fetched rows are")


def _by_spelling(evaluator: Evaluator, canonical: str, what: str) -> Value:
    value = spelled(evaluator, canonical, sure=True)
    if value is None:
        return Unknown(f"{what} is not written in a way that is understood")
    origin = value.direct()
    generic = origin is None or normalise(origin.name) in _GENERIC
    return Unknown(f"{what} is only guessed from a name") if generic else value


def _surest(evaluator: Evaluator, sizes: list[Size], name: str) -> tuple[Size, Known] | None:
    """The first size that some literal sets; one without any otherwise."""
    return _first_set(_sizes(evaluator, sizes, name))


def _sizes(evaluator: Evaluator, sizes: list[Size], name: str) -> list[tuple[Size, Known]]:
    found: list[tuple[Size, Known]] = []
    for size in sizes:
        value = evaluator.named(size.expression, size.frame, name)
        if isinstance(value, Known) and whole_number(value) is not None:
            found.append((size, value))
    return found


def _first_set(found: list[tuple[Size, Known]]) -> tuple[Size, Known] | None:
    with_origin = [entry for entry in found if entry[1].origins]
    return next(iter(with_origin or found), None)


def _within_micro_step(training: Training, fetch: Fetch) -> bool:
    """Whether the rows are fetched anew in each micro-step, not once for the whole step."""
    if not training.inner:
        return True
    innermost = training.inner[0]
    ancestors = [fetch.node, *fetch.scope.source.ancestors(fetch.node)]
    if innermost.node in ancestors:
        return True
    if innermost.scope is fetch.scope:
        return False
    around = set(innermost.scope.source.ancestors(innermost.node))
    outside = any(
        node in around for node in ancestors if isinstance(node, ast.For | ast.While | ast.AsyncFor)
    )
    return not outside


def _accumulation(evaluator: Evaluator, training: Training | None, fetching: Fetching) -> Value:
    if training is None:
        return _by_spelling(evaluator, "accumulation", "how many micro-steps a step takes")
    if training.update is None:
        return Unknown("no optimizer step was found around the backward call")
    product: Value = Known(1)
    for number, loop in enumerate(training.inner):
        count = _count(evaluator, loop, fetching)
        product = count if number == 0 else binary(ast.Mult(), product, count)
    every = _every_nth(evaluator, training)
    if every is not None:
        return binary(ast.Mult(), product, every) if training.inner else every
    return product


def _count(evaluator: Evaluator, loop: Loop, fetching: Fetching) -> Value:
    """How often a loop runs."""
    line = loop.node.lineno
    if isinstance(loop.node, ast.While):
        return Unknown(f"the micro-steps are counted by a while loop (line {line})")
    frame = evaluator.frame(loop.scope)
    return _length(evaluator, loop.node.iter, frame, fetching) or Unknown(
        f"how often the loop of line {line} runs is not known"
    )


def _length(evaluator: Evaluator, node: ast.expr, frame: Frame, fetching: Fetching) -> Value | None:
    match node:
        case ast.Call(func=ast.Name(id="range"), args=args) if args:
            return _range_length([evaluator.named(arg, frame, "range") for arg in args])
        case ast.Call(func=ast.Name(id="enumerate" | "zip" | "list" | "tqdm"), args=args):
            lengths = [_length(evaluator, argument, frame, fetching) for argument in args]
            return next((length for length in lengths if length is not None), None)
        case ast.Call(func=ast.Attribute(attr="chunk" | "tensor_split"), args=[*_, count]):
            return evaluator.named(count, frame, "chunk")
        case ast.Call(func=ast.Attribute(attr="split"), args=[*_, size]):
            rows = _surest(evaluator, fetching.rows, "batch_size")
            part = evaluator.named(size, frame, "split")
            return _ceil_divide(rows[1], part) if rows is not None else None
        case ast.Name():
            return _sequence_length(evaluator, node, frame, fetching)
        case ast.ListComp(generators=[over]) if not over.ifs:
            return _length(evaluator, over.iter, frame, fetching)
        case ast.Call():
            made = evaluator.value(node, frame)
            if not isinstance(made, Generated):
                return None
            return yields_count(made, lambda inner, f: _length(evaluator, inner, f, fetching))
        case _:
            return None


def _part(evaluator: Evaluator, training: Training) -> Value | None:
    """The `m` where the step's rows are cut into parts of `m`: `x.split(m)`, `range(0, n, m)`."""
    for loop in training.inner[:1]:
        frame = evaluator.frame(loop.scope)
        nodes = walk(loop.node.iter) if not isinstance(loop.node, ast.While) else ()
        for node in nodes:
            made = evaluator.value(node, frame) if isinstance(node, ast.Call | ast.Name) else None
            part = sliced_part(evaluator, made) if isinstance(made, Generated) else None
            if part is not None:
                return part
            match node:
                case ast.Call(func=ast.Attribute(attr="split"), args=[*_, size]):
                    return evaluator.named(size, frame, "split")
                case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=0), _, size]) if (
                    counter_is_read(loop.node)
                ):
                    return evaluator.named(size, frame, "range")
                case _:
                    pass
    return None


def _sequence_length(
    evaluator: Evaluator, node: ast.Name, frame: Frame, fetching: Fetching
) -> Value | None:
    grown = grown_length(evaluator, node.id, frame)
    if grown is not None:
        return grown
    value = evaluator.value(node, frame)
    if isinstance(value, Many):
        return Known(len(value.items))
    events = [event for f in frame.around() for event in f.scope.events.get(node.id, [])]
    bound = events[-1].value if events else None
    followed = isinstance(bound, ast.Call | ast.ListComp)
    return _length(evaluator, bound, frame, fetching) if followed else None


def _range_length(bounds: list[Value]) -> Value:
    if len(bounds) == 1:
        return bounds[0]
    span = binary(ast.Sub(), bounds[1], bounds[0])
    return span if len(bounds) == 2 else _ceil_divide(span, bounds[2])


def _ceil_divide(whole: Value, part: Value) -> Value:
    divided = binary(ast.Div(), whole, part)
    if not isinstance(divided, Known) or not isinstance(divided.value, int | float):
        return divided
    number = divided.value
    return computed(lambda: math.ceil(number), divided)


def _every_nth(evaluator: Evaluator, training: Training) -> Value | None:
    """The `n` of `if (i + 1) % n == 0: optimizer.step()`; None where every pass steps."""
    for condition in training.conditions:
        if always(evaluator, condition):
            continue
        number = divisor(condition)
        if number is None:
            return Unknown("the optimizer steps under a condition that is not known")
        return evaluator.named(number, evaluator.frame(condition.scope), "every")
    return None
