"""Classes of the workspace that derive from one another: who makes the objects of a base class."""

import ast
from typing import TYPE_CHECKING

from infrarsi.reading.parts import CallSite
from infrarsi.reading.scopes import Function, Scope
from infrarsi.reading.values import ClassValue, Instance
from infrarsi.reading.walking import walk

if TYPE_CHECKING:
    from infrarsi.reading.evaluate import Evaluator


def heirs(evaluator: "Evaluator", owner: Scope) -> list[Scope]:
    """The classes that derive from a class, directly or not, nearest first."""
    if not evaluator.is_ready:
        evaluator.trace.never()
        return _heirs(evaluator, owner)
    return list(evaluator.trace.look(evaluator.subject, _heirs, owner))


def index_heirs(evaluator: "Evaluator") -> None:
    """Find which classes each class's bases are."""
    for scope in evaluator.project.scopes.values():
        for base in scope.node.bases if isinstance(scope.node, ast.ClassDef) else []:
            value = evaluator.value(base, evaluator.frame(scope.parent or scope))
            if isinstance(value, ClassValue):
                evaluator.heirs.setdefault(value.scope, []).append(scope)


def _heirs(evaluator: "Evaluator", owner: Scope) -> list[Scope]:
    found = list(evaluator.heirs.get(owner, ()))
    for scope in found:
        found += [s for s in evaluator.heirs.get(scope, ()) if s not in found and s is not owner]
    return found


def derives(evaluator: "Evaluator", heir: Scope, base: Scope) -> bool:
    """Whether one class may be asked for what another lacks: not where they go in a circle."""
    return heir is not base and base not in heirs(evaluator, heir)


def makers(evaluator: "Evaluator", owner: Scope) -> list[tuple[Scope, CallSite]]:
    """Each call that makes an object of the class or of one that derives from it."""
    return [
        (scope, site)
        for scope in (owner, *heirs(evaluator, owner))
        for site in evaluator.project.calls_by_name.get(scope.name, [])
        if isinstance(site.call.func, ast.Name | ast.Attribute)
    ]


def constructor(scope: Scope) -> Scope | None:
    """The class's own `__init__`."""
    inner = scope.inner.values()
    return next((s for s in inner if isinstance(s.node, Function) and s.name == "__init__"), None)


def constructor_calls(evaluator: "Evaluator", owner: Scope) -> list[CallSite]:
    """Calls that reach a class's constructor through classes that derive from it."""
    sites: list[CallSite] = []
    for heir in heirs(evaluator, owner):
        own = constructor(heir)
        if own is None:
            sites += [site for scope, site in makers(evaluator, heir) if scope is heir]
        else:
            call = base_call(own)
            sites += [] if call is None else [CallSite(call, own)]
    return sites


def base_call(own: Scope) -> ast.Call | None:
    """`super().__init__(...)` in a constructor."""
    for node in walk(own.node):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="__init__")
            ):
                return node
            case _:
                pass
    return None


def as_base(evaluator: "Evaluator", instance: Instance, base: ClassValue) -> Instance:
    """The object seen as one of its base class, with the call that reaches its constructor."""
    from infrarsi.reading.objects import method_frame

    own = constructor(instance.of.scope)
    if own is None:
        return Instance(base, instance.call, instance.frame)
    call = base_call(own)
    if call is None:
        return Instance(base)
    return Instance(base, call, method_frame(evaluator, instance, own))
