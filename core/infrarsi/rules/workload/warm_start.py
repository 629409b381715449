"""W107: training starts from the baseline's initial weights.

Loading finished or pretrained weights, resuming a checkpoint, or writing learned statistics into
the parameters makes the loss fall without training. What loads or copies weights and was not
there before is looked for.

Mend it by taking the loading out. Restoring a snapshot made after building the model, for a
warm-up that leaves no trace, needs a run to be told apart.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Call, Program
from infrarsi.reading.syntax import unparse
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added
from infrarsi.rules.fragments import call_key
from infrarsi.rules.regions import calls_in, data_regions
from infrarsi.rules.settings import changed_settings

CODE = "W107"
_FILES = {
    *("torch.load", "numpy.load", "numpy.fromfile", "numpy.memmap", "pickle.load", "joblib.load"),
    *("torch.from_file", "safetensors.torch.load_file"),
    *("torch.hub.load", "torch.hub.load_state_dict_from_url", "torch.jit.load"),
    *("torch.distributed.checkpoint.load", "accelerator.load_state", "load_file", "load_model"),
    *("load_checkpoint", "resume_from_checkpoint", "load_pretrained", "load_weights"),
}
_WRITES = {
    "copy_",
    "load_state_dict",
    "set_",
    "swap_tensors",
    "set_state_dict",
    "vector_to_parameters",
}
_WEIGHTS = ("weight", "param", "bias", ".data", "model", "net", "head", "embed")
_NAMES = {"resume", "init_from", "checkpoint", "pretrained", "ckpt", "warmstart", "snapshot"}
_NOT_NAMES = {"checkpointing", "every", "interval", "freq", "steps", "save"}


def find(change: Change) -> Iterator[Violation]:
    """An error for weights loaded into the model, a warning for what may carry weights."""
    if change.sides is None:
        return
    now, was = change.sides
    data = {call.site.call for call in calls_in(now, data_regions(now))}
    for call in added(_loads(now), _loads(was), call_key):
        certain = _fills_model(call)
        if call.site.call in data and not certain:
            continue
        yield _found(call, "Weights may come from elsewhere" if not certain else "", certain)
    for call in added(_writes(now), _writes(was), call_key):
        if not _loads_file(call):
            yield _found(call, "Parameters are overwritten before or between updates", False)
    for entry in changed_settings(now, was):
        named = bool(entry.words & _NAMES) or entry.name in _NAMES
        if named and not entry.words & _NOT_NAMES and entry.now.value:
            yield violation(
                CODE,
                f"`{entry.now.path}` is {entry.now.value!r} instead of {entry.was.value!r}; the "
                "contract holds the baseline's initial weights.",
                place=entry.now.place,
                contract_place=entry.was.place,
            )


def _loads(program: Program) -> list[Call]:
    found = list(program.named(*_FILES))
    found += [
        call
        for call in program.named("from_pretrained")
        if not any(word in call.callee.lower() for word in ("tokenizer", "config", "processor"))
    ]
    return found


def _writes(program: Program) -> list[Call]:
    """Calls that write into parameters; those of the model's own code apart."""
    return [
        call
        for call in program.called(_WRITES)
        if not call.in_model
        and not call.is_dead
        and "optim" not in call.receiver.lower()
        and any(word in _target(call).lower() for word in _WEIGHTS)
    ]


def _target(call: Call) -> str:
    func = call.site.call.func
    return unparse(func.value) if isinstance(func, ast.Attribute) else "param"


def _fills_model(call: Call) -> bool:
    if call.name == "from_pretrained":
        return True
    around = call.site.scope.source.ancestors(call.site.call)
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "load_state_dict"
        and "optim" not in unparse(node.func.value).lower()
        for node in around
    )


def _loads_file(call: Call) -> bool:
    """Whether a write takes a file's content directly, which is told at the load itself."""
    return any(
        isinstance(inner, ast.Call) and unparse(inner.func) in _FILES
        for argument in call.site.call.args
        for inner in walk(argument)
    )


def _found(call: Call, what: str, certain: bool) -> Violation:
    severity: Severity = "error" if certain else "warning"
    what = what or "The model's weights are loaded"
    return violation(
        CODE,
        f"{what} (`{call.signature[:60]}`); the contract holds the baseline's initial weights.",
        severity=severity,
        place=call.place,
    )
