"""nanoGPT's way of setting constants: `exec(open("configurator.py").read())`.

The configurator executes a configuration file named on the launch line, and sets each constant
that an argument `--name=value` names. Both become bindings at the place of the `exec`.
"""

import ast

from infrarsi.launch import Launch
from infrarsi.reading.scopes import Event, Scope, module_scope
from infrarsi.reading.sources import Sources
from infrarsi.reading.syntax import parse_source, unparse
from infrarsi.reading.walking import walk


def apply_configurator(
    module: Scope | None, sources: Sources, launch: Launch
) -> frozenset[ast.Call]:
    """Add what the launch line sets to the script's constants; the `exec` calls understood."""
    understood: set[ast.Call] = set()
    for statement in module.source.tree.body if module is not None else ():
        call = statement.value if isinstance(statement, ast.Expr) else None
        is_exec = isinstance(call, ast.Call) and unparse(call.func) == "exec"
        if module is None or not is_exec or "configurator" not in unparse(statement):
            continue
        understood.update(node for node in walk(statement) if isinstance(node, ast.Call))
        for word in launch.args:
            for event in _events(word, statement, sources, module):
                events = module.events.setdefault(event.name, [])
                events.append(event)
                events.sort(key=lambda e: e.end)
    return frozenset(understood)


def _events(word: str, statement: ast.stmt, sources: Sources, module: Scope) -> list[Event]:
    end = (statement.end_lineno or 0, statement.end_col_offset or 0)
    if word.startswith("--"):
        name, equals, text = word[2:].partition("=")
        if not equals or name not in module.events:
            return []
        return [Event(name, "argument", statement, end, _literal(text))]
    text = sources.text(word) if word.endswith(".py") else None
    if text is None:
        return []
    other = module_scope(parse_source(word, text))
    return [
        Event(name, "assign", statement, end, event.value, event.path, scope=other)
        for name, events in other.events.items()
        for event in events
        if event.kind == "assign"
    ]


def _literal(text: str) -> ast.expr:
    """The value as the configurator reads it: a literal, else the text itself."""
    try:
        node = ast.parse(text, mode="eval").body
        ast.literal_eval(node)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Constant(value=text)
    return node
