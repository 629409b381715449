"""Statements that put values into a mapping or an object by key: which, where, from what.

`cfg["lr"] = x`, `cfg.update(other)`, `vars(args).update(other)` and loops that set every item of
another mapping. Syntax only; what they amount to is `mappings`' business.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from infrarsi.reading.attached import attached

_UPDATES = {"update", "merge_with", "merge_update", "merge_from_dict", "update_from_dict"}
_SURE_TESTS = {"isinstance", "hasattr"}


@dataclass(frozen=True, eq=False)
class Merge:
    """One such statement.

    With `is_dotted`, `value` is a list of words `a.b=4`.
    `target` is the dotted name of what is changed and `path` the keys inside it. Either `value`
    is the mapping that is put in, or `key` the one that is set to `value`. With `deep` nested
    tables are joined; where not `sure`, what it puts there is not followed.
    """

    target: str
    node: ast.stmt
    value: ast.expr
    path: tuple[str, ...] = ()
    key: str | None = None
    deep: bool = False
    sure: bool = True
    skips_none: bool = False
    is_dotted: bool = False

    @property
    def end(self) -> tuple[int, int]:
        """From where on it counts."""
        return (self.node.end_lineno or 0, self.node.end_col_offset or 0)


@attached
def merges_of(statement: ast.stmt) -> tuple[Merge, ...]:
    """What one statement puts into mappings."""
    return tuple(_merges_of(statement))


def _merges_of(statement: ast.stmt) -> Iterator[Merge]:
    match statement:
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            yield from _item(statement, target, value)
        case ast.Expr(value=ast.Call() as call):
            yield from _call(statement, call)
        case ast.For(target=ast.Tuple(elts=[ast.Name(id=key), ast.Name(id=item)])):
            iterated = statement.iter
            func = iterated.func if isinstance(iterated, ast.Call) else None
            if isinstance(func, ast.Attribute) and func.attr == "items":
                yield from _loop(statement, key, item, func.value)
        case ast.For(target=ast.Name(id=word)):
            target = _dotted_target(statement, word)
            if target is not None:
                yield Merge(target, statement, statement.iter, is_dotted=True)
        case _:
            pass


def is_same(expression: ast.expr, item: str, converter: str = "") -> bool:
    """Whether it is the item itself, apart from being wrapped for access by attribute."""
    match expression:
        case ast.Name(id=name):
            return name == item
        case ast.IfExp(body=body, orelse=orelse):
            return is_same(body, item, converter) and is_same(orelse, item, converter)
        case ast.Call(func=func, args=[argument], keywords=[]):
            last = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
            wraps = last == converter or last in {"__class__", "SimpleNamespace", "deepcopy"}
            wraps = wraps or last[:1].isupper()
            return wraps and is_same(argument, item, converter)
        case ast.Call(func=ast.Name(id="SimpleNamespace"), args=[], keywords=[only]):
            return only.arg is None and is_same(only.value, item, converter)
        case ast.Call(func=ast.Name(id=name), args=[], keywords=[only]) if name[:1].isupper():
            return only.arg is None and is_same(only.value, item, converter)
        case ast.ListComp(elt=elt, generators=[ast.comprehension(target=ast.Name(id=inner))]):
            return is_same(elt, inner, converter)
        case _:
            return False


def _item(statement: ast.stmt, target: ast.Subscript, value: ast.expr) -> Iterator[Merge]:
    keys: list[str] = []
    base: ast.expr = target
    while isinstance(base, ast.Subscript):
        if not isinstance(base.slice, ast.Constant) or not isinstance(base.slice.value, str):
            return
        keys.insert(0, base.slice.value)
        base = base.value
    name = _target(base)
    if name is not None:
        yield Merge(name, statement, value, tuple(keys[:-1]), keys[-1])


def _call(statement: ast.stmt, call: ast.Call) -> Iterator[Merge]:
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in _UPDATES:
        name = _target(func.value)
        if name is None:
            return
        for argument in call.args:
            sure = not isinstance(argument, ast.Starred)
            yield Merge(name, statement, argument, deep="merge" in func.attr, sure=sure)
        for keyword in call.keywords:
            yield Merge(name, statement, keyword.value, key=keyword.arg)
    elif isinstance(func, ast.Name) and func.id == "setattr" and len(call.args) == 3:
        name, key = _target(call.args[0]), call.args[1]
        if name is not None and isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield Merge(name, statement, call.args[2], key=key.value)


def _loop(loop: ast.For, key: str, item: str, mapping: ast.expr) -> Iterator[Merge]:
    """`for key, item in mapping.items(): setattr(target, key, item)` and its variants."""
    for inner, tests in _inner(loop.body, ()):
        found = _set_by(inner, key)
        if found is None:
            continue
        name, value = found
        sure = is_same(value, item) and all(_is_sure(test) for test in tests)
        skips = any(_skips_none(test, item) for test in tests)
        yield Merge(name, loop, mapping, sure=sure, skips_none=skips)
        if sure:
            return


def _dotted_target(loop: ast.For, word: str) -> str | None:
    """What `for word in words` changes by splitting each at `=` and going down its dotted name."""
    nodes = [node for statement in loop.body for node in ast.walk(statement)]
    splits = any(
        isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and n.func.attr in {"partition", "split"}
        and any(isinstance(a, ast.Constant) and a.value == "=" for a in n.args)
        and any(isinstance(inner, ast.Name) and inner.id == word for inner in ast.walk(n.func))
        for n in nodes
    )
    bases = [base for node in nodes if (base := _changed_base(node)) is not None]
    if not splits or not bases:
        return None
    name = bases[-1]
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=alias)], value=ast.Name(id=root)) if alias == name:
                return root
            case _:
                pass
    return name


def _changed_base(node: ast.AST) -> str | None:
    """The name whose item or attribute of computed name is set."""
    match node:
        case ast.Assign(targets=[ast.Subscript(value=base, slice=key)]):
            return None if isinstance(key, ast.Constant) else _target(base)
        case ast.Call(func=ast.Name(id="setattr"), args=[base, key, _]):
            return None if isinstance(key, ast.Constant) else _target(base)
        case _:
            return None


def _inner(
    body: list[ast.stmt], tests: tuple[ast.expr, ...]
) -> Iterator[tuple[ast.stmt, tuple[ast.expr, ...]]]:
    for statement in body:
        yield statement, tests
        if isinstance(statement, ast.If):
            yield from _inner(statement.body, (*tests, statement.test))
            yield from _inner(statement.orelse, (*tests, statement.test))


def _set_by(statement: ast.stmt, key: str) -> tuple[str, ast.expr] | None:
    """The target and value of `setattr(target, key, value)` or `target[key] = value`."""
    match statement:
        case ast.Expr(
            value=ast.Call(func=ast.Name(id="setattr"), args=[base, ast.Name(id=name), value])
        ):
            pass
        case ast.Assign(targets=[ast.Subscript(value=base, slice=ast.Name(id=name))], value=value):
            pass
        case _:
            return None
    target = _target(base)
    return (target, value) if name == key and target is not None else None


def _target(node: ast.expr) -> str | None:
    """The dotted name of a mapping or object: `x` of `x`, `vars(x)` and `x.__dict__`."""
    match node:
        case ast.Call(func=ast.Name(id="vars"), args=[inner]):
            return _target(inner)
        case ast.Call(func=ast.Name(id="globals"), args=[]):
            return "globals()"
        case ast.Attribute(value=inner, attr="__dict__"):
            return _target(inner)
        case ast.Attribute(value=inner, attr=name):
            base = _target(inner)
            return None if base is None else f"{base}.{name}"
        case ast.Name(id=name):
            return name
        case _:
            return None


def _is_sure(test: ast.expr) -> bool:
    match test:
        case ast.Call(func=ast.Name(id=name)):
            return name in _SURE_TESTS
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _is_sure(operand)
        case ast.Compare(ops=[ast.In() | ast.NotIn() | ast.IsNot()]):
            return True
        case _:
            return False


def _skips_none(test: ast.expr, item: str) -> bool:
    match test:
        case ast.Compare(
            left=ast.Name(id=name), ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]
        ):
            return name == item
        case _:
            return False
