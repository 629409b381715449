"""W112: evaluation must stay as frequent and as thorough.

Evaluating more rarely or on fewer rows saves time that belongs to the job. Numbers that say how
often and on how much are compared by name, and the evaluation's calls by where they stand.
Fewer and larger evaluation batches of the same rows are allowed.

Mend it by restoring the number or the call.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Call, Program
from infrarsi.reading.aliases import rank_alias
from infrarsi.rules.change import Change
from infrarsi.rules.fragments import new_conditions
from infrarsi.rules.settings import ChangedSetting, changed_settings

CODE = "W112"
_EVAL = {"eval", "evaluation", "val", "valid", "validation", "test"}
_OFTEN = {"every", "interval", "freq", "frequency", "steps", "period", "iter"}
_ROWS = {"batch", "bs", "size", "rows"}
_OTHER = {"loss", "path", "dir", "file", "split", "fraction", "name", "seed", "data"}
_CALLS = ("evaluate", "validate", "estimate_loss", "run_eval", "eval_loop", "evaluation_loop")


def find(change: Change) -> Iterator[Violation]:
    """An error where evaluation is rarer, a warning where it may be on fewer rows."""
    if change.sides is None:
        return
    now, was = change.sides
    entries = [entry for entry in changed_settings(now, was) if _is_of_evaluation(entry)]
    yield from _numbers(entries, _batch_ratio(change))
    yield from _calls(now, was)


def _is_of_evaluation(entry: ChangedSetting) -> bool:
    is_named = bool(entry.words & _EVAL) and not entry.words & _OTHER
    return is_named and entry.ratio is not None


def _batch_ratio(change: Change) -> float:
    """By what the micro-batch, which evaluation may use as well, was multiplied."""
    now, was = change.count(change.fact("micro_batch")), change.count(change.agreed("micro_batch"))
    return now / was if now and was else _named_ratio(change)


def _named_ratio(change: Change) -> float:
    now, was = change.sides or (change.now, change.now)
    for entry in changed_settings(now, was):
        if rank_alias("micro_batch", entry.name) is not None and not entry.words & _EVAL:
            return entry.ratio or 1.0
    return 1.0


def _numbers(entries: list[ChangedSetting], batch_ratio: float) -> Iterator[Violation]:
    product = 1.0
    amounts = [entry for entry in entries if not entry.words & _OFTEN or entry.words & {"iters"}]
    for entry in amounts:
        product *= entry.ratio or 1.0
    has_rows = any(entry.words & _ROWS for entry in amounts)
    for entry in entries:
        if entry in amounts and any(abs(product * r - 1.0) < 1e-9 for r in (1.0, batch_ratio)):
            continue
        certain = entry not in amounts or not has_rows
        yield violation(
            CODE,
            f"`{entry.now.path}` is {entry.now.value} instead of {entry.was.value}; the contract "
            "holds evaluation as often and on as many rows as in the baseline.",
            severity="error" if certain and entry not in amounts else "warning",
            place=entry.now.place,
            contract_place=entry.was.place,
        )


def _calls(now: Program, was: Program) -> Iterator[Violation]:
    """Evaluation that is called no more, or under other conditions."""
    after, before = list(_evaluations(now)), list(_evaluations(was))
    if before and not after:
        yield violation(
            CODE,
            f"`{before[0].site.name}` is called no more; the contract holds evaluation as often "
            "and on as many rows as in the baseline.",
            severity="warning",
            place=_loop_place(now),
            contract_place=before[0].place,
        )
    for call, test in new_conditions(after, before) if before else ():
        yield violation(
            CODE,
            f"Evaluation now stands under `{test.text[:60]}`; the contract holds it as often as in "
            "the baseline.",
            severity="warning",
            place=call.place,
            contract_place=before[0].place,
        )


def _evaluations(program: Program) -> Iterator[Call]:
    for call in program.called((*_CALLS, *(f"_{name}" for name in _CALLS))):
        if not call.is_dead:
            yield call


def _loop_place(program: Program) -> Place | None:
    """The head of the update loop."""
    training = program.work.training
    loop = training.update if training is not None else None
    if loop is None:
        return None
    head = loop.node.test if isinstance(loop.node, ast.While) else loop.node.iter
    return loop.scope.source.place(head)
