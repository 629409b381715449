"""S408: contract, tolerances and suppressions change only by locking again.

What may be edited, how long is measured and how sure a promotion must be were agreed when the
contract was locked. A change of these in `infrarsi.toml` does not count until `infrarsi lock` is
run, and code that writes to InfraRSI's own files is no training code.

Mend it by restoring the setting, or lock again to agree to it.
"""

import ast
import re
from collections.abc import Iterator

from infrarsi.contract import CONFIG_PATH, JobConfig, TaskContract, Violation, place_of
from infrarsi.contract.config import parse_config
from infrarsi.errors import ConfigError
from infrarsi.reading import Program, Sources
from infrarsi.rules.change import Change
from infrarsi.rules.fragments import Fragment, fresh
from infrarsi.rules.remembered import remembered
from infrarsi.rules.scope.everywhere import all_pieces, differing, one_a_line, shown, warned

CODE = "S408"
_FILES = re.compile(r"infrarsi\.toml|\.infrarsi\b|contract\.lock")
_COMMENT = re.compile(r"#\s*infrarsi\s*:\s*(ignore|off|allow|disable|skip|accept|ok)\b.*")
_HELD = "the contract changes only by locking again"


def find(change: Change) -> Iterator[Violation]:
    """An error for a setting of the job that is another than what was locked."""
    yield from one_a_line(_each(change))


def _each(change: Change) -> Iterator[Violation]:
    yield from _settings(change)
    if change.sides is None:
        return
    now, was = change.sides
    for piece in fresh(_written(now, was), _written(was, now)):
        yield warned(
            CODE,
            f"`{shown(piece.written)}` names files of InfraRSI in the code; {_HELD}.",
            piece.place,
            "error",
        )
    yield from _comments(now, was)


def _settings(change: Change) -> Iterator[Violation]:
    now = _job(change.sources, change.contract.job)
    was = _job(change.was.sources, change.contract.job) if change.was is not None else None
    text = change.sources.text(CONFIG_PATH)
    if now is None or text is None:
        return
    for key, held, present in _weakened(now, was, change.contract):
        yield warned(
            CODE,
            f"`{key}` of job `{now.name}` is {present}; the contract holds {held} and changes only "
            "by locking again.",
            place_of(text, now.name, key),
            "error",
        )


def _weakened(
    now: JobConfig, was: JobConfig | None, contract: TaskContract
) -> Iterator[tuple[str, str, str]]:
    """Keys that are written and are neither as locked nor as in the baseline."""
    given = now.model_fields_set
    scope = contract.scope
    if "protocol" in given and now.protocol not in (contract.protocol, was and was.protocol):
        yield "protocol", str(contract.protocol), str(now.protocol)
    opened = set(now.editable) - set(scope.editable) - set(was.editable if was else ())
    if now.editable and opened:
        yield "editable", f"{sorted(scope.editable)}", f"opened to {sorted(opened)}"
    freed = set(scope.locked) - set(now.locked)
    if now.locked and freed and (was is None or set(was.locked) - set(now.locked)):
        yield "locked", f"{sorted(scope.locked)}", f"without {sorted(freed)}"
    for name, value in now.facts.items():
        agreed = contract.fact(name)
        if agreed is None or agreed.value is None or agreed.value == value:
            continue
        if was is None or was.facts.get(name) != value:
            yield "facts", f"{name} = {agreed.value}", f"{name} = {value}"


def _job(sources: Sources, name: str) -> JobConfig | None:
    text = sources.text(CONFIG_PATH)
    if text is None:
        return None
    try:
        return parse_config(text).jobs.get(name)
    except ConfigError:
        return None


@remembered
def _written(program: Program, other: Program) -> list[Fragment]:
    found = all_pieces(program, other, _names_files, ast.Constant)
    return [
        piece
        for piece in found
        if not isinstance(piece.scope.source.parents.get(piece.node), ast.Expr)
    ]


def _names_files(node: ast.AST) -> bool:
    value = node.value if isinstance(node, ast.Constant) else None
    return isinstance(value, str) and len(value) < 200 and _FILES.search(value) is not None


def _comments(now: Program, was: Program) -> Iterator[Violation]:
    """Comments that would have findings left out."""
    before = {text for text, _ in _suppressions(was, now)}
    for text, (file, line) in _suppressions(now, was):
        if text not in before:
            source = now.project.files[file]
            node = next((n for n in source.tree.body if n.lineno <= line), source.tree)
            place = source.place(node) if isinstance(node, ast.stmt) else None
            place = place and place.model_copy(
                update={
                    "line": line,
                    "column": 1,
                    "end_line": line,
                    "end_column": len(source.line(line)) + 1,
                }
            )
            yield warned(
                CODE, f"`{shown(text)}` asks for findings to be left out; {_HELD}.", place, "error"
            )


@remembered
def _suppressions(program: Program, other: Program) -> list[tuple[str, tuple[str, int]]]:
    found: list[tuple[str, tuple[str, int]]] = []
    for scope, _ in differing(program, other):
        source, file = scope.source, scope.source.file
        if "infrarsi" not in source.text:
            continue
        for number, line in enumerate(source.text.split("\n"), 1):
            match = _COMMENT.search(line)
            if match is not None:
                found.append((match[0], (file, number)))
    return found
