"""Objective: what a step calls backward on, as a sum of weighted terms."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from infrarsi.place import Place
from infrarsi.reading.calls import argument_of
from infrarsi.reading.flow import loss_operand
from infrarsi.reading.project import CallSite
from infrarsi.reading.scopes import Scope
from infrarsi.reading.syntax import unparse
from infrarsi.reading.training import Training
from infrarsi.reading.values import FunctionValue
from infrarsi.reading.walking import walk
from infrarsi.reading.workload import StepWork
from infrarsi.reading.written_out import Writer


@dataclass(frozen=True, eq=False)
class Term:
    """One summand: a number times a core. `by` are factors that are no plain numbers."""

    factor: float
    core: ast.expr
    by: tuple[str, ...] = ()
    place: Place | None = None

    @property
    def text(self) -> str:
        """The core, written out."""
        return unparse(self.core)


@dataclass(frozen=True, eq=False)
class Objective:
    """The operand of a step's backward call. `losses` are the loss calls on the way to it."""

    terms: tuple[Term, ...]
    losses: tuple[CallSite, ...]
    place: Place

    @property
    def main(self) -> Term:
        """The term that holds the loss: the first one with a loss call in it."""
        return next((term for term in self.terms if loss_call(term.core)), self.terms[0])

    @property
    def is_whole(self) -> bool:
        """Whether nothing in it was left unfollowed."""
        lost = {"deep", "carried", "either", "nothing", "opaque"}
        return not any(
            isinstance(node, ast.Name) and node.id in lost
            for term in self.terms
            for node in walk(term.core)
        )


def write_objective(writer: Writer, work: StepWork) -> Objective | None:
    """The objective of a program; None where no backward call is followed to a loss."""
    operand, training = work.flow.operand, work.training
    if operand is None or training is None:
        return None
    scope = training.backward.scope
    written = _through_callers(writer, operand, scope, work)
    terms = terms_of(writer, written)
    if not terms:
        return None
    return Objective(terms, tuple(writer.losses), scope.source.place(operand))


def terms_of(writer: Writer, written: ast.expr) -> tuple[Term, ...]:
    """A written expression as a sum of weighted terms; numbers alone are no term."""
    return tuple(_terms(writer, written, 1.0, ()))


def loss_call(node: ast.AST) -> ast.Call | None:
    """The first loss call within a written expression."""
    for inner in walk(node):
        if isinstance(inner, ast.Call):
            name = callee_of(inner).lower()
            if "cross_entropy" in name or name.endswith(("loss", "criterion")):
                return inner
    return None


def callee_of(call: ast.Call) -> str:
    """The last name of what is called, empty where it has none."""
    func = call.func
    if isinstance(func, ast.Attribute):
        return func.attr
    return func.id.rpartition(".")[2] if isinstance(func, ast.Name) else ""


def _through_callers(writer: Writer, operand: ast.expr, scope: Scope, work: StepWork) -> ast.expr:
    """The operand with the parameters of the function it stands in as its caller gives them."""
    training = work.training
    evaluator = writer.evaluator
    inside = _own_backward(writer, training) if training is not None else None
    if inside is not None:
        function, name, expression = inside
        return writer.write(expression, function, {name: writer.write(operand, scope)})
    given: dict[str, ast.expr] = {}
    if training is not None and isinstance(scope.node, ast.FunctionDef):
        sites = [s for s in evaluator.call_sites(scope) if training.holds(s.scope, s.call)]
        if sites:
            for name in (argument.arg for argument in scope.node.args.args):
                argument = argument_of(evaluator, sites[0], scope, name)
                if argument is not None:
                    given[name] = writer.write(argument.expression, sites[0].scope)
    return writer.write(operand, scope, given)


def _own_backward(writer: Writer, training: Training) -> tuple[Scope, str, ast.expr] | None:
    """The workspace's own `backward(loss)`: its scope, parameter, and what it calls it on."""
    evaluator, site = writer.evaluator, training.backward
    value = evaluator.value(site.call.func, evaluator.frame(site.scope))
    if not isinstance(value, FunctionValue) or not isinstance(value.scope.node, ast.FunctionDef):
        return None
    for inner in evaluator.project.calls_by_name.get("backward", []):
        operand = loss_operand(inner.call) if inner.scope is value.scope else None
        if operand is not None and len(value.scope.node.args.args) > 1:
            return value.scope, value.scope.node.args.args[1].arg, operand
    return None


def _terms(writer: Writer, node: ast.expr, factor: float, by: tuple[str, ...]) -> Iterator[Term]:
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            yield from _terms(writer, left, factor, by)
            sign = 1.0 if isinstance(op, ast.Add) else -1.0
            yield from _terms(writer, right, sign * factor, by)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            left_number, right_number = _number(left), _number(right)
            if right_number is not None:
                yield from _terms(writer, left, factor * right_number, by)
            elif left_number is not None:
                yield from _terms(writer, right, factor * left_number, by)
            elif _rank(left) < _rank(right):
                yield from _terms(writer, right, factor, (*by, unparse(left)))
            else:
                yield from _terms(writer, left, factor, (*by, unparse(right)))
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            number = _number(right)
            if number:
                yield from _terms(writer, left, factor / number, by)
            else:
                yield from _terms(writer, left, factor, (*by, f"1 / {unparse(right)}"))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield from _terms(writer, operand, -factor, by)
        case ast.Call(func=ast.Attribute(value=base, attr="mul" | "div" as attr), args=[by_node]):
            op = ast.Mult() if attr == "mul" else ast.Div()
            yield from _terms(writer, ast.BinOp(base, op, by_node), factor, by)
        case ast.Constant():
            return
        case _:
            yield Term(factor, node, by, _place(writer, node))


def _rank(node: ast.expr) -> int:
    """How surely a factor is the term itself and no weight of it."""
    if loss_call(node) is not None:
        return 2
    return int(any(isinstance(n, ast.Name) and n.id == "hidden" for n in walk(node)))


def _number(node: ast.expr) -> float | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.BinOp):
        left, right = _number(node.left), _number(node.right)
        if left is not None and right:
            if isinstance(node.op, ast.Div):
                return left / right
            if isinstance(node.op, ast.Mult):
                return left * right
    return None


def _place(writer: Writer, node: ast.AST) -> Place | None:
    origin = writer.origins.get(node)
    return origin[0].source.place(origin[1]) if origin is not None else None
