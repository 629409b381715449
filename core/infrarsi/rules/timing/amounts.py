"""Times and rates that a program prints: what they are made of, from clock reads on.

An amount is a difference of clock reads, or one divided by it, with the factor and the statistics
applied on the way to where it is printed.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from infrarsi.reading import Call, Program
from infrarsi.reading.growth import additions
from infrarsi.reading.scopes import Event, Guard, Scope, dotted, guards_around
from infrarsi.reading.values import FunctionValue, Known
from infrarsi.reading.walking import walk
from infrarsi.rules.remembered import remembered
from infrarsi.rules.timing.windows import Window, bindings, windows

_LEAST = {
    "min",
    "amin",
    "nanmin",
    "nsmallest",
    "quantile",
    "percentile",
    "nanpercentile",
    "kthvalue",
}
_CHOSEN = {"sorted", "sort", "trim_mean", "trimboth", "topk", "msort"}
_MIDDLE = {"median", "nanmedian", "median_low", "median_high", "median_grouped"}
STATISTICS = _LEAST | _CHOSEN | _MIDDLE
_PASSED = {
    *("float", "round", "max", "sum", "mean", "fmean", "nanmean", "average", "abs", "str", "int"),
    *("tensor", "array", "asarray", "list", "tuple", "item", "total_seconds", "deque", "format"),
    *("all_reduce", "cpu", "numpy", "as_tensor", "stack", "timedelta"),
}
_PRINTS = {
    *("print", "info", "log", "debug", "warning", "write", "writerow", "log_metrics", "log_dict"),
    *("add_scalar", "add_scalars", "set_postfix", "set_description", "set_postfix_str", "dump"),
    *("dumps", "record_metric", "log_metric", "print_rank_0", "print0", "master_print", "emit"),
    *("report", "update_metrics", "track", "echo", "rprint", "pprint", "log_step"),
}
_MAX_DEPTH = 10
_MAX_FOUND = 24


@dataclass(frozen=True, eq=False)
class Amount:
    """A time (power 1) or a rate (power -1). `factor` is None where it is not known.

    `left_out` is the place in code of something timed, or of a number, that is taken off;
    `first` is the number of leading values a slice leaves out.
    """

    window: Window
    power: int = 1
    factor: float | None = 1.0
    statistics: frozenset[str] = frozenset()
    left_out: tuple[ast.expr, Scope] | None = None
    first: int = 0
    guards: tuple[tuple[Guard, Scope], ...] = ()
    numerator: tuple[ast.expr, Scope] | None = None


@dataclass(frozen=True, eq=False)
class Output:
    """An amount, the expression printed, and the call that prints it."""

    amount: Amount
    node: ast.expr
    scope: Scope
    call: ast.Call


@remembered
def outputs(program: Program) -> tuple[Output, ...]:
    """The times and rates that are printed or logged."""
    if not windows(program):
        return ()
    found: list[Output] = []
    for call in program.called(_PRINTS):
        if call.is_dead:
            continue
        site = call.site
        for node in _given(site.call):
            found += [
                Output(a, node, site.scope, site.call) for a in amounts(program, node, site.scope)
            ]
    return tuple(found)


def amounts(program: Program, node: ast.expr, scope: Scope) -> tuple[Amount, ...]:
    """The times and rates an expression may amount to."""
    return tuple(_Amounts(program).of(node, scope))[:_MAX_FOUND]


def _given(call: ast.Call) -> Iterator[ast.expr]:
    """The expressions among a call's arguments, those in formatted texts and containers each."""
    stack: list[ast.expr] = [*call.args, *(keyword.value for keyword in call.keywords)]
    while stack:
        node = stack.pop()
        match node:
            case ast.JoinedStr(values=values):
                stack += [v.value for v in values if isinstance(v, ast.FormattedValue)]
            case ast.Dict(values=values):
                stack += values
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                stack += elements
            case ast.BinOp(op=ast.Mod(), right=right):
                stack.append(right)
            case ast.BinOp(left=ast.Constant(value=str()) | ast.JoinedStr(), op=ast.Add()):
                stack += [node.left, node.right]
            case ast.Call(func=ast.Attribute(attr="format" | "dumps" | "join")):
                stack += [*node.args, *(keyword.value for keyword in node.keywords)]
            case ast.Starred(value=value):
                stack.append(value)
            case ast.Constant():
                pass
            case _:
                yield node


class _Amounts:
    """Follows expressions back to clock reads; what is being followed is not entered again."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._windows = {window.node: window for window in windows(program)}
        self._open: set[ast.AST] = set()

    def of(self, node: ast.expr, scope: Scope) -> list[Amount]:
        """All amounts, none where nothing timed is in it."""
        if node in self._windows:
            window = self._windows[node]
            return [Amount(window, left_out=_shift(self._program, window))]
        if node in self._open or len(self._open) > _MAX_DEPTH:
            return []
        self._open.add(node)
        try:
            return self._of(node, scope)[:_MAX_FOUND]
        finally:
            self._open.discard(node)

    def _of(self, node: ast.expr, scope: Scope) -> list[Amount]:
        match node:
            case ast.BinOp():
                return self._operation(node, scope)
            case ast.Call():
                return self._call(node, scope)
            case ast.Name() | ast.Attribute():
                return self._name(node, scope)
            case ast.Subscript():
                return self._subscript(node, scope)
            case ast.IfExp(body=body, orelse=orelse):
                return [*self.of(body, scope), *self.of(orelse, scope)]
            case ast.UnaryOp(operand=operand) | ast.NamedExpr(value=operand):
                return self.of(operand, scope)
            case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element):
                return self._comprehension(node.generators, element, scope)
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return [amount for part in elements for amount in self.of(part, scope)]
            case ast.Starred(value=value) | ast.FormattedValue(value=value):
                return self.of(value, scope)
            case _:
                return []

    def _operation(self, node: ast.BinOp, scope: Scope) -> list[Amount]:
        left, right = self.of(node.left, scope), self.of(node.right, scope)
        if isinstance(node.op, ast.Sub) and left:
            taken = (node.right, scope) if right or self._number(node.right, scope) else None
            return [replace(a, left_out=taken or a.left_out) for a in left]
        if isinstance(node.op, ast.Add | ast.Sub):
            mixed = bool(left) and bool(right)
            return [replace(a, factor=None) if mixed else a for a in (*left, *right)]
        if isinstance(node.op, ast.Mult):
            by, timed = (node.right, left) if left else (node.left, right)
            return [_scaled(a, self._number(by, scope)) for a in timed]
        if not isinstance(node.op, ast.Div | ast.FloorDiv):
            return []
        if left:
            number = self._number(node.right, scope)
            return [_scaled(a, 1 / number if number else None) for a in left]
        over = self._number(node.left, scope)
        return [
            replace(
                a,
                power=-a.power,
                factor=over / a.factor if over is not None and a.factor else None,
                numerator=(node.left, scope),
            )
            for a in right
        ]

    def _call(self, node: ast.Call, scope: Scope) -> list[Amount]:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        value = self._program.evaluator.value(node.func, self._program.evaluator.frame(scope))
        if isinstance(value, FunctionValue):
            callee = value.scope
            return [
                amount
                for event in callee.returns
                if event.value is not None
                for amount in self.of(event.value, callee)
            ]
        if name not in STATISTICS and name not in _PASSED:
            return []
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        if isinstance(node.func, ast.Attribute):
            given.append(node.func.value)
        timed = [amount for part in given for amount in self.of(part, scope)]
        if name in {"tensor", "as_tensor"}:
            return [replace(a, factor=None) for a in timed]
        if name not in STATISTICS:
            return timed
        return [replace(a, statistics=a.statistics | {name}) for a in timed]

    def _name(self, node: ast.expr, scope: Scope) -> list[Amount]:
        found: list[Amount] = []
        for event, where in self._valid(node, scope):
            if event.value is None or event.kind not in {"assign", "augment"}:
                continue
            timed = self.of(event.value, where)
            if timed and _remakes(event):
                guards = tuple((guard, where) for guard in event.guards)
                return [replace(a, guards=a.guards + guards) for a in timed]
            found = self._bound(found, timed, event, where)
        grown = self._grown if isinstance(node, ast.Name) else self._appended
        return found + grown(node, scope)

    def _bound(
        self, found: list[Amount], timed: list[Amount], event: Event, scope: Scope
    ) -> list[Amount]:
        """The amounts of a name after one more binding."""
        number = self._number(event.value, scope)
        guards = tuple((guard, scope) for guard in event.guards)
        if isinstance(event.operator, ast.Mult | ast.Div) and not timed:
            divides = isinstance(event.operator, ast.Div)
            by = 1 / number if number and divides else number
            return [_scaled(a, by or None) for a in found]
        if isinstance(event.operator, ast.Sub) and event.value is not None and found:
            taken = (event.value, scope) if timed or number else None
            return [replace(a, left_out=taken or a.left_out) for a in found]
        if event.kind == "augment":
            timed = [replace(a, factor=None) for a in timed]
        return found + [replace(a, guards=a.guards + guards) for a in timed]

    def _appended(self, node: ast.expr, scope: Scope) -> list[Amount]:
        """What is appended to a list that is held as an attribute of this name."""
        found: list[Amount] = []
        for call in _appended(self._program).get(getattr(node, "attr", ""), ()):
            where = call.site.scope
            guards = tuple((g, where) for g in guards_around(where, call.site.call))
            timed = self.of(call.site.call.args[-1], where)
            found += [replace(a, guards=a.guards + guards, factor=None) for a in timed]
        return found

    def _valid(self, node: ast.expr, scope: Scope) -> list[tuple[Event, Scope]]:
        """The bindings of a name that may hold where it is used, the last time it was set on."""
        found = list(bindings(self._program, node, scope))
        used = (node.lineno, node.col_offset)
        earlier = [pair for pair in found if pair[1] is scope and pair[0].end <= used]
        if not isinstance(node, ast.Name) or len(earlier) < 2:
            return found
        for number in range(len(earlier) - 1, 0, -1):
            event = earlier[number][0]
            timed = event.value is not None and self.of(event.value, scope)
            if timed and event.kind == "assign" and not event.guards:
                return earlier[number:]
        return found

    def _grown(self, node: ast.expr, scope: Scope) -> list[Amount]:
        """What is appended to a list of this name, wherever that is written."""
        name = dotted(node) or ""
        scope = next((around for around in scope.around() if name in around.events), scope)
        found: list[Amount] = []
        for at, element in additions(self._program.project, scope, name):
            guards = tuple((g, scope) for g in guards_around(scope, at))
            timed = self.of(element, scope)
            found += [replace(a, factor=None, guards=a.guards + guards) for a in timed]
        return found

    def _subscript(self, node: ast.Subscript, scope: Scope) -> list[Amount]:
        timed = self.of(node.value, scope)
        if not timed or not isinstance(node.slice, ast.Slice):
            return timed
        lower = self._number(node.slice.lower, scope) if node.slice.lower is not None else 0
        cut = node.slice.upper is not None
        first = int(lower) if lower is not None and lower > 0 else 0
        return [
            replace(
                a,
                first=a.first + first,
                statistics=a.statistics | {"a part of them"} if cut else a.statistics,
            )
            for a in timed
        ]

    def _comprehension(
        self, generators: list[ast.comprehension], element: ast.expr, scope: Scope
    ) -> list[Amount]:
        direct = self.of(element, scope)
        timed = direct or [
            amount for part in generators[:1] for amount in self.of(part.iter, scope)
        ]
        tests = [test for part in generators for test in part.ifs]
        names = {n.id for p in generators for n in walk(p.target) if isinstance(n, ast.Name)}
        if any(isinstance(side, ast.Name) and side.id in names for side in shorter(tests)):
            timed = [replace(a, statistics=a.statistics | {"if"}) for a in timed]
        guards = tuple((Guard(test), scope) for test in tests)
        return [replace(a, guards=a.guards + guards) for a in timed]

    def _number(self, node: ast.expr | None, scope: Scope) -> float | None:
        if node is None:
            return None
        value = self._program.evaluator.value(node, self._program.evaluator.frame(scope))
        number = value.value if isinstance(value, Known) else None
        return float(number) if isinstance(number, int | float) else None


@remembered
def _appended(program: Program) -> dict[str, list[Call]]:
    """The calls that put something into a list held as an attribute, by the attribute's name."""
    found: dict[str, list[Call]] = {}
    for call in program.called({"append", "appendleft", "add", "update"}):
        match call.site.call:
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=held)), args=[_, *_]):
                found.setdefault(held, []).append(call)
            case _:
                pass
    return found


def _shift(program: Program, window: Window) -> tuple[ast.expr, Scope] | None:
    """What is added to the first time after it was read: `started += pause`."""
    match window.node:
        case ast.BinOp(right=first):
            for event, scope in bindings(program, first, window.scope):
                if event.kind == "augment" and isinstance(event.operator, ast.Add):
                    return (event.value, scope) if event.value is not None else None
        case _:
            pass
    return None


def _remakes(event: Event) -> bool:
    """Whether a binding makes a name anew from itself: `times = [t for t in times if ...]`."""
    return (
        event.kind == "assign"
        and event.value is not None
        and any(
            dotted(node) == event.name
            for node in walk(event.value)
            if isinstance(node, ast.Name | ast.Attribute)
        )
    )


def shorter(tests: Iterable[ast.expr], holds: bool = True) -> list[ast.expr]:
    """What conditions ask to be the smaller side, where they hold: `a` of `a < b`."""
    found: list[ast.expr] = []
    for node in (node for test in tests for node in walk(test)):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            less = isinstance(node.ops[0], ast.Lt | ast.LtE)
            more = isinstance(node.ops[0], ast.Gt | ast.GtE)
            if less or more:
                found.append((node.left, node.comparators[0])[less != holds])
    return found


def _scaled(amount: Amount, by: float | None) -> Amount:
    factor = amount.factor * by if amount.factor is not None and by is not None else None
    return replace(amount, factor=factor)
