"""S410: code is plain source.

What is made at run time from text, decoded, unpickled, looked up under a computed name or
shipped in compiled form cannot be read by anybody, and so cannot be agreed to. Newly doing so is
looked for, and so are new compiled files. A kernel that is built from source in the workspace is
left to a run.

Mend it by writing the code out in a module and importing it.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.place import Place
from infrarsi.reading import Call, Program
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.fragments import Fragment, fresh
from infrarsi.rules.remembered import remembered
from infrarsi.rules.scope.everywhere import (
    all_pieces,
    calls_of,
    library_name,
    new_calls,
    one_a_line,
    shown,
    texts_in,
    warned,
)

CODE = "S410"
_RUN = ("exec", "builtins.exec")
_MAKE = (
    *("eval", "builtins.eval", "compile", "builtins.compile", "types.FunctionType"),
    *("types.CodeType", "__import__", "builtins.__import__", "importlib.import_module"),
    *("importlib.util.", "importlib.machinery.", "runpy.", "code.InteractiveInterpreter"),
    *("pickle.loads", "dill.loads", "cloudpickle.loads", "torch.package.PackageImporter"),
    *("importlib.__import__", "zipimport.", "imp.", "torch.jit.load", "torch.export.load"),
    *("torch.ops.load_library", "torch.classes.load_library", "numpy.ctypeslib.load_library"),
    *(
        "torch._inductor.aoti_load_package",
        "torch.utils.cpp_extension.",
        "ast.parse",
        "ast.unparse",
    ),
    *("importlib.reload", "codeop.", "torch._export.", "torch._C.import_ir_module"),
)
_CERTAIN = ("marshal.loads", "marshal.load", "types.CodeType", "types.FunctionType")
_DECODE = (
    *("base64.", "codecs.decode", "zlib.decompress", "bz2.decompress", "lzma.decompress"),
    *("binascii.", "bytes.fromhex", "marshal.", "gzip.decompress"),
)
_COMPILED = (
    *(".so", ".pyc", ".pyd", ".pyo", ".dll", ".dylib", ".o", ".a", ".whl", ".egg"),
    *(".cubin", ".fatbin", ".ptx", ".pt2", ".zip", ".pyz"),
)
_HELD = "the contract holds that code is plain source"


def find(change: Change) -> Iterator[Violation]:
    """An error for code from text or bytes, a warning for what may be read otherwise."""
    yield from one_a_line(_each(change))


def _each(change: Change) -> Iterator[Violation]:
    yield from _files(change)
    if change.sides is None:
        return
    now, was = change.sides
    decoding = list(new_calls(now, was, _DECODE))
    for call in new_calls(now, was, _RUN):
        if not now.project.is_overlay(call.site.call):
            severity: Severity = "warning" if _is_of_workspace(call) else "error"
            yield _found(f"`{shown(call.signature)}` runs code made from text", call, severity)
    for call in new_calls(now, was, (*_MAKE, *_CERTAIN)):
        certain = call.callee in _CERTAIN or (_is_eval(call) and _is_decoded(call, decoding))
        what = f"`{shown(call.signature)}` makes or loads code that cannot be read here"
        yield _found(what, call, "error" if certain else "warning")
    for call in decoding:
        if not call.callee.startswith("marshal"):
            yield _found(f"`{shown(call.signature)}` decodes what it hides", call, "warning")
    for piece in fresh(_computed(now, was), _computed(was, now)):
        what = f"`{shown(piece.written)}` looks something up under a computed name"
        yield warned(CODE, f"{what}; {_HELD}.", piece.place)


def _files(change: Change) -> Iterator[Violation]:
    """Compiled files that are new; other binary files only where they stand for code."""
    if change.was is None:
        return
    known = set(change.was.sources.paths())
    for path in change.now.sources.paths():
        if path in known or not path.endswith(_COMPILED) or "__pycache__" in path:
            continue
        severity: Severity = "error" if path.endswith((".pyc", ".pyd", ".pyo")) else "warning"
        place = Place(file=path, line=1, end_line=1, end_column=1)
        yield warned(CODE, f"{path} is new and is no source; {_HELD}.", place, severity)


def _is_of_workspace(call: Call) -> bool:
    """Whether what is run is named, and is source of the workspace."""
    names = [text for text in texts_in(call.site.call) if text.endswith(".py")]
    return any(call.program.sources.text(name) is not None for name in names)


def _is_eval(call: Call) -> bool:
    return call.callee.rpartition(".")[2] in {"eval", "compile"}


def _is_decoded(call: Call, decoding: list[Call]) -> bool:
    inner = set(walk(call.site.call))
    return any(other.site.call in inner for other in decoding)


@remembered
def _computed(program: Program, other: Program) -> list[Fragment]:
    """Attributes of libraries, and names of builtins, found by text that is put together."""
    found: list[Fragment] = []
    for call in calls_of(program, other, ("getattr", "setattr", "hasattr", "builtins.getattr")):
        match call.site.call.args:
            case [owner, name, *_] if _is_put_together(name):
                plain = isinstance(name, ast.JoinedStr)
                if not plain or library_name(program, owner, call.site.scope):
                    found.append(Fragment(program, call.site.scope, call.site.call))
            case _:
                pass
    return found + all_pieces(program, other, _is_builtins, ast.Subscript, ast.Attribute)


def _is_put_together(name: ast.expr) -> bool:
    match name:
        case ast.BinOp(op=ast.Add()) | ast.JoinedStr():
            return True
        case ast.Subscript(slice=ast.Slice()):
            return True
        case ast.Call(func=ast.Attribute(attr="join" | "decode" | "replace" | "format")):
            return True
        case ast.Call(func=ast.Name(id="chr")):
            return True
        case _:
            return False


def _is_builtins(node: ast.AST) -> bool:
    match node:
        case ast.Subscript(value=ast.Name(id="__builtins__")):
            return True
        case ast.Attribute(value=ast.Name(id="__builtins__")):
            return True
        case _:
            return False


def _found(what: str, call: Call, severity: Severity) -> Violation:
    return warned(CODE, f"{what}; {_HELD}.", call.place, severity)
