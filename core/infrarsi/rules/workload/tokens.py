"""W110: tokenizer and vocabulary stay.

Another tokenizer, or rows mapped to fewer symbols, change what a token is: loss and tokens per
second can no longer be compared. What names or builds the tokenizer is compared, and mapping of
token ids that was not there is looked for.

Mend it by restoring tokenizer and vocabulary.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Call, Program
from infrarsi.reading.scopes import Function
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added as added_calls
from infrarsi.rules.difference import altered, callee
from infrarsi.rules.fragments import Fragment, call_key, fresh, pieces
from infrarsi.rules.regions import calls_in, data_regions, fetch_scopes, step_regions
from infrarsi.rules.remembered import remembered
from infrarsi.rules.settings import changed_settings

CODE = "W110"
_NAMES = {"tokenizer", "vocab", "encoding", "bpe", "sentencepiece", "tokeniser"}
_BUILD = {"get_encoding", "from_file", "SentencePieceProcessor", "encode", "encode_ordinary"}
_MAPS = {"searchsorted", "unique", "bucketize", "clamp", "clip", "remainder", "fmod", "translate"}


def find(change: Change) -> Iterator[Violation]:
    """An error for another tokenizer by name, a warning where ids may be mapped."""
    if change.sides is None:
        return
    now, was = change.sides
    for entry in changed_settings(now, was):
        smaller = (entry.ratio or 1) < 1 and "vocab" in entry.words
        if entry.words & _NAMES and (isinstance(entry.now.value, str) or smaller):
            yield violation(
                CODE,
                f"`{entry.now.path}` is {entry.now.value!r} instead of {entry.was.value!r}; the "
                "contract holds tokenizer and vocabulary.",
                place=entry.now.place,
                contract_place=entry.was.place,
            )
    yield from _built(now, was)
    yield from _reduced(now, was)
    for call in added_calls(_maps(now), _maps(was), callee):
        yield _found(f"Token ids may be mapped by `{call.signature[:60]}`", call)


def _reduced(now: Program, was: Program) -> Iterator[Violation]:
    """Remainders newly taken where rows are made."""
    for piece in fresh(_remainders(now), _remainders(was)):
        yield violation(
            CODE,
            f"Token ids may be mapped by `{piece.text[:60]}`; the contract holds tokenizer and "
            "vocabulary.",
            severity="warning",
            place=piece.place,
        )


@remembered
def _remainders(program: Program) -> list[Fragment]:
    def takes(node: ast.AST) -> bool:
        return (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Mod)
            and not isinstance(node.left, ast.Constant)
        )

    found = pieces(program, data_regions(program), takes, ast.BinOp)
    return [piece for piece in found if "len(" not in piece.written]


def _built(now: Program, was: Program) -> Iterator[Violation]:
    for pair in altered(_tokenizers(now), _tokenizers(was)):
        if call_key(pair.now) != call_key(pair.was):
            severity: Severity = "error" if _names_another(pair.now, pair.was) else "warning"
            yield violation(
                CODE,
                f"The text is encoded by `{pair.now.signature[:60]}` instead of "
                f"`{pair.was.signature[:60]}`; the contract holds tokenizer and vocabulary.",
                severity=severity,
                place=pair.now.place,
                contract_place=pair.was.place,
            )


def _names_another(now: Call, was: Call) -> bool:
    return _texts(now) != _texts(was)


def _texts(call: Call) -> list[str]:
    return [
        argument.value
        for argument in call.site.call.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


@remembered
def _tokenizers(program: Program) -> list[Call]:
    return [
        call
        for call in program.called((*_BUILD, "from_pretrained"))
        if not call.is_dead and (call.name in _BUILD or "okenizer" in call.callee)
    ]


@remembered
def _maps(program: Program) -> list[Call]:
    """Mapping calls where rows are made, or in the function that trains, model code apart."""
    regions = [*data_regions(program), *step_regions(program)]
    training = program.work.training
    if training is not None and training.update is not None:
        scope = training.update.scope
        regions.append((scope, scope.node))
    return [
        call
        for call in calls_in(program, tuple(regions))
        if call.name in _MAPS and not call.in_model and not _in_module(call)
    ]


def _in_module(call: Call) -> bool:
    """Whether the call belongs to another function of a file that also trains."""
    training = call.program.work.training
    scope = call.site.scope
    if training is None or training.update is None:
        return False
    trains = training.update.scope
    if scope.source is not trains.source or scope is trains:
        return False
    return isinstance(scope.node, Function) and scope not in fetch_scopes(call.program)


def _found(what: str, call: Call) -> Violation:
    return violation(
        CODE,
        f"{what}; the contract holds tokenizer and vocabulary.",
        severity="warning",
        place=call.place,
    )
