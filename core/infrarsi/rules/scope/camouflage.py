"""S412: a setting the contract holds still reaches the place where it counts.

A number may stand where it always stood and yet count no more: it is written over later, lowered
by whoever reads it, or only printed. Settings the contract holds are followed: what is newly
written over them, and which of them nothing but a log line reads any more. Where the effective
value is still known to be the agreed one, nothing is said.

Mend it by using the setting, or by changing it where it is set.
"""

import ast
from collections.abc import Iterator
from functools import lru_cache

from infrarsi.contract import Violation
from infrarsi.reading import Program
from infrarsi.reading.aliases import ALIASES, normalise, rank_alias
from infrarsi.reading.attached import attached
from infrarsi.reading.scopes import Function, Scope, dotted
from infrarsi.reading.syntax import SourceFile, unparse
from infrarsi.rules.change import Change
from infrarsi.rules.fragments import Fragment, fresh
from infrarsi.rules.remembered import remembered
from infrarsi.rules.scope.everywhere import (
    all_pieces,
    calls_of,
    differing,
    one_a_line,
    shown,
    warned,
)

CODE = "S412"
_MORE = {
    "grad_clip", "max_grad_norm", "clip", "clip_norm", "max_norm", "dropout", "top_k", "n_layer",
    "n_layers", "num_layers", "layers", "n_experts", "num_experts", "betas", "z_loss", "aux_coef",
    "warmup", "warmup_steps", "max_iters", "max_steps", "label_smoothing", "precision", "dtype",
    "aux_loss_coef", "router_z_coef", "z_loss_coef", "eval_every", "eval_interval", "n_head",
}  # fmt: skip
_ROWS = ("micro_batch", "accumulation", "global_batch", "world_size", "tokens_per_step")
_HELD = "the contract holds that the setting reaches the place where it counts"
_SHOWN = {"print", "info", "debug", "log", "write", "warning"}


def find(change: Change) -> Iterator[Violation]:
    """A warning for each setting written over, and for each that is read no more."""
    yield from one_a_line(_each(change))


def _each(change: Change) -> Iterator[Violation]:
    if change.sides is None:
        return
    now, was = change.sides
    for piece in fresh(_overwrites(now, was), _overwrites(was, now)):
        if _is_hidden(piece.node) or not _still_agreed(change, _target(piece.node)):
            yield _found(f"`{shown(piece.written)}` writes over a setting", piece)
    before = _constants(was) if differing(now, was) or differing(was, now) else {}
    for name, piece in _constants(now).items() if before else ():
        if name not in before or _n_uses(now, name) or not _n_uses(was, name):
            continue
        if not _still_agreed(change, name):
            what = f"`{name}` still stands here, but only a log line, or nothing, reads it"
            yield _found(what, piece)


def _still_agreed(change: Change, name: str) -> bool:
    """Whether what the setting decides is known, and is what the contract holds."""
    facts = [fact for fact in ALIASES if rank_alias(fact, normalise(name)) is not None]
    if not facts:
        return False
    if set(facts) & set(_ROWS):
        facts = ["global_batch"]
    return any(
        change.fact(fact).value is not None and change.fact(fact).value == change.agreed(fact).value
        for fact in facts
    )


def _is_hidden(node: ast.AST) -> bool:
    """Whether a write goes a way in which no reader of names sees its value."""
    target = getattr(node, "target", None) or next(iter(getattr(node, "targets", ())), None)
    if isinstance(node, ast.FunctionDef):
        return True
    if isinstance(node, ast.AugAssign) and not isinstance(target, ast.Name):
        return True
    if not isinstance(target, ast.Subscript):
        return False
    return unparse(target.value).startswith(("vars(", "globals(")) or (
        isinstance(target.value, ast.Attribute) and target.value.attr == "__dict__"
    )


@remembered
def _overwrites(program: Program, other: Program) -> list[Fragment]:
    """Statements that write a held setting a further time."""
    found = [
        piece
        for piece in all_pieces(program, other, _writes_held, ast.Assign, ast.AugAssign)
        if _is_second(piece)
    ]
    found += all_pieces(program, other, _answers_for_setting, ast.FunctionDef)
    for call in calls_of(program, other, ("setattr", "object.__setattr__", "builtins.setattr")):
        match call.site.call.args:
            case [_, ast.Constant(value=str() as name), *_] if _is_held(name):
                found.append(Fragment(program, call.site.scope, call.site.call))
            case _:
                pass
    return found


def _answers_for_setting(node: ast.AST) -> bool:
    """A property under a setting's name, or a method that answers for every name."""
    if not isinstance(node, ast.FunctionDef):
        return False
    decorated = any("property" in unparse(decorator) for decorator in node.decorator_list)
    return node.name == "__getattribute__" or (decorated and _is_held(node.name))


def _writes_held(node: ast.AST) -> bool:
    return _is_held(_target(node))


def _is_second(piece: Fragment) -> bool:
    """Whether a write is none of those that first give a name its value."""
    if isinstance(piece.node, ast.AugAssign):
        return isinstance(piece.node.op, ast.Sub | ast.FloorDiv | ast.Div | ast.RShift | ast.Mult)
    target = piece.node.targets[0] if isinstance(piece.node, ast.Assign) else None
    match target:
        case ast.Subscript():
            return True
        case ast.Attribute(value=ast.Name(id="self")):
            return piece.scope.name not in {"__init__", "__post_init__"}
        case ast.Attribute():
            return True
        case ast.Name(id=name):
            events = next((s.events[name] for s in piece.scope.around() if name in s.events), [])
            first = events[0].node if events else None
            earlier = first is not None and first is not piece.node
            is_global = isinstance(piece.scope.node, Function) and name.isupper()
            return earlier or (is_global and name not in piece.scope.events)
        case _:
            return False


def _target(node: ast.AST) -> str:
    """The last name of what is written: of a name, an attribute or a key."""
    target = getattr(node, "target", None) or next(iter(getattr(node, "targets", ())), None)
    match target:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(slice=ast.Constant(value=str() as name)):
            return name
        case _:
            return ""


@lru_cache(maxsize=4096)
def _is_held(name: str) -> bool:
    plain = normalise(name) if name else ""
    if len(plain) < 3:
        return False
    held = plain in _MORE
    return held or any(rank_alias(fact, plain) is not None for fact in ALIASES)


def _constants(program: Program) -> dict[str, Fragment]:
    """Settings of modules and classes that are set to something plain."""
    found: dict[str, Fragment] = {}
    for module in program.project.modules.values():
        for name, (scope, node) in _constants_in(module).items():
            found.setdefault(name, Fragment(program, scope, node))
    return found


@attached
def _constants_in(module: Scope) -> dict[str, tuple[Scope, ast.expr]]:
    found: dict[str, tuple[Scope, ast.expr]] = {}
    for scope in (module, *module.inner.values()):
        for name, events in scope.events.items() if not isinstance(scope.node, Function) else ():
            value = events[0].value
            if isinstance(value, ast.Constant) and "." not in name and _is_held(name):
                found.setdefault(name, (scope, value))
    return found


@attached
def _uses(source: SourceFile) -> dict[str, int]:
    """How often held names and attributes are read in a file, other than to be shown."""
    count: dict[str, int] = {}
    for node in source.nodes:
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        name = node.id if isinstance(node, ast.Name) else node.attr
        if _is_held(name) and not _is_shown(source.ancestors(node)):
            count[name] = count.get(name, 0) + 1
    return count


def _is_shown(ancestors: Iterator[ast.AST]) -> bool:
    for around in ancestors:
        if isinstance(around, ast.Call):
            name = dotted(around.func) or ""
            if name.rpartition(".")[2] in _SHOWN:
                return True
        if isinstance(around, ast.stmt):
            return isinstance(around, ast.Assert)
    return False


def _n_uses(program: Program, name: str) -> int:
    return sum(_uses(source).get(name, 0) for source in program.project.files.values())


def _found(what: str, piece: Fragment) -> Violation:
    return warned(CODE, f"{what}; {_HELD}.", piece.place)
