"""T309: results are computed where they are asked for.

A tensor that computes itself when somebody looks, a hook that works later, or a queue that is
settled at evaluation moves work out of the step. Subclasses of tensors, dispatch functions, hooks
and work registered for the end of the process are looked for where they were not before. Reading
can only suspect it, apart from training at the end of the process.

Mend it by computing within the step.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Call, Program
from infrarsi.reading.scopes import Function
from infrarsi.reading.syntax import unparse
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added
from infrarsi.rules.remembered import remembered

CODE = "T309"
_HELD = "the contract holds that results are computed where they are asked for"
_METHODS = {
    *("__torch_dispatch__", "__torch_function__", "__getattribute__", "__tensor_flatten__"),
    *("__float__", "__format__", "__bool__", "__index__"),
}
_CALLS = {
    *("_make_wrapper_subclass", "_make_subclass", "register_state_dict_pre_hook"),
    *("register_step_pre_hook", "register_step_post_hook", "register_optimizer_step_pre_hook"),
    *("register_optimizer_step_post_hook", "register_module_forward_hook", "finalize"),
    *("register_module_forward_pre_hook", "register_module_full_backward_hook"),
    *("register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook"),
    *("register_hook", "saved_tensors_hooks", "set_saved_tensors_default_hooks", "set_trace"),
    *("settrace", "setprofile", "LazyTensor", "lazy_load", "__set__"),
}
_LATER = {"register", "atexit", "signal", "setitimer", "callbacks"}
_BASES = ("Tensor", "Parameter", "TorchDispatchMode", "TorchFunctionMode")


def find(change: Change) -> Iterator[Violation]:
    """Warnings."""
    if change.sides is None:
        return
    now, was = change.sides
    known = {text for text, _ in _definitions(was)}
    for text, place in _definitions(now):
        if text not in known:
            yield _found(f"`{text}` may compute later", place)
    for call in added(now.named(*_CALLS), was.named(*_CALLS), _name):
        yield _found(f"`{call.signature[:60]}` may compute later", call.place)
    for call in added(_at_exit(now), _at_exit(was), _name):
        yield _found(f"`{call.signature[:60]}` runs at another time than the step", call.place)


def _at_exit(program: Program) -> list[Call]:
    return [
        call
        for call in program.called(_LATER)
        if call.callee.startswith(("atexit.", "signal.")) and not call.is_dead
    ]


@remembered
def _definitions(program: Program) -> tuple[tuple[str, Place], ...]:
    """Classes of lazy tensors, and methods that run when a value is looked at."""
    found: list[tuple[str, Place]] = []
    scopes = program.project.scopes.values() if program.is_followed else ()
    for scope in scopes:
        node = scope.node
        if isinstance(node, ast.ClassDef):
            found += [
                (f"class {node.name}", scope.source.place(base))
                for base in node.bases
                if unparse(base).rpartition(".")[2] in _BASES
            ]
        elif isinstance(node, Function) and scope.name in _METHODS:
            owner = scope.parent.name if scope.parent is not None else ""
            body = node.body if isinstance(node, ast.FunctionDef) else []
            if body:
                found.append((f"{owner}.{scope.name}", scope.source.place(body[0])))
    return tuple(found)


def _name(call: Call) -> str:
    return call.name


def _found(what: str, place: Place) -> Violation:
    return violation(CODE, f"{what}; {_HELD}.", severity="warning", place=place)
