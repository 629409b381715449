"""Losses that modules compute themselves: what a method returns or keeps, if it is one number."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from infrarsi.place import Place
from infrarsi.reading import Program
from infrarsi.reading.objective import Term, terms_of
from infrarsi.reading.scopes import Scope
from infrarsi.reading.written_out import Writer
from infrarsi.rules.loss.methods import changed_methods
from infrarsi.rules.loss.sides import same_number

_REDUCTIONS = {"mean", "sum"}


@dataclass(frozen=True, eq=False)
class ChangedTerm:
    """A module's own loss term that is gone or weighs otherwise."""

    what: str
    place: Place
    certain: bool


def changed_terms(now: Program, was: Program) -> Iterator[ChangedTerm]:
    """The terms that differ, method by method; methods of other names are not compared."""
    for scope, before in changed_methods(now, was):
        yield from _compared(_sums(now, scope), _sums(was, before), scope)


def _compared(
    sums: dict[str, list[Term]], held: dict[str, list[Term]], scope: Scope
) -> Iterator[ChangedTerm]:
    for name, before in held.items():
        terms = sums.get(name)
        place = scope.source.place(scope.node)
        if terms is None:
            yield ChangedTerm("A module no longer gives its own loss term", place, False)
            continue
        place = next((term.place for term in terms if term.place is not None), place)
        if len(terms) < len(before):
            yield ChangedTerm("A module's own loss term is dropped", place, bool(terms))
        elif len(terms) == len(before):
            pairs = zip(terms, before, strict=True)
            odd = next(((a, b) for a, b in pairs if not same_number(a.factor, b.factor)), None)
            if odd is not None and odd[0].text == odd[1].text:
                weight, was = odd[0].factor, odd[1].factor
                what = f"A module's own loss term weighs {weight:g} instead of {was:g}"
                yield ChangedTerm(what, place, certain=True)


def _sums(program: Program, scope: Scope) -> dict[str, list[Term]]:
    """Returned parts and kept attributes that are sums of whole reductions, by name."""
    writer = Writer(program.evaluator, program.work.flow)
    found: dict[str, list[Term]] = {}
    for number, event in enumerate(scope.returns):
        if event.value is not None:
            written = writer.write(event.value, scope)
            parts = written.elts if isinstance(written, ast.Tuple) else [written]
            for index, part in enumerate(parts):
                _keep(found, f"return {number} {index}", writer, part)
    for path, events in scope.events.items():
        if path.startswith("self.") and scope.name != "__init__" and events[-1].value is not None:
            _keep(found, path, writer, writer.write(events[-1].value, scope))
    return found


def _keep(found: dict[str, list[Term]], name: str, writer: Writer, node: ast.expr) -> None:
    terms = [term for term in terms_of(writer, node) if term.factor != 0]
    is_number = isinstance(node, ast.Constant) or bool(terms)
    if is_number and all(_is_reduction(term.core) for term in terms):
        found[name] = sorted(terms, key=lambda term: term.text)


def _is_reduction(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=attr), args=[], keywords=[]):
            return attr in _REDUCTIONS
        case ast.Call(func=ast.Name(id="torch.mean" | "torch.sum"), args=[_], keywords=[]):
            return True
        case _:
            return False
