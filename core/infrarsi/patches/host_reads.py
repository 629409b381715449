"""Reads of a loss on the host inside an accumulation loop, and who looks at what they gather."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from infrarsi.patches.micro_step import MicroStep, Models
from infrarsi.patches.syntax import (
    calls,
    dotted,
    load_nodes,
    loads,
    method,
    receiver,
    stores,
    walk,
)

Loop = cst.For | cst.While

_CLOCKS = (
    "time",
    "time_ns",
    "perf_counter",
    "perf_counter_ns",
    "monotonic",
    "process_time",
    "synchronize",
    "elapsed_time",
)
_EXITS = (cst.Return, cst.Break, cst.Continue, cst.Raise, cst.Yield)


@dataclass(frozen=True, eq=False)
class HostRead:
    """One line that gathers a loss into `name`; `call` reads the tensor `source` on the host."""

    line: cst.SimpleStatementLine
    name: str
    call: cst.Call
    source: cst.BaseExpression
    appends: bool


def accumulates(loop: Loop) -> bool:
    """Whether a turn is less than a step: the optimizer steps behind the loop, or every n turns."""
    for line in _lines(loop):
        if isinstance(line, cst.SimpleStatementLine) and steps(line):
            return False
        if isinstance(line, cst.If) and steps(line) and not _every_n(line.test):
            return False
    return True


def steps(node: cst.CSTNode) -> bool:
    """Whether an optimizer's step is called below the node."""
    return any(
        method(call) == "step" and "sched" not in (dotted(receiver(call)) or "")
        for call in calls(node)
    )


def host_reads(step: MicroStep, loop: Loop, models: Models) -> list[HostRead]:
    """The lines of the loop that read a scalar loss and add or append it to a plain name."""
    summed, scaled = _loss_names(step, models)
    found: list[HostRead] = []
    for line in walk(loop.body):
        if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
            continue
        name, value, appends = _gathered(line.body[0])
        call = None if value is None else _only_read(value)
        if name is None or call is None:
            continue
        source, is_float = _source(call)
        names = summed if is_float else summed | scaled
        if source is not None and _is_arithmetic(source) and loads(source) & names:
            found.append(HostRead(line=line, name=name, call=call, source=source, appends=appends))
    return found


def gate_of(loop: Loop, name: str, reads: Sequence[HostRead]) -> cst.If | str | None:
    """The one `if` of the loop that looks at `name`, None, or why there are others."""
    own = {below for read in reads for below in walk(read.line)}
    looking = [node for node in load_nodes(loop, name) if node not in own]
    if not looking:
        return None
    for line in _lines(loop):
        if isinstance(line, cst.If) and isinstance(line.body, cst.IndentedBlock):
            inside = set(walk(line.body))
            if all(node in inside for node in looking) and (steps(line) or _every_n(line.test)):
                return line
    return f"{name} is looked at inside the accumulation loop."


def first_reader(statements: Sequence[cst.BaseStatement], name: str) -> cst.BaseStatement | None:
    """The first statement that reads the name or a clock, or that may leave the block."""
    for line in statements:
        if name in loads(line) or any(isinstance(n, _EXITS) for n in walk(line)):
            return line
        if any((dotted(c.func) or "").rpartition(".")[2] in _CLOCKS for c in calls(line)):
            return line
    return None


def is_only_a_number(step: MicroStep, name: str, reads: Sequence[HostRead]) -> bool:
    """Whether nothing takes attributes of the name, shares it with a function or declares it."""
    appended = {read.line.body[0] for read in reads if read.appends}
    allowed = {below for part in appended for below in walk(part)}
    for node in walk(step.scope):
        if isinstance(node, cst.Attribute) and dotted(node.value) == name and node not in allowed:
            return False
        if isinstance(node, cst.NameItem) and node.name.value == name:
            return False
        is_inner = isinstance(node, cst.FunctionDef | cst.Lambda) and node is not step.function
        if is_inner and name in loads(node) and name not in stores(node):
            return False
    return True


def _lines(loop: Loop) -> Iterator[cst.CSTNode]:
    """The loop's statements, those under `with` included."""
    stack: list[cst.CSTNode] = list(reversed(loop.body.body))
    while stack:
        top = stack.pop()
        if isinstance(top, cst.With):
            stack += reversed(top.body.body)
        else:
            yield top


def _every_n(test: cst.BaseExpression) -> bool:
    """`(i + 1) % n == 0`, or a name that says so."""
    if any(isinstance(n, cst.Modulo) for n in walk(test)):
        return True
    words = ("accum", "sync", "last", "boundary", "update")
    return any(word in name.lower() for name in loads(test) for word in words)


def _loss_names(step: MicroStep, models: Models) -> tuple[set[str], set[str]]:
    """Names of scalar losses: those the loss is a sum of, and those multiplied into it."""
    summed, scaled = _terms(step.loss)
    bound: set[str] = set(summed)
    for _, line in step.slice():
        if not isinstance(line, cst.SimpleStatementLine):
            continue
        bound |= stores(line)
        for part in line.body:
            if isinstance(part, cst.Assign) and stores(part) & summed:
                more, times = _terms(part.value)
                summed |= more
                scaled |= times
    return summed & bound, scaled & bound - models.names


def _terms(node: cst.BaseExpression) -> tuple[set[str], set[str]]:
    """(names added up, names multiplied) of an arithmetic expression; calls hide theirs."""
    if isinstance(node, cst.Name):
        return {node.value}, set()
    if isinstance(node, cst.BinaryOperation):
        left, right = _terms(node.left), _terms(node.right)
        if isinstance(node.operator, cst.Add | cst.Subtract):
            return left[0] | right[0], left[1] | right[1]
        if isinstance(node.operator, cst.Multiply):
            return set(), left[0] | left[1] | right[0] | right[1]
        if isinstance(node.operator, cst.Divide):
            return left
    if isinstance(node, cst.Call) and method(node) in ("mean", "sum", "float"):
        base = receiver(node)
        return _terms(base) if isinstance(base, cst.Name) else (set(), set())
    return set(), set()


def _gathered(
    part: cst.BaseSmallStatement,
) -> tuple[str | None, cst.BaseExpression | None, bool]:
    """(name, expression, whether it is appended) of `t += e`, `t = e` and `t.append(e)`."""
    if isinstance(part, cst.AugAssign) and isinstance(part.operator, cst.AddAssign):
        return _plain(part.target), part.value, False
    if isinstance(part, cst.Assign) and len(part.targets) == 1:
        return _plain(part.targets[0].target), part.value, False
    call = part.value if isinstance(part, cst.Expr) else None
    if isinstance(call, cst.Call) and method(call) == "append" and len(call.args) == 1:
        return _plain(receiver(call)), call.args[0].value, True
    return None, None, False


def _plain(node: cst.CSTNode | None) -> str | None:
    return node.value if isinstance(node, cst.Name) else None


def _only_read(value: cst.BaseExpression) -> cst.Call | None:
    """The one host read in an arithmetic expression; None where there is more to it."""
    found: list[cst.Call] = []
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, cst.BinaryOperation):
            stack += [node.left, node.right]
        elif isinstance(node, cst.Call):
            if _source(node)[0] is None:
                return None
            found.append(node)
        elif not isinstance(node, cst.Name | cst.Attribute | cst.Integer | cst.Float):
            return None
    return found[0] if len(found) == 1 else None


def _source(call: cst.Call) -> tuple[cst.BaseExpression | None, bool]:
    """(tensor, whether by `float`) of `x.item()`, `x.detach().cpu().item()` and `float(x)`."""
    node: cst.BaseExpression | None = None
    is_float = dotted(call.func) == "float" and len(call.args) == 1
    if is_float:
        node = call.args[0].value
    elif method(call) == "item" and not call.args:
        node = receiver(call)
    while node is not None:
        base = receiver(node) if isinstance(node, cst.Call) else None
        if base is not None and method(node) in ("detach", "cpu", "item"):
            node = base
        elif isinstance(node, cst.Attribute) and node.attr.value == "data":
            node = node.value
        else:
            break
    return node, is_float


def _is_arithmetic(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.BinaryOperation):
        return _is_arithmetic(node.left) and _is_arithmetic(node.right)
    return isinstance(node, cst.Name | cst.Attribute | cst.Integer | cst.Float)
