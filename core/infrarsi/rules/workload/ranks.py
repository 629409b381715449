"""W114: each rank trains on rows of its own.

Where every rank reads the same rows, a step trains on a fraction of them and counts them all; the
same happens where a number is divided by the number of processes twice. Where rows are drawn, the
rank must still be taken into account, and new divisions by the number of processes are looked
for.

Mend it by giving the sampler the rank again, and dividing once.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Program
from infrarsi.reading.syntax import unparse
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.difference import altered, keywords
from infrarsi.rules.fragments import Fragment, fresh, matching
from infrarsi.rules.regions import Region, data_regions
from infrarsi.rules.remembered import remembered

CODE = "W114"
_LOADERS = ("DataLoader", "StatefulDataLoader")
_RANK = ("rank", "process_index", "local_process_index", "dp_rank", "shard_id", "worker_id")
_WORLD = (
    "world_size",
    "world",
    "num_processes",
    "n_processes",
    "nprocs",
    "dp_size",
    "num_shards",
)


def find(change: Change) -> Iterator[Violation]:
    """A warning where the rank is out of the data's way, or a division is new."""
    if change.sides is None:
        return
    now, was = change.sides
    yield from _unranked(now, was)
    yield from _divided(now, was)
    for pair in altered(now.named(*_LOADERS), was.named(*_LOADERS)):
        gone = [name for name in ("sampler", "batch_sampler") if name in keywords(pair.was)]
        if gone and not {"sampler", "batch_sampler"} & set(keywords(pair.now)):
            yield violation(
                CODE,
                f"The loader is no longer given a `{gone[0]}`, and ranks may read the same rows; "
                "the contract holds each rank's own rows.",
                severity="warning",
                place=pair.now.place,
                contract_place=pair.was.place,
            )


def _unranked(now: Program, was: Program) -> Iterator[Violation]:
    before, after = _ranked(was), _ranked(now)
    if not before or len(after) >= len(before):
        return
    after_keys = {piece.key for piece in after}
    gone = next((piece for piece in before if piece.key not in after_keys), before[0])
    severity: Severity = (
        "error" if not after and now.launch.n_processes > 1 and not _samples(now) else "warning"
    )
    yield violation(
        CODE,
        f"Where rows are drawn, `{gone.text[:60]}` is gone, and ranks may read the same rows; the "
        "contract holds each rank's own rows.",
        severity=severity,
        place=_data_place(now),
        contract_place=gone.place,
    )


@remembered
def _ranked(program: Program) -> list[Fragment]:
    """Pieces that read the rank where rows are made or drawn, or a loader is built."""
    found: dict[ast.AST, Fragment] = {}
    for scope, region in _regions(program):
        if not _may_read(scope.source.text):
            continue
        for node in walk(region):
            if _reads(node, _RANK) and not _is_print(scope.source.ancestors(node)):
                statement = _expression(scope.source.parents, node)
                found[statement] = Fragment(program, scope, statement)
    for file, source in program.project.files.items():
        for node in source.nodes if _may_read(source.text) else ():
            if isinstance(node, ast.Assign) and _is_shard(node):
                scope = program.project.scope_of(file, node)
                found.setdefault(node.value, Fragment(program, scope, node.value))
    return list(found.values())


def _may_read(text: str) -> bool:
    return any(word in text for word in ("rank", "RANK", "process_index", "shard_id", "worker_id"))


def _is_shard(node: ast.Assign) -> bool:
    """Whether what tells a rank's rows apart is set from the rank: `seed_offset = rank`."""
    names = unparse(node.targets[0]).lower()
    return any(word in names for word in ("seed", "offset", "shard", "start")) and any(
        _reads(inner, _RANK) for inner in walk(node.value)
    )


def _regions(program: Program) -> list[Region]:
    """Data code, fetches, and the calls that build what rows come from."""
    regions = list(data_regions(program))
    regions += [(fetch.scope, fetch.value) for fetch in program.work.flow.fetches]
    words = ("loader", "sampler", "dataset", "reader", "corpus", "windows", "stream", "seed")
    names = [n for n in program.project.calls_by_name if any(word in n.lower() for word in words)]
    regions += [(c.site.scope, c.site.call) for c in program.called(names) if not c.is_dead]
    return regions


def _samples(program: Program) -> bool:
    return bool(program.called(["DistributedSampler"]))


def _reads(node: ast.AST, names: tuple[str, ...]) -> bool:
    match node:
        case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
            return name.lower() in names or name.lower().removeprefix("ddp_") in names
        case ast.Call(func=ast.Attribute(attr="get_rank")):
            return True
        case ast.Constant(value=str(text)):
            return text == "RANK"
        case _:
            return False


def _expression(parents: dict[ast.AST, ast.AST], node: ast.AST) -> ast.AST:
    parent = parents.get(node)
    while isinstance(parent, ast.BinOp | ast.Slice | ast.Subscript | ast.keyword):
        node, parent = parent, parents.get(parent)
    return node


def _is_print(ancestors: Iterator[ast.AST]) -> bool:
    return any(isinstance(node, ast.If | ast.JoinedStr) for node in ancestors)


def _divided(now: Program, was: Program) -> Iterator[Violation]:
    for piece in fresh(_divisions(now), _divisions(was)):
        yield violation(
            CODE,
            f"`{unparse(piece.node)[:60]}` newly divides by the number of processes; the "
            "contract holds the rows of all ranks together.",
            severity="warning",
            place=piece.place,
        )


@remembered
def _divisions(program: Program) -> list[Fragment]:
    """`n // world` and `n //= world`, apart from losses that are averaged."""
    return matching(program, _divides)


def _divides(node: ast.AST) -> bool:
    match node:
        case (
            ast.BinOp(op=ast.FloorDiv(), right=right)
            | ast.AugAssign(op=ast.FloorDiv(), value=right)
        ):
            return any(_reads(inner, _WORLD) for inner in walk(right))
        case _:
            return False


def _data_place(program: Program) -> Place | None:
    fetches = program.work.flow.fetches
    return fetches[0].scope.source.place(fetches[0].value) if fetches else None
