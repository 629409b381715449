"""`walk` and `children`: a tree's nodes, outer ones first; kept with the node they are below.

For code that is not changed in place.
"""

import ast
from collections.abc import Sequence


def walk(node: ast.AST) -> tuple[ast.AST, ...]:
    """A node and all below it, outer ones first, as `ast.walk` gives them; kept with the node.

    For code that is not changed in place.
    """
    known = node.__dict__.get("_below")
    if known is not None and known[0] == id(node):
        return known[1]
    found = [node]
    for parent in found:
        found += children(parent)
    node.__dict__["_below"] = (id(node), tuple(found))
    return node.__dict__["_below"][1]


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below one in their order, as `ast.iter_child_nodes` gives them."""
    found: list[ast.AST] = []
    held = node.__dict__
    for name in node._fields:
        value = held.get(name)
        if isinstance(value, ast.AST):
            found.append(value)
        elif isinstance(value, list):
            found += [item for item in value if isinstance(item, ast.AST)]
    return found


def keep_walk(node: ast.AST, found: Sequence[ast.AST]) -> None:
    """Let `walk` give what was found on another way."""
    node.__dict__["_below"] = (id(node), tuple(found))
