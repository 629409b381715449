"""W108: the rows stay the baseline's.

Fewer, easier or re-ordered rows make the loss fall sooner. Where rows are made and drawn, these
are compared: numbers that size the data, draws and their bounds, parts taken of the data,
conditions, sorting, and which functions rows come through. Gathering the same rows in another
way, copying ahead and more workers are allowed.

Mend it by restoring how rows are drawn.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Call, Program
from infrarsi.reading.aliases import rank_alias
from infrarsi.reading.scopes import Scope
from infrarsi.reading.syntax import unparse
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added, altered
from infrarsi.rules.fragments import Fragment, call_key, expanded, fresh, pieces
from infrarsi.rules.regions import calls_in, data_regions, fetch_scopes, step_regions
from infrarsi.rules.remembered import remembered
from infrarsi.rules.settings import ChangedSetting, Setting, changed_settings
from infrarsi.rules.workload.cuts import partial_axis

CODE = "W108"
_DRAWS = {
    *("randint", "randperm", "randrange", "choice", "choices", "sample", "permutation"),
    *("multinomial", "integers", "random_split", "RandomSampler", "SequentialSampler"),
    *(
        "DistributedSampler",
        "WeightedRandomSampler",
        "set_epoch",
        "SubsetRandomSampler",
        "Subset",
        "shuffle",
    ),
}
_INNER = {name for name in _DRAWS if not name.endswith("Sampler") and name not in {"Subset"}}
_ORDERS = {"sorted", "sort", "argsort", "filter", "nlargest", "nsmallest", "topk", "argmin"}
_SIZES = ("micro_batch", "accumulation", "global_batch", "seq_len")
_DATA = {"data", "dataset", "corpus", "text", "train_data", "tokens", "loader"}
_OTHER = {"workers", "worker", "prefetch", "pin", "factor", "path", "log", "eval", "val", "memory"}
_TEXT = {"split", "dataset", "mixture", "subset", "shard", "language", "filter"}


def find(change: Change) -> Iterator[Violation]:
    """An error for data that is sized otherwise, a warning where rows may be others."""
    if change.sides is None:
        return
    now, was = change.sides
    for entry in changed_settings(now, was):
        if _sizes_data(entry, now):
            yield _resized(change, entry)
    yield from _draws(now, was)
    yield from _choices(now, was)
    yield from _paths(now, was)
    yield from _splits(now, was)


def _sizes_data(entry: ChangedSetting, now: Program) -> bool:
    if any(rank_alias(canonical, entry.name) is not None for canonical in _SIZES):
        return False
    if entry.words & (_OTHER | {"seed"}) or isinstance(entry.now.value, bool):
        return False
    if isinstance(entry.now.value, str):
        return bool(entry.words & _TEXT)
    return _is_of_data(entry.now, now)


def _is_of_data(setting: Setting, now: Program) -> bool:
    parents = {part.lower() for part in setting.path.split(".")[:-1]}
    if parents & _DATA:
        return True
    file = setting.place.file if setting.place is not None else ""
    files = {scope.source.file for scope, node in data_regions(now) if isinstance(node, ast.Module)}
    return file in files


def _resized(change: Change, entry: ChangedSetting) -> Violation:
    fix = change.rewrite(entry.now.place, repr(entry.was.value), f"Restore {entry.was.value}")
    return violation(
        CODE,
        f"`{entry.now.path}` is {entry.now.value} instead of {entry.was.value}; the contract "
        "holds the baseline's rows.",
        place=entry.now.place,
        contract_place=entry.was.place,
        fixes=(fix,) if fix is not None else (),
    )


def _draws(now: Program, was: Program) -> Iterator[Violation]:
    """Draws with other bounds, or in other places."""
    after, before = _drawing(now), _drawing(was)
    written = {unparse(call.site.call) for call in before}
    fresh_draws = [
        call for call in added(after, before, _bounds) if unparse(call.site.call) not in written
    ]
    twins = {pair.now: pair.was for pair in altered(after, before)}
    for call in fresh_draws:
        held = twins.get(call)
        instead = f" instead of `{held.signature[:60]}`" if held is not None else ""
        yield _found(
            f"Rows are drawn by `{call.signature[:60]}`{instead}",
            call,
            held,
        )
    for call in added(before, after, _bounds) if len(before) > len(after) else ():
        yield _found(f"Rows are no longer drawn by `{call.signature[:60]}`", None, call)


@remembered
def _drawing(program: Program) -> list[Call]:
    regions = (*data_regions(program), *step_regions(program))
    return [
        call for call in calls_in(program, regions) if call.name in _INNER and not call.in_model
    ] + [
        call
        for call in program.called(
            name
            for name in program.project.calls_by_name
            if name.endswith("Sampler") or name in {"Subset", "random_split"}
        )
        if not call.is_dead
    ]


def _bounds(call: Call) -> str:
    """A draw without how many rows it draws; that is the batch's business."""
    node = call.site.call
    if call.name not in {"randint", "integers", "randrange"}:
        return call_key(call)
    kept = [argument for argument in node.args if not isinstance(argument, ast.Tuple | ast.List)]
    keywords = [k for k in node.keywords if k.arg not in {"size", "generator", "device", "dtype"}]
    slim = ast.copy_location(ast.Call(node.func, kept, keywords), node)
    scope = call.site.scope
    texts = [
        Fragment(call.program, scope, expanded(part, scope)).key
        for part in ast.iter_child_nodes(slim)
    ]
    return " ".join(texts)


def _choices(now: Program, was: Program) -> Iterator[Violation]:
    """Sorting, filtering, conditions and parts where rows are made."""
    for call in added(_ordering(now), _ordering(was), call_key):
        yield _found(f"Rows are sorted or filtered by `{call.signature[:60]}`", call, None)
    for piece in fresh(_conditions(now), _conditions(was)):
        yield _piece_found(f"Rows are chosen by `{piece.text[:60]}`", piece)
    for piece in fresh(_parts(now), _parts(was)):
        yield _piece_found(f"Only a part of the data is used: `{piece.text[:60]}`", piece)


@remembered
def _ordering(program: Program) -> list[Call]:
    regions = (*data_regions(program), *step_regions(program))
    return [c for c in calls_in(program, regions) if c.name in _ORDERS and not c.in_model]


@remembered
def _conditions(program: Program) -> list[Fragment]:
    regions = data_regions(program)
    kinds = (ast.If, ast.IfExp, ast.comprehension)
    tests = pieces(program, regions, lambda _: True, *kinds)
    return [
        Fragment(program, piece.scope, test)
        for piece in tests
        for test in (
            piece.node.ifs
            if isinstance(piece.node, ast.comprehension)
            else [getattr(piece.node, "test", piece.node)]
        )
    ]


@remembered
def _parts(program: Program) -> list[Fragment]:
    fetching = set(fetch_scopes(program))
    return [
        piece
        for piece in pieces(program, data_regions(program), _takes_part, ast.Subscript)
        if piece.scope not in fetching
    ]


def _takes_part(node: ast.AST) -> bool:
    return partial_axis(node) is not None


def _splits(now: Program, was: Program) -> Iterator[Violation]:
    """Fetches that ask for another split, and data sets that say another length."""
    known = {text for piece in _asked(was) for text in _texts(piece)}
    for piece in _asked(now):
        if _texts(piece) - known and known:
            yield _piece_found(f"Rows are fetched by `{piece.text[:60]}`", piece)
    for piece in fresh(_lengths(now), _lengths(was)):
        yield _piece_found(f"A data set says its length is `{piece.text[:60]}`", piece)


def _asked(program: Program) -> list[Fragment]:
    return [
        Fragment(program, fetch.scope, fetch.value)
        for fetch in program.work.flow.fetches
        if any(isinstance(node, ast.Call) for node in walk(fetch.value))
    ]


def _texts(piece: Fragment) -> set[str]:
    return {
        node.value
        for node in walk(piece.node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def _lengths(program: Program) -> list[Fragment]:
    return [
        Fragment(program, scope, event.value)
        for scope in program.project.scopes.values()
        if scope.name == "__len__"
        for event in scope.returns
        if event.value is not None
    ]


def _paths(now: Program, was: Program) -> Iterator[Violation]:
    """Rows that come through functions and data sets the baseline has not."""
    yield from _overrides(now, was)
    before = {_body(was, scope) for scope in fetch_scopes(was)}
    after = {_body(now, scope) for scope in fetch_scopes(now)}
    if not before - after:
        return
    known = {_owned(scope) for scope in was.project.scopes.values()}
    for scope in fetch_scopes(now):
        if scope.name and _owned(scope) not in known and _body(now, scope) not in before:
            yield violation(
                CODE,
                f"Rows now come through `{scope.name}`; the contract holds the baseline's rows.",
                severity="warning",
                place=scope.source.place(scope.node),
            )


def _overrides(now: Program, was: Program) -> Iterator[Violation]:
    """Methods that take the place of one that rows come through."""
    names = {scope.name for scope in fetch_scopes(was) if scope.name}
    known = {_owned(scope) for scope in was.project.scopes.values()}
    known |= {_owned(scope) for scope in fetch_scopes(now)}
    for scope in now.project.scopes.values():
        owner = scope.parent.node if scope.parent is not None else None
        if scope.name in names and isinstance(owner, ast.ClassDef) and _owned(scope) not in known:
            yield violation(
                CODE,
                f"`{owner.name}.{scope.name}` may take the place of what rows come through; the "
                "contract holds the baseline's rows.",
                severity="warning",
                place=scope.source.place(scope.node),
            )


def _owned(scope: Scope) -> tuple[str, str]:
    return scope.parent.name if scope.parent is not None else "", scope.name


def _body(program: Program, scope: Scope) -> str:
    """What a function does, without its name."""
    body = getattr(scope.node, "body", [])
    statements = body if isinstance(body, list) else [body]
    return " ".join(Fragment(program, scope, statement).key for statement in statements)


def _found(what: str, call: Call | None, held: Call | None) -> Violation:
    severity: Severity = "warning"
    return violation(
        CODE,
        f"{what}; the contract holds the baseline's rows and their order between steps.",
        severity=severity,
        place=call.place if call is not None else None,
        contract_place=held.place if held is not None else None,
    )


def _piece_found(what: str, piece: Fragment) -> Violation:
    return violation(
        CODE,
        f"{what}; the contract holds the baseline's rows.",
        severity="warning",
        place=piece.place,
    )
