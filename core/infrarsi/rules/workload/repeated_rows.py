"""W106: each step trains on fresh rows.

Fetching once and training on the same rows again saves the loader and lets the loss fall by
itself. What is looked for: fetching that left the training loop or happens only now and then, a
generator seeded anew in every step, rows doubled to fill the batch, loaders that are cycled or
cached.

Mend it by fetching in every micro-step. Fetching ahead in another thread is allowed.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Call, Program
from infrarsi.reading.scopes import Function
from infrarsi.reading.syntax import unparse
from infrarsi.reading.values import Known
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added
from infrarsi.rules.fragments import Fragment, call_key, fresh, new_conditions
from infrarsi.rules.regions import calls_in, data_regions, fetch_scopes, fetched_names, step_regions
from infrarsi.rules.remembered import remembered

CODE = "W106"
_DOUBLED = {"repeat", "repeat_interleave", "tile", "expand", "expand_as", "roll", "flip"}
_JOINED = {"cat", "concat", "stack", "concatenate"}
_SEEDS = {"manual_seed", "seed", "set_state", "setstate", "set_rng_state"}
_PLAIN = {"to", "from_numpy", "long", "clone", "cuda", "len", "range", "min", "max", "int", "size"}
_CACHES = {"lru_cache", "cache", "cached_property", "memoize"}


def find(change: Change) -> Iterator[Violation]:
    """An error for a generator that starts over in each step, warnings for the rest."""
    if change.sides is None:
        return
    now, was = change.sides
    yield from _left(now, was)
    yield from _seldom(now, was)
    yield from _reseeded(now, was)
    yield from _doubled(now, was)
    yield from _cached(now, was)


def _left(now: Program, was: Program) -> Iterator[Violation]:
    """Fetching that happened in every step and does no more."""
    names = _fetching_calls(was)
    if not names or _fetches_in_loop(now):
        return
    outside = [call for call in now.called(names) if not call.in_step]
    held = was.work.flow.fetches[0]
    yield _found(
        "Rows are fetched outside the training loop and used again and again"
        if outside
        else "No call that fetches rows is found in the training loop any more",
        Fragment(now, outside[0].site.scope, outside[0].site.call) if outside else None,
        "warning",
        Fragment(was, held.scope, held.value),
    )


def _fetching_calls(program: Program) -> set[str]:
    return {
        name
        for fetch in program.work.flow.fetches
        for node in walk(fetch.value)
        if isinstance(node, ast.Call) and (name := _name(node))
    }


def _fetches_in_loop(program: Program) -> bool:
    """Whether something is still fetched: a call, or a loop over a loader."""
    for fetch in program.work.flow.fetches:
        if isinstance(fetch.node, ast.For | ast.AsyncFor):
            return True
        calls = [node for node in walk(fetch.value) if isinstance(node, ast.Call)]
        if any(_name(call) not in _PLAIN for call in calls):
            return True
    return not program.work.flow.forwards


def _name(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _seldom(now: Program, was: Program) -> Iterator[Violation]:
    names = _fetching_calls(was)
    fetching = [call for call in calls_in(now, step_regions(now)) if call.name in names]
    before = [call for call in calls_in(was, step_regions(was)) if call.name in names]
    for call, test in new_conditions(fetching, before):
        piece = Fragment(now, call.site.scope, call.site.call)
        yield _found(f"Rows are fetched only under `{test.text[:60]}`", piece, "warning")


def _reseeded(now: Program, was: Program) -> Iterator[Violation]:
    for call in added(_seeds(now), _seeds(was), call_key):
        given = call.argument("seed", 0)
        piece = Fragment(now, call.site.scope, call.site.call)
        severity: Severity = "error" if isinstance(given, Known) else "warning"
        yield _found("A generator is seeded anew while rows are fetched", piece, severity)


@remembered
def _seeds(program: Program) -> list[Call]:
    """Seeding within a step or where rows are fetched."""
    fetching = set(fetch_scopes(program))
    return [
        call
        for call in program.called(_SEEDS)
        if not call.is_dead
        and (call.site.scope in fetching or (call.in_step and _in_update(program, call)))
    ]


def _in_update(program: Program, call: Call) -> bool:
    """Whether a call stands in the loop itself and under no condition."""
    training = program.work.training
    return training is not None and call.site in training.calls and not call.conditions


def _doubled(now: Program, was: Program) -> Iterator[Violation]:
    for piece in fresh(_doublings(now), _doublings(was)):
        yield _found(f"Rows are repeated: `{piece.text[:70]}`", piece, "warning")


@remembered
def _doublings(program: Program) -> list[Fragment]:
    names = fetched_names(program)
    regions = (*step_regions(program), *data_regions(program))
    fetching = {scope.name for scope in fetch_scopes(program) if scope.name}
    found: list[Fragment] = []
    for call in calls_in(program, regions):
        node = call.site.call
        base = unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        in_data = call.site.scope.name in fetching
        if (call.name in _DOUBLED and (in_data or base in names)) or (
            call.name in _JOINED and node.args and _has_twins(node.args[0], in_data)
        ):
            found.append(Fragment(program, call.site.scope, node))
    return found


def _has_twins(node: ast.expr, in_data: bool) -> bool:
    """Whether two parts come from the same rows: `[x, x]`, `[x, x.flip(0)]`; `rows * 2`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return in_data
    if not isinstance(node, ast.Tuple | ast.List) or len(node.elts) < 2:
        return False
    roots = [unparse(element).partition(".")[0] for element in node.elts]
    return len(set(roots)) < len(roots) and all("(" not in root for root in roots)


def _cached(now: Program, was: Program) -> Iterator[Violation]:
    for piece in fresh(_caches(now), _caches(was)):
        yield _found(f"Fetched rows are kept and given out again: `{piece.text[:60]}`", piece)


@remembered
def _caches(program: Program) -> list[Fragment]:
    """Caching decorators on what fetches, and loaders that are cycled."""
    found = [
        Fragment(program, scope, decorator)
        for scope in fetch_scopes(program)
        if isinstance(scope.node, Function) and not isinstance(scope.node, ast.Lambda)
        for decorator in scope.node.decorator_list
        if unparse(decorator).partition("(")[0].rpartition(".")[2] in _CACHES
    ]
    found += [
        Fragment(program, call.site.scope, call.site.call)
        for call in program.called(["cycle"])
        if not call.is_dead
    ]
    return found


def _found(
    what: str,
    piece: Fragment | None,
    severity: Severity = "warning",
    held: Fragment | None = None,
) -> Violation:
    return violation(
        CODE,
        f"{what}; the contract holds fresh rows in every step, as in the baseline.",
        severity=severity,
        place=piece.place if piece is not None else None,
        contract_place=held.place if held is not None else None,
    )
