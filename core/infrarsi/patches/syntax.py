"""Small questions about libcst trees: children, names read and stored, calls, blocks.

Leaves out meaning (see `names`) and change (see `rewriting`).
"""

import dataclasses
from collections.abc import Iterator
from functools import cache

import libcst as cst

Statement = cst.BaseStatement | cst.BaseSmallStatement
Block = cst.Module | cst.IndentedBlock
_BINDING = cst.AssignTarget | cst.AnnAssign | cst.AugAssign | cst.NamedExpr | cst.For | cst.CompFor


_TRIVIA = (
    cst.BaseParenthesizableWhitespace,
    cst.EmptyLine,
    cst.TrailingWhitespace,
    cst.Comma,
    cst.Dot,
    cst.Semicolon,
    cst.AssignEqual,
    cst.LeftParen,
    cst.RightParen,
    cst.LeftSquareBracket,
    cst.RightSquareBracket,
)


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The nodes directly below, in source order, without spaces, comments and punctuation.

    libcst's own `children` visits those as well and takes ten times as long.
    """
    found: list[cst.CSTNode] = []
    for name in _fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, list | tuple):
            found += [v for v in value if _is_code(type(v))]
        elif _is_code(type(value)):
            found.append(value)
    return found


@cache
def _fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


@cache
def _is_code(kind: type[object]) -> bool:
    return issubclass(kind, cst.CSTNode) and not issubclass(kind, _TRIVIA)


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The node and all below it, in source order."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(children(top)))


def depth(node: cst.CSTNode) -> int:
    """Levels of nodes below and including this one."""
    level, n_levels = [node], 0
    while level:
        n_levels += 1
        level = [below for above in level for below in children(above)]
    return n_levels


def calls(node: cst.CSTNode) -> Iterator[cst.Call]:
    """Every call below the node."""
    return (n for n in walk(node) if isinstance(n, cst.Call))


def dotted(node: cst.CSTNode | None) -> str | None:
    """`a.b.c` of a chain of names, None of anything else."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        base = dotted(node.value)
        return None if base is None else f"{base}.{node.attr.value}"
    return None


def method(node: cst.CSTNode) -> str | None:
    """`name` of a call `<anything>.name(...)`."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        return node.func.attr.value
    return None


def receiver(call: cst.Call) -> cst.BaseExpression | None:
    """`x` of a call `x.name(...)`."""
    return call.func.value if isinstance(call.func, cst.Attribute) else None


def argument(call: cst.Call, position: int | None, keyword: str) -> cst.BaseExpression | None:
    """The argument at that position or of that keyword; None where it is not given."""
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == keyword:
            return arg.value
    positional = [a for a in call.args if a.keyword is None]
    if position is None or any(a.star for a in positional[: position + 1]):
        return None
    return positional[position].value if position < len(positional) else None


def plain_arguments(call: cst.Call) -> list[cst.BaseExpression]:
    """Positional arguments without stars."""
    return [a.value for a in call.args if a.keyword is None and not a.star]


def loads(node: cst.CSTNode) -> set[str]:
    """Plain names the node reads. An augmented assignment reads its target."""
    stored = {id(n) for n in _targets(node) for n in walk(n) if isinstance(n, cst.Name)}
    return {n.value for n in _expression_names(node) if id(n) not in stored} | {
        n.target.value
        for n in walk(node)
        if isinstance(n, cst.AugAssign) and isinstance(n.target, cst.Name)
    }


def load_nodes(node: cst.CSTNode, name: str) -> list[cst.CSTNode]:
    """Nodes that read `name`; an augmented assignment stands for the read of its target."""
    stored = {id(n) for n in _targets(node) for n in walk(n) if isinstance(n, cst.Name)}
    plain = [n for n in _expression_names(node) if n.value == name and id(n) not in stored]
    augmented = [n for n in walk(node) if isinstance(n, cst.AugAssign) and dotted(n.target) == name]
    return [*plain, *augmented]


def stores(node: cst.CSTNode) -> set[str]:
    """Plain names the node binds or rebinds."""
    bound = {n.value for target in _targets(node) for n in _bound_names(target)}
    return bound | {
        n.name.value for n in walk(node) if isinstance(n, cst.FunctionDef | cst.ClassDef)
    }


def code_of(node: cst.CSTNode) -> str:
    """The node's code on one line, without outer parentheses and comments."""
    if isinstance(node, cst.BaseExpression):
        node = node.with_changes(lpar=(), rpar=())
    text = cst.Module(body=()).code_for_node(node)
    return " ".join(text.split())


def _expression_names(node: cst.CSTNode) -> Iterator[cst.Name]:
    """Names that stand for values: neither attributes, keywords, nor names of definitions."""
    stack = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, cst.Name):
            yield top
        elif isinstance(top, cst.Attribute | cst.Arg):
            stack.append(top.value)
        elif isinstance(top, cst.Import | cst.ImportFrom):
            continue
        elif isinstance(top, cst.FunctionDef | cst.ClassDef | cst.Param):
            stack.extend(c for c in reversed(children(top)) if c is not top.name)
        else:
            stack.extend(reversed(children(top)))


def _targets(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for n in walk(node):
        if isinstance(n, _BINDING):
            yield n.target
        elif isinstance(n, cst.AsName):
            yield n.name


def _bound_names(target: cst.CSTNode) -> Iterator[cst.Name]:
    """Names a target binds: not the `x` of `x[0] = 1` or `x.y = 1`."""
    if isinstance(target, cst.Name):
        yield target
    elif isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            yield from _bound_names(element.value)
