"""S416: logs and result files of earlier runs are not edited.

What earlier runs wrote is what later ones are compared with. Writing over, deleting or renaming
such files from the training code, rewriting a file that is read first, and result files that were
edited by hand are looked for. Appending to the log of the own run is allowed.

Mend it by leaving what is there and writing to a new file.
"""

import ast
import re
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.place import Place
from infrarsi.reading import Call, Program
from infrarsi.reading.syntax import unparse
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added
from infrarsi.rules.fragments import call_key
from infrarsi.rules.remembered import remembered
from infrarsi.rules.scope.everywhere import called, calls_of, one_a_line, shown, warned

CODE = "S416"
_NAMES = re.compile(
    r"(result|metric|history|\blog|_log|logs|loss(es)?|timing|times|bench|baseline|evidence|report|"
    r"record|rank|stats|summary|events|curve|progress|perf|score)[^/]*(\.[a-z]+)?$",
    re.IGNORECASE,
)
_DATA = (".csv", ".json", ".jsonl", ".log", ".tsv", ".txt", ".ndjson", ".out")
_GONE = (
    *("os.remove", "os.unlink", "os.rename", "os.replace", "shutil.move", "shutil.rmtree"),
    *("os.truncate", "os.ftruncate", "shutil.copyfile", "shutil.copy"),
)
_METHODS = {
    "unlink",
    "rename",
    "replace",
    "write_text",
    "write_bytes",
    "truncate",
    "to_csv",
    "to_json",
}
_READS = {"read_text", "read_csv", "reader", "DictReader", "readlines", "glob", "rglob", "iglob"}
_HELD = "the contract holds that results of earlier runs are not edited"


def find(change: Change) -> Iterator[Violation]:
    """An error for a file that is read and written over, a warning for others."""
    yield from one_a_line(_each(change))


def _each(change: Change) -> Iterator[Violation]:
    yield from _by_hand(change)
    if change.sides is None:
        return
    now, was = change.sides
    writes = list(added(_writing(now, was), _writing(was, now), call_key))
    if not writes:
        return
    reads = {name for call in _reading(now, was) for name in _paths(call)}
    for call in writes:
        names = _paths(call)
        again = bool(names & reads) and any(_NAMES.search(name) for name in names)
        kept = any(_is_kept(change, was, name) for name in names)
        if again or kept or _listed(call):
            certain = again and kept and _is_text(names & reads)
            severity: Severity = "error" if certain else "warning"
            yield warned(
                CODE,
                f"`{shown(call.signature)}` writes over what earlier runs left; {_HELD}.",
                call.place,
                severity,
            )


def _by_hand(change: Change) -> Iterator[Violation]:
    """Result files of the workspace with another text than in the baseline."""
    if change.was is None:
        return
    for path in change.was.sources.paths():
        name = path.rpartition("/")[2]
        if not name.endswith(_DATA) or not _NAMES.search(name.rpartition(".")[0]):
            continue
        if path in (*change.now.reading.documents, *change.was.reading.documents):
            continue
        before, present = change.was.sources.text(path), change.now.sources.text(path)
        if before is not None and present is not None and not present.startswith(before):
            yield warned(
                CODE,
                f"{path} holds other results than the baseline's; {_HELD}.",
                Place(file=path, line=1, end_line=1, end_column=1),
            )


@remembered
def _writing(program: Program, other: Program) -> list[Call]:
    """Calls that write over, delete or rename a file."""
    opened = [call for call in called(program, other, ("open",)) if _mode(call) & set("wx+")]
    others = [call for call in called(program, other, _METHODS) if _is_of_path(call)]
    every = [*opened, *others, *calls_of(program, other, _GONE)]
    return [call for call in every if not call.is_dead]


def _is_of_path(call: Call) -> bool:
    if call.name in {"replace", "rename"}:
        return "path" in call.receiver.lower() or "Path" in call.callee
    return isinstance(call.site.call.func, ast.Attribute)


@remembered
def _reading(program: Program, other: Program) -> list[Call]:
    opened = [call for call in called(program, other, ("open",)) if _mode(call) & set("r+")]
    return [*opened, *called(program, other, _READS)]


def _mode(call: Call) -> set[str]:
    is_method = isinstance(call.site.call.func, ast.Attribute)
    node = call.argument_node("mode", 0 if is_method else 1)
    text = node.value if isinstance(node, ast.Constant) else None
    return set(text) if isinstance(text, str) else {"r"}


def _paths(call: Call) -> set[str]:
    """Texts and names among what a call is made on and with."""
    spelled = [call.site.call.func, *call.site.call.args[:2]]
    found: set[str] = set()
    for part in spelled:
        for node in walk(part):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
            elif isinstance(node, ast.Name):
                value = call.program.evaluator.value(node, call.frame)
                held = getattr(value, "value", None)
                found.add(held if isinstance(held, str) else node.id)
    return found - {"w", "r", "a", "open", "Path", "os", "json", "a+", "r+", "w+", "shutil"}


def _is_text(names: set[str]) -> bool:
    return any("." in name or "/" in name for name in names)


def _is_kept(change: Change, was: Program, name: str) -> bool:
    """Whether a file of that name is in the workspace, or the baseline writes it."""
    if not _NAMES.search(name):
        return False
    if was.sources.text(name) is not None:
        return True
    return any(name in _paths(call) for call in was.called(("open", "write_text"))) and (
        "." in name or "/" in name
    )


def _listed(call: Call) -> bool:
    """Whether what is written comes out of a listing of files."""
    names = {n.id for n in walk(call.site.call.func) if isinstance(n, ast.Name)} | {
        n.id for a in call.site.call.args[:1] for n in walk(a) if isinstance(n, ast.Name)
    }
    for scope in call.site.scope.around():
        for name in names & set(scope.events):
            for event in scope.events[name]:
                text = unparse(event.value) if event.value is not None else ""
                if event.kind == "loop" and re.search(r"glob|iterdir|listdir|scandir", text):
                    return True
    return False
