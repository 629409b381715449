"""S405: functions of torch and of the standard library are the ones they came with.

Whoever replaces `F.cross_entropy`, `Tensor.backward`, `AdamW.step` or a clock changes what every
other line means, the measuring ones included. Assignments to attributes of imported modules and
classes, `setattr` and patches of them are looked for, and methods such as `step` that are put on
an object by hand. Settings of a library (`torch.backends`, `torch._dynamo.config`) are not meant,
nor is compiling a method in place.

Mend it by writing a function of another name and calling it.
"""

import ast
import sys
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.reading import Program
from infrarsi.reading.scopes import Scope, dotted
from infrarsi.reading.syntax import unparse
from infrarsi.reading.values import ClassValue, FunctionValue, Instance, Made, Module, Symbol
from infrarsi.rules.change import Change
from infrarsi.rules.fragments import Fragment, fresh
from infrarsi.rules.remembered import remembered
from infrarsi.rules.scope.everywhere import (
    all_pieces,
    called,
    calls_of,
    library_name,
    new_calls,
    one_a_line,
    shown,
    warned,
)

CODE = "S405"
_SETTINGS = ("torch.backends.", "torch._dynamo.config.", "torch._inductor.config.", "os.environ")
_OTHERS = ("sys.path", "sys.modules", "sys.meta_path", "sys.path_hooks", "sys.argv", "sys.flags")
_STREAMS = ("sys.stdout", "sys.stderr", "sys.excepthook", "builtins.print", "sys.displayhook")
_METHODS = {
    *("step", "backward", "forward", "zero_grad", "__call__", "_call_impl", "training_step"),
    *("compute_loss", "clip_grad_norm_", "__eq__", "__iter__", "__next__", "unscale_", "scale"),
}
_PATCHES = (
    *("unittest.mock.patch", "unittest.mock.patch.object", "unittest.mock.patch.dict"),
    *("unittest.mock.patch.multiple", "wrapt.", "importlib.reload", "torch.library.Library"),
    *(
        "torch.library.impl",
        "forbiddenfruit.",
        "gorilla.",
        "object.__setattr__",
        "type.__setattr__",
    ),
)
_MODES = ("TorchFunctionMode", "TorchDispatchMode")
_HELD = "the contract holds the functions of torch and of the standard library as they came"


def find(change: Change) -> Iterator[Violation]:
    """An error for a function of torch or of the standard library, a warning for others."""
    yield from one_a_line(_each(change))


def _each(change: Change) -> Iterator[Violation]:
    if change.sides is None:
        return
    now, was = change.sides
    known = {piece.written for piece, _ in _writes(was, now)}
    keys = {piece.key for piece, _ in _writes(was, now)} if _writes(now, was) else set[str]()
    for piece, severity in _writes(now, was):
        if piece.written not in known and piece.key not in keys:
            what = f"`{shown(piece.written)}` replaces what another library gives"
            yield _found(what, piece, severity)
    for call in new_calls(now, was, _PATCHES):
        at = Fragment(now, call.site.scope, call.site.call)
        yield _found(f"`{shown(call.signature)}` may replace a function", at, "warning")
    for piece in fresh(_modes(now, was), _modes(was, now)):
        name = getattr(piece.node, "name", "")
        yield _found(f"`{name}` takes hold of every call of torch", piece, "warning")


@remembered
def _writes(program: Program, other: Program) -> tuple[tuple[Fragment, Severity], ...]:
    return tuple(_found_writes(program, other))


def _found_writes(program: Program, other: Program) -> Iterator[tuple[Fragment, Severity]]:
    kinds = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Delete)
    for piece in all_pieces(program, other, _has_attribute, *kinds):
        for target in _targets(piece.node):
            severity = _weigh(program, target, getattr(piece.node, "value", None), piece.scope)
            if severity is not None:
                yield piece, severity
                break
    for call in calls_of(program, other, ("setattr", "builtins.setattr", "delattr")):
        piece = Fragment(program, call.site.scope, call.site.call)
        severity = _of_setattr(program, call.site.call, piece.scope)
        if severity is not None:
            yield piece, severity
    for call in called(program, other, ("update", "__setitem__", "setdefault")):
        table = _table_owner(program, call.site.call.func, call.site.scope)
        if table and not call.is_dead:
            piece = Fragment(program, call.site.scope, call.site.call)
            yield piece, _of_library(table)


def _has_attribute(node: ast.AST) -> bool:
    return any(isinstance(t, ast.Attribute | ast.Subscript) for t in _targets(node))


def _targets(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            flat: list[ast.expr] = []
            for target in targets:
                flat += target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            return flat
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            return [target]
        case _:
            return []


def _weigh(
    program: Program, target: ast.expr, value: ast.expr | None, scope: Scope
) -> Severity | None:
    """How sure it is that a write replaces a function; None where it does not."""
    if isinstance(target, ast.Subscript):
        return _of_table(program, target, scope)
    if not isinstance(target, ast.Attribute):
        return None
    if target.attr == "__class__":
        return "warning"
    name = library_name(program, target, scope)
    owner = program.evaluator.value(target.value, program.evaluator.frame(scope))
    if isinstance(owner, Module) and not _is_function(program, value, scope):
        return None
    if not name or "." not in name or isinstance(owner, Instance):
        return _of_object(program, target, value, scope)
    if name.startswith((*_SETTINGS, *_OTHERS)) or ".config." in name:
        return None
    if name in _STREAMS:
        return "warning"
    if value is not None and _is_setting(value):
        return None
    if not _is_function(program, value, scope) and not _is_known_function(name):
        return "warning"
    return _of_library(name)


def _of_object(
    program: Program, target: ast.Attribute, value: ast.expr | None, scope: Scope
) -> Severity | None:
    """`optimizer.step = ...` on an object, and on a class of the workspace from outside it."""
    text = unparse(target.value)
    if text.startswith(("sys.modules[", "importlib.import_module(")):
        return None if "__name__" in text else "error"
    if target.attr not in _METHODS or dotted(target) is None:
        return None
    owner = program.evaluator.value(target.value, program.evaluator.frame(scope))
    if isinstance(owner, Symbol) and value is not None:
        return _of_library(owner.name)
    if value is None or _is_setting(value) or _compiles(value, target):
        return None
    if dotted(target.value) == "self" and not isinstance(value, ast.Lambda | ast.Call):
        return None
    is_class = isinstance(owner, ClassValue)
    function = _is_function(program, value, scope) or _is_bound_method(value)
    return "warning" if function or is_class else None


def _compiles(value: ast.expr, target: ast.Attribute) -> bool:
    """`model.forward = torch.compile(model.forward)`."""
    return (
        isinstance(value, ast.Call)
        and unparse(value.func).rpartition(".")[2] in {"compile", "script", "jit"}
        and any(unparse(argument) == unparse(target) for argument in value.args)
    )


def _is_bound_method(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and unparse(value.func).endswith(
        ("MethodType", "partial", "wraps", "__get__", "partialmethod")
    )


def _of_setattr(program: Program, call: ast.Call, scope: Scope) -> Severity | None:
    match call.args:
        case [owner, ast.Constant(value=str() as name), *rest]:
            target = ast.copy_location(ast.Attribute(owner, name, ast.Store()), call)
            return _weigh(program, target, rest[0] if rest else None, scope)
        case [owner, _, value]:
            name = library_name(program, owner, scope)
            if not name or name.startswith(_SETTINGS) or f"{name}.".endswith(".config."):
                return None
            return _of_library(f"{name}.x") if not _is_setting(value) else "warning"
        case _:
            return None


def _of_table(program: Program, target: ast.Subscript, scope: Scope) -> Severity | None:
    """`torch.__dict__["stack"] = ...`, `vars(F)["gelu"] = ...`, `sys.modules["x"] = ...`."""
    if unparse(target.value) == "sys.modules":
        return None if unparse(target.slice) == "__name__" else "warning"
    owner = _table(program, target.value, scope)
    return _of_library(owner) if owner else None


def _table_owner(program: Program, func: ast.expr, scope: Scope) -> str:
    return _table(program, func.value, scope) if isinstance(func, ast.Attribute) else ""


def _table(program: Program, node: ast.expr, scope: Scope) -> str:
    match node:
        case ast.Attribute(attr="__dict__", value=owner):
            return _as_module(library_name(program, owner, scope))
        case ast.Call(func=ast.Name(id="vars"), args=[owner]):
            return _as_module(library_name(program, owner, scope))
        case _:
            return ""


def _as_module(name: str) -> str:
    return f"{name}." if name else ""


def _of_library(name: str) -> Severity:
    root = name.partition(".")[0]
    if root in {"warnings", "logging"}:
        return "warning"
    certain = root in {"torch", "torchvision", "numpy"} or root in sys.stdlib_module_names
    return "error" if certain else "warning"


def _is_setting(value: ast.expr) -> bool:
    """A plain value: no function was ever a number or a text."""
    match value:
        case ast.Constant(value=None):
            return False
        case ast.Constant() | ast.JoinedStr() | ast.UnaryOp(operand=ast.Constant()):
            return True
        case ast.List() | ast.Dict() | ast.Set():
            return True
        case ast.Tuple(elts=elements):
            return all(_is_setting(element) for element in elements)
        case _:
            return False


def _is_function(program: Program, value: ast.expr | None, scope: Scope) -> bool:
    if value is None or isinstance(value, ast.Lambda):
        return True
    match program.evaluator.value(value, program.evaluator.frame(scope)):
        case FunctionValue() | ClassValue():
            return True
        case Symbol(name=name):
            return not name.rpartition(".")[2].isupper()
        case Made(callee=callee):
            return callee.rpartition(".")[2] in {"partial", "wraps", "compile", "jit", "script"}
        case _:
            return isinstance(value, ast.Attribute) and value.attr in _METHODS


def _is_known_function(name: str) -> bool:
    last = name.rpartition(".")[2]
    return last in _METHODS or name.startswith(
        ("torch.nn.functional.", "torch.Tensor.", "torch.optim.", "time.", "builtins.__")
    )


@remembered
def _modes(program: Program, other: Program) -> list[Fragment]:
    return all_pieces(program, other, _is_mode, ast.ClassDef)


def _is_mode(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and any(
        unparse(base).endswith(_MODES) for base in node.bases
    )


def _found(what: str, piece: Fragment, severity: Severity) -> Violation:
    return warned(CODE, f"{what}; {_HELD}.", piece.place, severity)
