"""Which lines play which role in a step: what the profiler attributes time to."""

import ast

from infrarsi.place import Place
from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.project import CallSite
from infrarsi.reading.reading import Role, RoleSpan
from infrarsi.reading.scopes import Scope
from infrarsi.reading.values import Symbol
from infrarsi.reading.workload import StepWork

CLIP_CALLS = {
    "clip_grad_norm_",
    "clip_grad_norm",
    "clip_grad_value_",
    "clip_gradients",
    "clip_grad_by_total_norm_",
}
_SYNC_CALLS = {"item", "tolist", "synchronize"}
_CLOCKS = {
    "time.time",
    "time.perf_counter",
    "time.monotonic",
    "time.process_time",
    "time.perf_counter_ns",
    "time.time_ns",
    "time.monotonic_ns",
}


def find_roles(evaluator: Evaluator, work: StepWork) -> tuple[RoleSpan, ...]:
    """The spans of all roles, in order of role and place, each once.

    `fetch` spans are the statements that produce the model's inputs and the bodies of the
    workspace's functions these enter.
    """
    fetches = work.flow.fetches
    spans = [_span("fetch", _statement_place(fetch.scope, fetch.node)) for fetch in fetches]
    spans += [_span("fetch", _body_place(scope)) for scope in work.fetching.scopes]
    spans += [_span("forward", _call_place(site)) for site in work.flow.forwards]
    spans += [_span("loss", _call_place(site)) for site in work.flow.losses]
    if work.training is not None:
        spans.append(_span("backward", _call_place(work.training.backward)))
        spans += [_span("step", _call_place(site)) for site in work.training.steps]
        for site in work.training.calls:
            role = _role_of(evaluator, site)
            if role is not None:
                spans.append(_span(role, _call_place(site)))
    return tuple(dict.fromkeys(spans))


def _role_of(evaluator: Evaluator, site: CallSite) -> Role | None:
    if site.name in CLIP_CALLS:
        return "clip"
    if site.name == "zero_grad":
        return "zero_grad"
    if site.name in _SYNC_CALLS and isinstance(site.call.func, ast.Attribute):
        return "sync"
    callee = evaluator.value(site.call.func, evaluator.frame(site.scope))
    return "clock" if isinstance(callee, Symbol) and callee.name in _CLOCKS else None


def _span(role: Role, place: Place) -> RoleSpan:
    return RoleSpan(role=role, place=place)


def _call_place(site: CallSite) -> Place:
    """The simple statement around a call; in a compound statement's header the call alone."""
    return _statement_place(site.scope, site.call)


def _statement_place(scope: Scope, node: ast.AST) -> Place:
    source = scope.source
    if isinstance(node, ast.For | ast.AsyncFor):
        return source.place(node.target, node.iter)
    statement = source.statement(node)
    if isinstance(statement, ast.With | ast.AsyncWith) and statement is node:
        return source.place(statement.items[0].context_expr)
    compound = hasattr(statement, "body")
    return source.place(node if compound else statement)


def _body_place(scope: Scope) -> Place:
    """The lines of a function's body."""
    node = scope.node
    if isinstance(node, ast.Lambda):
        return scope.source.place(node.body)
    body = node.body
    return scope.source.place(body[0], body[-1])
