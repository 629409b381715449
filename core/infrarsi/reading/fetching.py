"""How rows are fetched: which functions are entered for them, how many rows, how long each.

Sizes are recognised by what they do: the size of a random draw of positions, the two dimensions
of a view, a loader's batch size, the length of a slice. Names play no role here.
"""

import ast
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from infrarsi.reading.calls import as_before, entered_frame
from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.flow import Fetch
from infrarsi.reading.frames import Frame
from infrarsi.reading.loaders import LOADERS, inherits_loader, parent_calls
from infrarsi.reading.objects import member
from infrarsi.reading.pipelines import dataset_calls
from infrarsi.reading.repetition import Repeat, repeats_around
from infrarsi.reading.scopes import Scope, guards_around
from infrarsi.reading.values import FunctionValue, Generated, Instance, Known, Made, Value
from infrarsi.reading.walking import walk

_MAX_SCOPES = 30
_ITERATION = ("__getitem__", "__next__", "__iter__", "next_batch", "collate")


@dataclass(frozen=True, eq=False)
class Size:
    """An expression that gives a size, in the frame it is written in, for one fetch.

    `repeats` are what it stands in between the fetch and itself.
    """

    expression: ast.expr
    frame: Frame
    fetch: Fetch
    repeats: tuple[Repeat, ...] = ()


@dataclass(eq=False)
class Fetching:
    """What fetching enters and the sizes met on the way, the surest first."""

    scopes: list[Scope] = field(default_factory=list[Scope])
    rows: list[Size] = field(default_factory=list[Size])
    lengths: list[Size] = field(default_factory=list[Size])
    loaders: list[Made] = field(default_factory=list[Made])


def explore_fetches(evaluator: Evaluator, fetches: list[Fetch]) -> Fetching:
    """Go into everything the fetch expressions call."""
    explorer = _Explorer(evaluator)
    for fetch in fetches:
        explorer.fetch = fetch
        explorer.expression(fetch.value, evaluator.frame(fetch.scope))
    found = explorer.found
    counts = {repeat.counted() for size in found.rows for repeat in size.repeats}
    found.rows = [size for size in found.rows if size.expression not in counts]
    return found


class _Explorer:
    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.found = Fetching()
        self.fetch: Fetch | None = None
        self._seen: set[tuple[ast.AST, Frame]] = set()
        self._repeats: tuple[Repeat, ...] = ()

    def expression(self, node: ast.expr, frame: Frame) -> None:
        if (node, frame) in self._seen:
            return
        self._seen.add((node, frame))
        self._sizes(node, frame)
        for inner in walk(node):
            with self._within(inner, node, frame):
                self._enter(inner, frame)
                if isinstance(inner, ast.Call):
                    for argument in inner.args:
                        self._iterated(self.evaluator.value(argument, frame))
        self._iterated(self.evaluator.value(node, frame))

    @contextmanager
    def _within(self, node: ast.AST, root: ast.AST, frame: Frame) -> Generator[None]:
        """Note what repeats a node within `root` for the sizes met meanwhile."""
        before = self._repeats
        self._repeats = (*repeats_around(node, root, frame), *before)
        try:
            yield
        finally:
            self._repeats = before

    def _value(self, callee: Value, call: ast.Call, frame: Frame) -> None:
        if isinstance(callee, FunctionValue):
            self._function(callee.scope, entered_frame(self.evaluator, callee, call, frame))

    def _iterated(self, value: Value) -> None:
        """Something rows come out of one by one: a generator, a loader, an object."""
        match value:
            case Generated(frame=frame):
                self._function(frame.scope, frame)
            case Made(callee=callee) if callee.rpartition(".")[2] in LOADERS:
                self._loader(value)
            case Made(call=call, frame=frame) if (call, frame) not in self._seen:
                self._seen.add((call, frame))
                self._size(call, frame)
                for argument in call.args:
                    self._iterated(self.evaluator.value(argument, frame))
            case FunctionValue():
                self._function(value.scope, self._method_frame(value))
            case Instance():
                self._made_loader(value)
                for name in _ITERATION:
                    method = member(self.evaluator, value, name)
                    if isinstance(method, FunctionValue):
                        self._function(method.scope, self._method_frame(method))
            case _:
                pass

    def _method_frame(self, method: FunctionValue) -> Frame:
        key = (method.scope.node, method.closure, method.scope)
        if key not in self.evaluator.entered:
            frame = Frame(method.scope, method.closure, None, method.this)
            self.evaluator.entered[key] = as_before(self.evaluator, key, frame)
        return self.evaluator.entered[key]

    def _made_loader(self, value: Instance) -> None:
        """The arguments of a loader's own class: those of its parent's constructor, or its call."""
        if not inherits_loader(self.evaluator, value) or value.call is None or value.frame is None:
            return
        for call, frame in parent_calls(self.evaluator, value):
            self._loader(Made("DataLoader", call, frame))
        self._loader(Made("DataLoader", value.call, value.frame))

    def _loader(self, made: Made) -> None:
        if any(made.call is known.call for known in self.found.loaders):
            return
        self.found.loaders.append(made)
        size = argument_named(made.call, "batch_size", 1)
        if size is not None:
            self._keep(self.found.rows, 0, size, made.frame)
        for keyword in ("dataset", "batch_sampler", "collate_fn"):
            inner = argument_named(made.call, keyword, 0 if keyword == "dataset" else None)
            if inner is not None:
                value = self.evaluator.value(inner, made.frame)
                self._iterated(value)
                if keyword == "dataset" and not isinstance(value, Instance):
                    self._pipeline(inner, made.frame)

    def _pipeline(self, dataset: ast.expr, frame: Frame) -> None:
        """Go into the functions a dataset was mapped through."""
        for fetch in dataset_calls(self.evaluator, dataset, frame.scope):
            self.expression(fetch.value, self.evaluator.frame(fetch.scope))

    def _function(self, scope: Scope, frame: Frame) -> None:
        node = scope.node
        if (node, frame) in self._seen or len(self.found.scopes) >= _MAX_SCOPES:
            return
        self._seen.add((node, frame))
        if scope not in self.found.scopes:
            self.found.scopes.append(scope)
        run = [inner for inner in _own_nodes(node) if self._is_run(inner, scope, frame)]
        for inner in run:
            with self._within(inner, node, frame):
                self._enter(inner, frame)
        for inner in run:
            if isinstance(inner, ast.expr):
                with self._within(inner, node, frame):
                    self._size(inner, frame)

    def _is_run(self, node: ast.AST, scope: Scope, frame: Frame) -> bool:
        """Whether an expression is not surely switched off by a condition."""
        guards = guards_around(scope, node) if isinstance(node, ast.expr) else []
        return not guards or self.evaluator.hold(guards, frame) is not False

    def _enter(self, node: ast.AST, frame: Frame) -> None:
        """Go into a call, a loader that is made, and an object that is indexed."""
        if isinstance(node, ast.Call):
            self._value(self.evaluator.value(node.func, frame), node, frame)
            made = self.evaluator.value(node, frame)
            if isinstance(made, Made) and made.callee.rpartition(".")[2] in LOADERS:
                self._loader(made)
            if isinstance(node.func, ast.Name) and node.func.id == "next" and node.args:
                self._iterated(self.evaluator.value(node.args[0], frame))
        elif isinstance(node, ast.YieldFrom):
            self._iterated(self.evaluator.value(node.value, frame))
        elif isinstance(node, ast.For):
            self._iterated(self.evaluator.value(node.iter, frame))
            self._stacked(node, frame)
        elif isinstance(node, ast.Subscript):
            value = self.evaluator.value(node.value, frame)
            if isinstance(value, Instance):
                self._iterated(value)

    def _stacked(self, loop: ast.For, frame: Frame) -> None:
        """Rows that `for _ in range(rows)` appends to a list which is stacked afterwards."""
        match loop.iter:
            case ast.Call(func=ast.Name(id="range"), args=[rows]):
                lists = {name for node in walk(loop) if (name := _appended(node)) is not None}
                stacked = {
                    name
                    for node in walk(frame.scope.node)
                    if (name := _stacked_name(node)) is not None
                }
                if lists & stacked and self._is_size(rows, frame):
                    self._keep(self.found.rows, 0, rows, frame)
            case _:
                pass

    def _sizes(self, node: ast.expr, frame: Frame) -> None:
        for inner in walk(node):
            if isinstance(inner, ast.expr):
                with self._within(inner, node, frame):
                    self._size(inner, frame)

    def _size(self, node: ast.expr, frame: Frame) -> None:
        rows, length = _dimensions(node)
        rows = None if rows is not None and _is_rest(rows) else rows
        sized = rows is None or self._is_size(rows, frame)
        if rows is not None and sized:
            surest = 0 if length is not None else len(self.found.rows)
            self._keep(self.found.rows, surest, rows, frame)
        if length is not None and sized and self._is_size(length, frame):
            position = 0 if rows is not None else len(self.found.lengths)
            self._keep(self.found.lengths, position, length, frame)

    def _keep(self, sizes: list[Size], position: int, node: ast.expr, frame: Frame) -> None:
        if self.fetch is not None:
            sizes.insert(position, Size(node, frame, self.fetch, self._repeats))

    def _is_size(self, expression: ast.expr, frame: Frame) -> bool:
        value = self.evaluator.value(expression, frame)
        return isinstance(value, Known) and type(value.value) is int and value.value >= 1


def argument_named(call: ast.Call, name: str, position: int | None) -> ast.expr | None:
    """A call's argument by keyword, else by position."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if position is not None and position < len(call.args):
        found = call.args[position]
        return None if isinstance(found, ast.Starred) else found
    return None


def _appended(node: ast.AST) -> str | None:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append")):
            return name
        case _:
            return None


def _stacked_name(node: ast.AST) -> str | None:
    match node:
        case ast.Call(func=ast.Attribute(attr="stack"), args=[ast.Name(id=name), *_]):
            return name
        case _:
            return None


def _dimensions(node: ast.expr) -> tuple[ast.expr | None, ast.expr | None]:
    """Which part of an expression is a number of rows and which the length of a row."""
    match node:
        case ast.Call(func=ast.Attribute(attr="randint" | "integers")):
            last = node.args[-1] if node.args else None
            shaped = last if isinstance(last, ast.Tuple | ast.List) else None
            return _drawn(argument_named(node, "size", 2) or shaped)
        case ast.Call(func=ast.Attribute(attr="choice")):
            return _drawn(argument_named(node, "size", 1))
        case ast.Call(func=ast.Attribute(attr="choices" | "sample")):
            return argument_named(node, "k", 1), None
        case ast.Call(func=ast.Attribute(attr="randn" | "rand"), args=[rows, _, *_]):
            return rows, None
        case ast.Call(func=ast.Attribute(attr="view" | "reshape"), args=[rows, length]):
            return rows, length
        case ast.Call(keywords=keywords) if _pads(keywords):
            return None, argument_named(node, "max_length", None)
        case ast.Subscript(
            value=ast.Call(func=ast.Attribute(attr="randperm" | "permutation")),
            slice=ast.Slice(lower=None, upper=ast.expr() as rows),
        ):
            return rows, None
        case ast.ListComp(generators=[ast.comprehension(iter=ast.Call() as counted)]):
            one = isinstance(counted.func, ast.Name) and counted.func.id == "range"
            return (counted.args[0] if one and len(counted.args) == 1 else None), None
        case ast.Subscript(slice=ast.Slice() as cut):
            return None, _slice_length(cut)
        case ast.Subscript(slice=ast.Tuple(elts=[*_, ast.Slice() as cut])):
            return None, _slice_length(cut)
        case _:
            return None, None


def _is_rest(node: ast.expr) -> bool:
    """Whether a dimension is what is left over: `-1`."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def _pads(keywords: list[ast.keyword]) -> bool:
    """Whether a tokenizer is asked to fill all rows up: `padding="max_length"`."""
    return any(
        keyword.arg == "padding"
        and isinstance(keyword.value, ast.Constant)
        and keyword.value.value == "max_length"
        for keyword in keywords
    )


def _drawn(size: ast.expr | None) -> tuple[ast.expr | None, ast.expr | None]:
    if isinstance(size, ast.Tuple | ast.List):
        first, second = [*size.elts[:2], None, None][:2]
        return first, second
    return size, None


def _slice_length(cut: ast.Slice) -> ast.expr | None:
    """The `T` of `[i : i + T]`, `[i : i + T + 1]`, `[i + 1 : i + 1 + T]`, `[i * T : (i + 1) * T]`.

    The number itself may stand in place of `T`.
    """
    if cut.lower is None or cut.upper is None:
        return None
    match cut.lower, cut.upper:
        case (
            ast.BinOp(left=index, op=ast.Mult(), right=length),
            ast.BinOp(left=ast.BinOp(left=same, op=ast.Add()), op=ast.Mult(), right=again),
        ) if ast.dump(index) == ast.dump(same) and ast.dump(length) == ast.dump(again):
            return length
        case _:
            return _difference(cut.lower, cut.upper)


def _difference(lower: ast.expr, upper: ast.expr) -> ast.expr | None:
    terms = list(_terms(upper))
    for known in _terms(lower):
        same = [term for term in terms if ast.dump(term) == ast.dump(known)]
        if not same:
            return None
        terms.remove(same[0])
    named = [term for term in terms if not isinstance(term, ast.Constant)]
    if not named and len(terms) == 1 and isinstance(terms[0], ast.Constant):
        return terms[0]
    return named[0] if len(named) == 1 else None


def _terms(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _terms(node.left)
        yield from _terms(node.right)
    else:
        yield node


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    return (inner for inner in walk(node) if inner is not node)
