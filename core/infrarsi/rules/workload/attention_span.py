"""W117: every position attends to as many others as in the baseline.

A window, blocks that do not see each other, or keys and values that are thinned make attention
cheaper and train another model. Masks, windows, parts of keys and values and the arguments of
attention kernels are compared. Computing the same attention by a fused kernel is allowed.

Mend it by restoring the mask.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Call, Program
from infrarsi.reading.values import Known, Value
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added
from infrarsi.rules.fragments import Fragment, call_key, fresh, pieces
from infrarsi.rules.regions import module_regions
from infrarsi.rules.remembered import remembered
from infrarsi.rules.settings import changed_settings
from infrarsi.rules.workload.cuts import partial_axis

CODE = "W117"
_BANDS = ("tril", "triu", "tril_", "triu_")
_KERNELS = ("scaled_dot_product_attention", "flash_attn_func", "flex_attention", "attention")
_WORDS = {"window", "sliding", "local", "dilation", "dilated", "sink", "sparse", "sparsity"}
_BLOCKS = {"unflatten", "unfold", "create_block_mask", "block_diag", "topk", "avg_pool1d", "roll"}
_KEYS = {"k", "v", "key", "value", "keys", "values", "kv"}
_HELD = "the contract holds attention over as many positions as in the baseline"


def find(change: Change) -> Iterator[Violation]:
    """An error for a band or a window that is new, a warning for what may narrow attention."""
    if change.sides is None:
        return
    now, was = change.sides
    yield from _settings(now, was)
    yield from _bands(now, was)
    yield from _kernels(now, was)
    for call in added(_blocks(now), _blocks(was), call_key):
        yield _found(f"Attention may be cut up by `{call.signature[:60]}`", call.place)
    for piece in fresh(_thinned(now), _thinned(was)):
        yield _found(f"Keys or values are cut: `{piece.text[:60]}`", piece.place)
    for piece in fresh(_windows(now), _windows(was)):
        yield _found(f"Positions are compared by `{piece.text[:60]}`", piece.place)


def _settings(now: Program, was: Program) -> Iterator[Violation]:
    for entry in changed_settings(now, was):
        if entry.words & _WORDS and "batch" not in entry.words:
            yield violation(
                CODE,
                f"`{entry.now.path}` is {entry.now.value} instead of {entry.was.value}; {_HELD}.",
                place=entry.now.place,
                contract_place=entry.was.place,
            )


def _bands(now: Program, was: Program) -> Iterator[Violation]:
    """Triangles off the diagonal: `triu(-16)` keeps 16 positions back."""
    before = [_diagonal(call) for call in _model_calls(was, _BANDS)]
    for call in _model_calls(now, _BANDS):
        diagonal = _diagonal(call)
        if diagonal in before:
            continue
        known = diagonal.value if isinstance(diagonal, Known) else None
        if known is None or known in (0, 1, -1):
            if isinstance(diagonal, Known):
                continue
            yield _found(f"A mask is cut by `{call.signature[:60]}`", call.place)
        else:
            yield _found(f"A mask is cut by `{call.signature[:60]}`", call.place, "error")


def _diagonal(call: Call) -> Value | None:
    value = call.argument("diagonal", 1 if call.receiver == "torch" else 0)
    if value is None:
        return Known(0)
    return Known(value.value) if isinstance(value, Known) else value


def _kernels(now: Program, was: Program) -> Iterator[Violation]:
    """Fused attention that is told neither a mask nor to be causal, and windows given to it."""
    masked = any(_model_calls(was, (*_BANDS, "masked_fill", "where")))
    for call in added(_model_calls(now, _KERNELS), _model_calls(was, _KERNELS), call_key):
        given = {keyword.arg for keyword in call.site.call.keywords}
        if "window_size" in given or "block_mask" in given:
            yield _found(f"Attention is given a window: `{call.signature[:70]}`", call.place)
        is_sdpa = call.name == "scaled_dot_product_attention"
        bare = not given & {"is_causal", "attn_mask"} and len(call.site.call.args) < 4
        if is_sdpa and bare and masked:
            yield _found("The fused attention has no mask and is not causal", call.place)


@remembered
def _model_calls(program: Program, names: tuple[str, ...]) -> list[Call]:
    """Such calls in model code or in functions beside it that make masks."""
    busy = {scope.source.file for scope in program.module_scopes()}
    return [
        call
        for call in program.called(names)
        if not call.is_dead and (call.in_model or call.site.scope.source.file in busy)
    ]


@remembered
def _blocks(program: Program) -> list[Call]:
    return [
        call
        for call in program.called(_BLOCKS)
        if call.in_model
        and any("att" in around.name.lower() for around in call.site.scope.around())
    ]


@remembered
def _thinned(program: Program) -> list[Fragment]:
    """Parts of keys and values: `k[:, :, ::2]`, `v[:, -64:]`."""
    regions = module_regions(program)
    return pieces(program, regions, _is_thinned, ast.Subscript)


def _is_thinned(node: ast.AST) -> bool:
    if partial_axis(node) not in {1, 2, -1} or not isinstance(node, ast.Subscript):
        return False
    base = node.value
    name = base.id if isinstance(base, ast.Name) else getattr(base, "attr", "")
    return name.lower() in _KEYS


@remembered
def _windows(program: Program) -> list[Fragment]:
    """Comparisons of distances between positions with a width."""
    regions = module_regions(program)
    return pieces(program, regions, _is_distance, ast.Compare)


def _is_distance(node: ast.AST) -> bool:
    match node:
        case ast.Compare(left=ast.BinOp(op=ast.Sub()), comparators=[other]):
            return not (isinstance(other, ast.Constant) and other.value == 0)
        case ast.Compare(left=ast.BinOp(op=ast.FloorDiv() | ast.Mod())):
            return True
        case ast.Compare(
            left=ast.Call(func=ast.Attribute(attr="abs"), args=[])
            | ast.Call(func=ast.Name(id="abs"))
        ):
            return True
        case _:
            return False


def _found(what: str, place: Place, severity: Severity = "warning") -> Violation:
    return violation(CODE, f"{what}; {_HELD}.", severity=severity, place=place)
