"""Writing a knob's value where its binding says: a constant, an argparse default, an argument.

The place in the text is found afresh by name; a binding's own place only decides between
several, because lines move.
"""

from collections.abc import Callable, Iterator, Sequence

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from infrarsi.frozen import Scalar
from infrarsi.knobs import Binding
from infrarsi.patches.building import add_keyword, expression
from infrarsi.patches.modules import Module, parse
from infrarsi.patches.recipe import Declined
from infrarsi.patches.rewriting import Rewriting
from infrarsi.patches.syntax import argument, children, dotted, method, walk


def set_constant(binding: Binding, text: str, value: Scalar) -> str | Declined:
    """The text with the constant's literal replaced; everything else byte for byte.

    `name` may be dotted (`Config.micro_batch`) for a class's constant.
    """
    return _set(binding, text, _assigned_values, lambda node: _literal(node, value))


def set_argument_default(binding: Binding, text: str, value: Scalar) -> str | Declined:
    """The text with the flag's argparse default replaced, or given where it had none."""

    def change(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        old = argument(call, None, "default")
        if old is None:
            return add_keyword(call, "default", _code(value))
        return cst.ensure_type(call.deep_replace(old, _literal(old, value)), cst.Call)

    return _set(binding, text, _argument_calls, change)


def set_argument(args: tuple[str, ...], flag: str, value: Scalar) -> tuple[str, ...]:
    """The arguments with `--flag value` set, in the form they had (`--flag 4` or `--flag=4`).

    True is the bare flag, False is no flag. The last of several counts, so all are set.
    """
    if isinstance(value, bool):
        rest = tuple(a for a in args if a != flag)
        return args if value and flag in args else (*rest, flag) if value else rest
    out: list[str] = []
    found = False
    for index, arg in enumerate(args):
        if index and args[index - 1] == flag:
            out.append(str(value))
            found = True
        elif arg.startswith(f"{flag}="):
            out.append(f"{flag}={value}")
            found = True
        else:
            out.append(arg)
    return tuple(out) if found else (*args, flag, str(value))


Finder = Callable[[cst.Module, str], Iterator[cst.CSTNode]]


def _set(
    binding: Binding, text: str, find: Finder, change: Callable[[cst.CSTNode], cst.CSTNode]
) -> str | Declined:
    module = parse(binding.file or "", text)
    if isinstance(module, Declined):
        return module
    found = list(find(module.tree, binding.name)) or _at_place(module, binding)
    if not found:
        return Declined(reason=f"{binding.name} is not set in {binding.file} any more.")
    node = found[0] if len(found) == 1 else _nearest(module, binding, found)
    if node is None:
        return Declined(reason=f"{binding.name} is set in several places of {binding.file}.")
    rewriting = Rewriting()
    rewriting.change(node, change)
    return module.text(rewriting.apply(module.tree))


def _nearest(module: Module, binding: Binding, found: Sequence[cst.CSTNode]) -> cst.CSTNode | None:
    """The one nearest to where the binding saw it; None where that does not decide."""
    place = binding.place
    if place is None:
        return None
    starts = _starts(module)

    def distance(node: cst.CSTNode) -> tuple[int, int]:
        line, column = starts[node]
        return abs(line - place.line), abs(column + 1 - place.column)

    first, second = sorted(found, key=distance)[:2]
    return None if distance(first) == distance(second) else first


def _at_place(module: Module, binding: Binding) -> list[cst.CSTNode]:
    """A literal that stands exactly where the binding saw it, such as `DataLoader(d, 4)`."""
    place = binding.place
    if place is None or binding.carrier != "constant":
        return []
    wanted = (place.line, place.column - 1)
    return [n for n, start in _starts(module).items() if start == wanted and _is_literal(n)]


def _starts(module: Module) -> dict[cst.CSTNode, tuple[int, int]]:
    wrapper = MetadataWrapper(module.tree, unsafe_skip_copy=True)
    positions = wrapper.resolve(PositionProvider)
    return {node: (p.start.line, p.start.column) for node, p in positions.items()}


def _assigned_values(tree: cst.Module, name: str) -> Iterator[cst.CSTNode]:
    """Literals given that name: assigned, as a keyword, a parameter's default or a key."""

    def visit(node: cst.CSTNode, owner: str) -> Iterator[cst.CSTNode]:
        for target, value in _given(node):
            if name in (target, f"{owner}.{target}") and _is_literal(value):
                yield value
        if isinstance(node, cst.ClassDef):
            owner = node.name.value
        for child in children(node):
            yield from visit(child, owner)

    return visit(tree, "")


def _given(node: cst.CSTNode) -> Iterator[tuple[str | None, cst.CSTNode]]:
    """(name, value) pairs the node itself writes down."""
    if isinstance(node, cst.Assign):
        for target in node.targets:
            yield from _paired(target.target, node.value)
    elif isinstance(node, cst.AnnAssign) and node.value is not None:
        yield dotted(node.target), node.value
    elif isinstance(node, cst.Arg) and node.keyword is not None:
        yield node.keyword.value, node.value
    elif isinstance(node, cst.Param) and node.default is not None:
        yield node.name.value, node.default
    elif isinstance(node, cst.DictElement) and isinstance(node.key, cst.SimpleString):
        yield str(node.key.evaluated_value), node.value


def _paired(
    target: cst.CSTNode, value: cst.BaseExpression
) -> Iterator[tuple[str | None, cst.CSTNode]]:
    sequences = (cst.Tuple, cst.List)
    if isinstance(target, sequences) and isinstance(value, sequences):
        for left, right in zip(target.elements, value.elements, strict=False):
            yield from _paired(left.value, right.value)
    else:
        yield dotted(target), value


def _argument_calls(tree: cst.Module, flag: str) -> Iterator[cst.CSTNode]:
    for node in walk(tree):
        if isinstance(node, cst.Call) and method(node) in ("add_argument", "option"):
            flags = [a.value for a in node.args if a.keyword is None]
            if any(isinstance(f, cst.SimpleString) and f.evaluated_value == flag for f in flags):
                yield node


def _is_literal(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.UnaryOperation):
        return isinstance(node.operator, cst.Minus) and _is_literal(node.expression)
    if isinstance(node, cst.Name):
        return node.value in ("True", "False", "None")
    return isinstance(node, cst.Integer | cst.Float | cst.SimpleString)


def _literal(old: cst.CSTNode, value: Scalar) -> cst.BaseExpression:
    """The value as a literal, in the old one's quotes and parentheses."""
    quote = old.quote if isinstance(old, cst.SimpleString) and len(old.quote) == 1 else '"'
    new = expression(_code(value, quote))
    if isinstance(old, cst.BaseExpression):
        new = new.with_changes(lpar=old.lpar, rpar=old.rpar)
    return new


def _code(value: Scalar, quote: str = '"') -> str:
    if not isinstance(value, str):
        return repr(value)
    escaped = value.encode("unicode_escape").decode("ascii").replace(quote, f"\\{quote}")
    return f"{quote}{escaped}{quote}"
