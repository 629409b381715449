"""S411: the values that count are set where the baseline sets them.

A second file laid over the settings, variables that the code sets for itself, an edited command
line or a loop that writes into the parsed arguments let the numbers everybody sees differ from
those that count. Newly overlaying settings in such ways is looked for. Moving all constants to a
new module or file is fine: their values are followed there.

Mend it by setting the value in the one place where it is set.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.reading import Call, Program
from infrarsi.reading.scopes import guards_around
from infrarsi.reading.syntax import unparse
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added
from infrarsi.rules.fragments import Fragment, call_key, fresh
from infrarsi.rules.remembered import remembered
from infrarsi.rules.scope.everywhere import (
    all_pieces,
    called,
    library_name,
    new_calls,
    one_a_line,
    shown,
    warned,
)

CODE = "S411"
_OVERLAYS = (
    *("omegaconf.OmegaConf.merge", "omegaconf.OmegaConf.from_cli", "omegaconf.OmegaConf.update"),
    *("sys.argv.append", "sys.argv.extend", "sys.argv.insert", "sys.argv.remove", "sys.argv.pop"),
    *("omegaconf.OmegaConf.unsafe_merge", "dotenv.load_dotenv", "sys.argv.clear"),
)
_LOADS = {
    *(
        "load",
        "loads",
        "safe_load",
        "full_load",
        "read_text",
        "literal_eval",
        "read",
        "unsafe_load",
    ),
    *("load_config", "from_file", "from_json_file", "splitlines"),
}
_LOADERS = ("json", "yaml", "tomllib", "tomli", "toml", "configparser", "ast", "pathlib")
_TABLES = {"args", "cfg", "config", "conf", "settings", "params", "opt", "options", "hparams"}
_WRITERS = (
    "update",
    "set_defaults",
    "setattr",
    "merge_with",
    "__setitem__",
    "merge_from_file",
    "merge_from_list",
)
_HELD = "the contract holds that values are set where the baseline sets them"


def find(change: Change) -> Iterator[Violation]:
    """A warning for each new way in which a setting may be laid over another."""
    yield from one_a_line(_each(change))


def _each(change: Change) -> Iterator[Violation]:
    if change.sides is None:
        return
    now, was = change.sides
    for piece in fresh(_overlays(now, was), _overlays(was, now)):
        yield _found(f"`{shown(piece.written)}` lays other values over the settings", piece)
    for call in added(_own_lines(now, was), _own_lines(was, now), call_key):
        yield _found(
            f"`{shown(call.signature)}` reads other arguments than the launch line's", call
        )
    for call in new_calls(now, was, _OVERLAYS):
        yield _found(f"`{shown(call.signature)}` lays other values over the settings", call)
    for call in added(_optional_files(now, was), _optional_files(was, now), call_key):
        yield _found(
            f"`{shown(call.signature)}` reads a file that counts only if it is there", call
        )
    for piece in fresh(_own_variables(now, was), _own_variables(was, now)):
        yield _found(f"`{shown(piece.written)}` sets a variable that the code reads", piece)


@remembered
def _overlays(program: Program, other: Program) -> list[Fragment]:
    """Writes under names that are not written out into globals, arguments and the like."""
    found = all_pieces(program, other, _writes_table, ast.Assign, ast.AugAssign)
    found += all_pieces(program, other, _writes_arguments, ast.Assign, ast.AugAssign)
    for call in called(program, other, _WRITERS):
        if not call.is_dead and _lays_over(call):
            found.append(Fragment(program, call.site.scope, call.site.call))
    return found


def _writes_table(node: ast.AST) -> bool:
    return any(isinstance(t, ast.Subscript) and _is_table(t.value) for t in _targets(node))


def _writes_arguments(node: ast.AST) -> bool:
    """`sys.argv = [...]`, `sys.argv += [...]`."""
    return any(unparse(t).startswith("sys.argv") for t in _targets(node))


def _targets(node: ast.AST) -> list[ast.expr]:
    return list(getattr(node, "targets", None) or [getattr(node, "target", ast.Constant(0))])


def _is_table(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="globals" | "vars" | "locals")):
            return True
        case ast.Attribute(attr="__dict__"):
            return True
        case _:
            return False


def _lays_over(call: Call) -> bool:
    func, arguments = call.site.call.func, call.site.call.args
    if call.name == "setattr":
        return (
            len(arguments) == 3
            and not isinstance(arguments[1], ast.Constant)
            and not library_name(call.program, arguments[0], call.site.scope)
            and _is_settings(arguments[0])
        )
    if not isinstance(func, ast.Attribute):
        return False
    if call.name in {"set_defaults", "merge_with", "merge_from_file", "merge_from_list"}:
        return True
    is_empty = isinstance(func.value, ast.Name) and func.value.id in {"metrics", "stats", "state"}
    return not is_empty and (_is_table(func.value) or _is_settings(func.value))


def _is_settings(node: ast.expr) -> bool:
    name = unparse(node).lower().rpartition(".")[2].strip("_()")
    return any(word in _TABLES for word in name.split("_"))


@remembered
def _own_lines(program: Program, other: Program) -> list[Call]:
    """Parsers that are handed a list of arguments."""
    return [
        call
        for call in called(program, other, ("parse_args", "parse_known_args"))
        if not call.is_dead
        and any(unparse(argument) != "sys.argv[1:]" for argument in call.site.call.args)
    ]


@remembered
def _optional_files(program: Program, other: Program) -> list[Call]:
    """Calls that read settings where a file or a variable happens to be there."""
    return [
        call
        for call in called(program, other, _LOADS)
        if not call.is_dead
        and (call.callee.partition(".")[0] in _LOADERS or call.name in {"read_text", "load_config"})
        and _is_optional(call)
    ]


def _is_optional(call: Call) -> bool:
    tests = [g.test for g in guards_around(call.site.scope, call.site.call) if g.test is not None]
    if any(_asks_for_file(test) for test in tests):
        return True
    return any(
        isinstance(around, ast.Try) and around.handlers and call.site.call not in _handled(around)
        for around in call.site.scope.source.ancestors(call.site.call)
    )


def _handled(block: ast.Try) -> set[ast.AST]:
    return {node for handler in block.handlers for node in walk(handler)}


def _asks_for_file(test: ast.expr) -> bool:
    text = unparse(test)
    return any(
        mark in text for mark in ("exists(", "is_file(", "isfile(", "environ", "getenv(", "glob(")
    )


@remembered
def _own_variables(program: Program, other: Program) -> list[Fragment]:
    """Variables that the code sets and that it reads elsewhere."""
    written = all_pieces(program, other, _sets_variable, ast.Assign)
    return [piece for piece in written if _is_read(program, _key(piece.node))]


def _is_read(program: Program, key: str) -> bool:
    """Whether a variable is asked for anywhere."""
    for source in program.project.files.values():
        for node in source.nodes if key.strip("'\"") in source.text else ():
            if isinstance(node, ast.Constant) and unparse(node) == key:
                around = source.parents[node]
                if _reads_variable(around) or _asks_for(around):
                    return True
    return False


def _asks_for(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and unparse(node.func).endswith(
        ("getenv", "environ.get", "environ.pop")
    )


def _sets_variable(node: ast.AST) -> bool:
    return any(
        isinstance(t, ast.Subscript) and unparse(t.value).endswith("environ")
        for t in _targets(node)
    )


def _reads_variable(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Load)
        and unparse(node.value).endswith("environ")
    )


def _key(node: ast.AST) -> str:
    return next((unparse(t.slice) for t in _targets(node) if isinstance(t, ast.Subscript)), "")


def _found(what: str, at: Call | Fragment) -> Violation:
    return warned(CODE, f"{what}; {_HELD}.", at.place)
