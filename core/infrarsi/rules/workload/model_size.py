"""W104: the model must stay.

Fewer layers, a smaller width, fewer heads or experts make every step cheaper, and train another
model. The numbers that shape the model are compared by name wherever they are set, and so are
the layers that modules are built from. A vocabulary that is only padded upwards is left to a run:
it trains the same model where the new entries are masked.

Mend it by restoring the number. To train another model on purpose, lock a new contract.
"""

import ast
from collections.abc import Iterable, Iterator

from infrarsi.contract import Fix, Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Call, Program
from infrarsi.reading.aliases import rank_alias
from infrarsi.reading.syntax import unparse
from infrarsi.reading.values import Known
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.fragments import Fragment, fresh
from infrarsi.rules.remembered import remembered
from infrarsi.rules.settings import ChangedSetting, changed_settings

CODE = "W104"
_SHAPES = {
    *("layer", "layers", "depth", "blocks", "head", "heads", "embd", "dim", "width", "hidden"),
    *("ffn", "ff", "ffw", "intermediate", "mlp", "expert", "experts", "topk", "embed", "vocab"),
    *("emb", "channels", "groups", "model"),
}
_OTHER = {
    *("lr", "rate", "dropout", "drop", "coef", "weight", "loss", "init", "std", "scale", "decay"),
    *("chunk", "checkpoint", "checkpointing", "compile", "wrap", "prefetch", "parallel", "name"),
    *("path", "dir", "file", "capacity", "seed", "log", "eval", "window", "bias", "norm", "eps"),
}
_LAYERS = {"Linear", "Embedding", "Conv1d", "Conv2d", "LayerNorm", "RMSNorm", "MultiheadAttention"}


def find(change: Change) -> Iterator[Violation]:
    """An error for a changed number of the model, a warning for layers built otherwise."""
    if change.sides is None:
        return
    now, was = change.sides
    sized = _once(entry for entry in changed_settings(now, was) if shapes_model(entry))
    for entry in sized:
        yield _resized(change, entry)
    if not sized:
        yield from _rebuilt(now, was)


def _once(entries: Iterable[ChangedSetting]) -> list[ChangedSetting]:
    """One entry a name and value: a constant that is handed on is one change."""
    return list({(entry.name, entry.now.value): entry for entry in reversed([*entries])}.values())


def shapes_model(entry: ChangedSetting) -> bool:
    """Whether a setting is, by its name and value, a number the model is built with."""
    value = entry.now.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if rank_alias("seq_len", entry.name) is not None or entry.words & _OTHER:
        return False
    return bool(entry.words & _SHAPES) or entry.name in {"top_k", "n_kv", "experts_per_token"}


def _resized(change: Change, entry: ChangedSetting) -> Violation:
    padded = "vocab" in entry.words and (entry.ratio or 0) > 1
    severity: Severity = "warning" if padded else "error"
    return violation(
        CODE,
        f"`{entry.now.path}` shapes the model and is {entry.now.value} instead of "
        f"{entry.was.value}; the contract holds the baseline's model.",
        severity=severity,
        place=entry.now.place,
        contract_place=entry.was.place,
        fixes=tuple(_restore(change, entry)),
    )


def _restore(change: Change, entry: ChangedSetting) -> Iterator[Fix]:
    title = f"Restore {entry.was.value}"
    fix = change.rewrite(entry.now.place, str(entry.was.value), title)
    if fix is not None:
        yield fix


def _rebuilt(now: Program, was: Program) -> Iterator[Violation]:
    """Layers kept under the same name with smaller numbers, and loops that build fewer."""
    before = dict(_layers(was))
    for target, call in _layers(now):
        old = before.get(target)
        if old is None or call.callee != old.callee:
            continue
        pairs = list(zip(_sizes(call), _sizes(old), strict=False))
        known = [(new, size) for new, size in pairs if new is not None and size is not None]
        if all(new == size for new, size in known):
            continue
        smaller = any(new < size for new, size in known)
        yield violation(
            CODE,
            f"`{target}` is built as `{_short(call)}` instead of `{_short(old)}`; the contract "
            "holds the baseline's model.",
            severity="error" if smaller else "warning",
            place=call.place,
            contract_place=old.place,
        )
    for piece in fresh(_counted(now), _counted(was)):
        yield violation(
            CODE,
            f"Modules are built in another number: `{piece.text}`; the contract holds the "
            "baseline's model.",
            severity="warning",
            place=piece.place,
        )


def _layers(program: Program) -> Iterator[tuple[str, Call]]:
    """Layers by the class and name they are kept under, numbered within one statement."""
    n_met: dict[str, int] = {}
    for call in program.called(_LAYERS):
        statement = call.site.scope.source.statement(call.site.call)
        owner = call.site.scope.parent
        if isinstance(statement, ast.Assign) and owner is not None:
            name = unparse(statement.targets[0]).removeprefix("self.")
            path = f"{owner.name}.{name}"
            n_met[path] = n_met.get(path, -1) + 1
            yield f"{path}[{n_met[path]}]" if n_met[path] else path, call


def _sizes(call: Call) -> list[int | None]:
    values = [call.program.evaluator.value(node, call.frame) for node in call.site.call.args]
    numbers = [value.value if isinstance(value, Known) else None for value in values]
    return [number if type(number) is int else None for number in numbers]


@remembered
def _counted(program: Program) -> list[Fragment]:
    """`range(n)` inside what builds a list of modules."""
    return [
        Fragment(program, call.site.scope, inner)
        for call in program.called(("ModuleList", "Sequential", "ModuleDict"))
        for inner in walk(call.site.call)
        if isinstance(inner, ast.Call)
        and isinstance(inner.func, ast.Name)
        and inner.func.id == "range"
    ]


def _short(call: Call) -> str:
    return f"{call.name}({call.signature.partition('(')[2]}"[:70]
