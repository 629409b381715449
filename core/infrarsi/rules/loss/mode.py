"""L220: the model trains in training mode.

In evaluation mode dropout is off and batch statistics stand still: less work, another training.

Mend it by `model.train()` after each evaluation and before the loop.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Call, Program
from infrarsi.reading.flow import is_model
from infrarsi.reading.syntax import unparse
from infrarsi.reading.values import Known
from infrarsi.rules.change import Change
from infrarsi.rules.difference import altered

CODE = "L220"
_NORMS = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "InstanceNorm1d")


def find(change: Change) -> Iterator[Violation]:
    """An error where the model is left in evaluation mode, a warning for other statistics."""
    if change.sides is None:
        return
    now, was = change.sides
    left, held = _left_in_evaluation(now), {_where(call) for call in _left_in_evaluation(was)}
    for call in left:
        if _where(call) not in held:
            certain = not call.conditions
            what = f"`{call.receiver[:40]}` is put into evaluation mode and left there"
            yield _finding(what, call.place, certain)
            return
    held_switches = sum(_is_undecided(call) for call in was.named("train"))
    switches = [call for call in now.named("train") if _is_undecided(call)]
    if len(switches) > held_switches:
        yield _finding("Training mode is switched by a condition", switches[-1].place, False)
    writes, writes_held = _training_writes(now), _training_writes(was)
    if len(writes) > len(writes_held):
        yield _finding("The training flag is switched off", writes[-1], certain=True)
    for pair in altered(now.named(*_NORMS), was.named(*_NORMS)):
        yield _finding("Batch statistics are kept otherwise", pair.now.place, certain=False)
        return


def _where(call: Call) -> str:
    return call.site.scope.name


def _left_in_evaluation(program: Program) -> list[Call]:
    """Switches to evaluation that no switch back follows, in their function or in the step."""
    calls = [call for call in program.named("eval", "train") if _is_of_model(program, call)]
    off = [call for call in calls if _switches_off(call)]
    on = [call for call in calls if not _switches_off(call)]
    return [call for call in off if not any(_follows(back, call) for back in on)]


def _follows(back: Call, call: Call) -> bool:
    if back.site.scope is call.site.scope:
        return back.site.call.lineno >= call.site.call.lineno or (back.in_step and call.in_step)
    return back.in_step


def _switches_off(call: Call) -> bool:
    if call.name == "eval":
        return True
    mode = call.argument("mode", 0)
    return isinstance(mode, Known) and not mode.value


def _is_undecided(call: Call) -> bool:
    mode = call.argument("mode", 0)
    return mode is not None and not isinstance(mode, Known) and _is_of_model(call.program, call)


def _is_of_model(program: Program, call: Call) -> bool:
    func = call.site.call.func
    if not isinstance(func, ast.Attribute):
        return False
    if is_model(program.evaluator, program.evaluator.value(func.value, call.frame)):
        return True
    name = unparse(func.value).rpartition(".")[2].lower()
    return "model" in name or name in {"net", "network", "ddp", "gpt", "raw"}


def _training_writes(program: Program) -> list[Place]:
    return [
        scope.source.place(event.node)
        for scope, path in program.project.attribute_writes.get("training", [])
        for event in scope.events[path]
        if isinstance(event.value, ast.Constant) and not event.value.value
    ]


def _finding(what: str, place: Place, certain: bool) -> Violation:
    text = f"{what}; the contract holds training in training mode."
    return violation(CODE, text, severity="error" if certain else "warning", place=place)
