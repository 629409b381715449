"""How a program sets its learning rate, as texts that compare: formulas and schedulers."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from infrarsi.place import Place
from infrarsi.reading import Call, Program
from infrarsi.reading.scopes import Function, Scope
from infrarsi.reading.syntax import unparse
from infrarsi.reading.values import FunctionValue
from infrarsi.reading.walking import walk

_SCHEDULERS = (
    "LambdaLR",
    "CosineAnnealingLR",
    "OneCycleLR",
    "StepLR",
    "MultiStepLR",
    "LinearLR",
    "SequentialLR",
    "ExponentialLR",
    "ConstantLR",
    "PolynomialLR",
    "CosineAnnealingWarmRestarts",
    "ReduceLROnPlateau",
    "get_scheduler",
    "get_cosine_schedule_with_warmup",
    "get_linear_schedule_with_warmup",
)


@dataclass(frozen=True)
class Formula:
    """One way a rate is computed, with names and functions written out."""

    text: str
    place: Place

    @property
    def shape(self) -> str:
        """The text with all numbers alike."""
        return unparse(_Shape().visit(ast.parse(self.text)))

    @property
    def numbers(self) -> list[object]:
        """Its numbers and texts, in order."""
        nodes = walk(ast.parse(self.text))
        return [node.value for node in nodes if isinstance(node, ast.Constant)]


class _Shape(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        is_number = isinstance(node.value, int | float) and not isinstance(node.value, bool)
        return ast.Constant(0) if is_number else node


def assigned_rates(program: Program) -> list[Formula]:
    """What `group["lr"]` is set to within a step."""
    found: list[Formula] = []
    for scope, node in program.step_nodes:
        match node:
            case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value="lr"))], value=value):
                text = _tuple([unparse(program.write_out(value, scope))])
                tests = [t for f in _called(program, value, scope) for t in _tests(program, f)]
                found.append(Formula(_tuple([text, *tests]), scope.source.place(node)))
            case _:
                pass
    return found


def schedulers(program: Program) -> list[Formula]:
    """The schedulers that are made, with the functions they are given."""
    return [Formula(_scheduler(program, call), call.place) for call in program.named(*_SCHEDULERS)]


def scheduler_steps(program: Program) -> list[Call]:
    """The calls that step a scheduler."""
    return [
        call
        for call in program.named("step")
        if "sched" in call.receiver.lower() or "lr_scheduler" in call.callee
    ]


def _scheduler(program: Program, call: Call) -> str:
    parts = [repr(call.name)]
    for node in [*call.site.call.args[1:], *(k.value for k in call.site.call.keywords)]:
        value = program.evaluator.value(node, call.frame)
        if isinstance(value, FunctionValue):
            parts += _function(program, value.scope)
        else:
            parts.append(program.spell(node, call.site.scope))
    return _tuple(parts)


def _function(program: Program, scope: Scope) -> list[str]:
    """What a function returns, and under which conditions."""
    values = [
        unparse(program.write_out(event.value, scope))
        for event in scope.returns
        if event.value is not None
    ]
    return [*values, *_tests(program, scope)]


def _tests(program: Program, scope: Scope) -> Iterator[str]:
    for event in scope.returns:
        for guard in event.guards:
            if guard.test is not None:
                yield unparse(program.write_out(guard.test, scope))


def _called(program: Program, value: ast.expr, scope: Scope) -> Iterator[Scope]:
    """The workspace's functions that an expression, or the name it reads, goes through."""
    bound = [value]
    if isinstance(value, ast.Name):
        bound += [e.value for e in scope.events.get(value.id, []) if e.value is not None]
    for expression in bound:
        for node in walk(expression):
            if isinstance(node, ast.Call):
                callee = program.evaluator.value(node.func, program.evaluator.frame(scope))
                if isinstance(callee, FunctionValue) and isinstance(callee.scope.node, Function):
                    yield callee.scope


def _tuple(parts: list[str]) -> str:
    return "(" + ", ".join(f"({part})" for part in parts) + ",)"
