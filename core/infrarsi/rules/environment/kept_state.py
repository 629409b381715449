"""E504: a run leaves nothing behind that a later one uses.

Weights, gradients, batches or timings kept in a file, in shared memory or in a folder outside
the run make the second run look faster than any first run could be. Calls that newly write such
things are looked for, and files that are both written and read.

Mend it by keeping nothing between runs. Checkpoints the baseline writes are allowed.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Call, Program
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added
from infrarsi.rules.fragments import call_key
from infrarsi.rules.remembered import remembered

CODE = "E504"
_WRITES = {
    *("save", "savez", "tofile", "dump", "write_bytes", "write_text", "save_file", "to_csv"),
    *("save_pretrained", "save_checkpoint", "save_state", "memmap", "SharedMemory", "mkstemp"),
    *("open_memmap", "put", "setxattr", "savez_compressed", "copyfile", "move", "symlink"),
}
_READS = {
    *("load", "fromfile", "read_bytes", "read_text", "load_file", "memmap", "exists", "is_file"),
    *(
        "isfile",
        "load_checkpoint",
        "load_state",
        "glob",
        "iglob",
        "listdir",
        "scandir",
        "from_file",
    ),
}
_SAVES = {"save", "savez", "tofile", "dump", "write_bytes", "save_file", "savez_compressed"}
_LOADS = {"load", "fromfile", "read_bytes", "load_file", "memmap", "frombuffer"}
_OUTSIDE = {"gettempdir", "mkdtemp", "expanduser", "home", "user_cache_dir", "NamedTemporaryFile"}
_STORES = {
    "joblib.Memory",
    "shelve.open",
    "sqlite3.connect",
    "diskcache.Cache",
    "lmdb.open",
    "dbm.open",
}
_PLACES = ("/" + "tmp", "/dev/" + "shm", "/var/" + "tmp", "~/", "TMPDIR", ".cache")
_HELD = "the contract holds that a run leaves nothing behind that a later one uses"


def find(change: Change) -> Iterator[Violation]:
    """An error for what is both written and read, a warning for what is only written.

    Code that newly names a place outside the run's folder, writes there or elsewhere and reads as
    well, keeps state whatever the names of its paths.
    """
    if change.sides is None:
        return
    now, was = change.sides
    writes = list(added(_writing(now), _writing(was), call_key))
    reads = list(added(_reading(now), _reading(was), call_key))
    read_names = {name for call in reads for name in _names(call)}
    outside = list(added(_outside(now), _outside(was), call_key))
    keeps = bool(outside) and any(call.name in _LOADS for call in reads)
    for call in writes:
        both = bool(_names(call) & read_names) or (keeps and call.name in _SAVES)
        if call.name == "open" and not both and not _opens(call, "b"):
            continue
        severity: Severity = "error" if both else "warning"
        what = "is written and read back" if both else "is newly written"
        yield _found(f"What `{call.signature[:60]}` keeps {what}", call, severity)
    for call in added(_stores(now), _stores(was), call_key):
        yield _found(f"`{call.signature[:60]}` keeps results between runs", call, "warning")
    if not writes:
        for call in outside:
            yield _found(
                f"`{call.signature[:60]}` reaches outside the run's folder", call, "warning"
            )


@remembered
def _writing(program: Program) -> list[Call]:
    return [
        call
        for call in program.called((*_WRITES, "open"))
        if (call.name in _WRITES or _opens(call, "wax+")) and _is_io(call)
    ]


@remembered
def _reading(program: Program) -> list[Call]:
    return [
        call
        for call in program.called((*_READS, "open"))
        if call.name in _READS or _opens(call, "r")
    ]


def _is_io(call: Call) -> bool:
    """Whether a name such as `put` or `save` belongs to something that keeps."""
    if call.name in {"put", "move", "copyfile", "symlink"}:
        return call.callee.startswith(("shutil", "os", "lmdb", "redis"))
    if call.name == "dump":
        return call.callee.startswith(("pickle", "json", "joblib", "torch", "marshal", "ast"))
    return True


def _opens(call: Call, modes: str) -> bool:
    if call.name != "open" or call.callee in {"shelve.open", "lmdb.open"}:
        return False
    is_method = isinstance(call.site.call.func, ast.Attribute) and not call.receiver.endswith("io")
    mode = call.argument_node("mode", 0 if is_method else 1)
    text = mode.value if isinstance(mode, ast.Constant) and isinstance(mode.value, str) else "r"
    return any(letter in text for letter in modes)


def _names(call: Call) -> set[str]:
    """Paths and names of paths among a call's arguments and what it is called on."""
    found: set[str] = set()
    for node in walk(call.site.call):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) > 3:
            found.add(node.value)
        elif isinstance(node, ast.Name) and any(
            word in node.id.lower() for word in ("path", "file", "cache", "dump", "dir", "store")
        ):
            found.add(node.id)
    return found


@remembered
def _stores(program: Program) -> list[Call]:
    calls = program.called(name.rpartition(".")[2] for name in _STORES)
    return [call for call in calls if call.callee in _STORES and not call.is_dead]


@remembered
def _outside(program: Program) -> list[Call]:
    """Calls that name a place outside the run's folder."""
    files = [
        file
        for file, source in program.project.files.items()
        if any(place in source.text for place in _PLACES)
    ]
    named = [
        call
        for call in (program.calls if files else ())
        if call.site.scope.source.file in files and any(map(_is_outside, call.site.call.args))
    ]
    return [call for call in (*program.called(_OUTSIDE), *named) if not call.is_dead]


def _is_outside(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.startswith(_PLACES)
    )


def _found(what: str, call: Call, severity: Severity) -> Violation:
    return violation(CODE, f"{what}; {_HELD}.", severity=severity, place=call.place)
