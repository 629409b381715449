"""Where a job's number of layers is written, told by its name alone.

A guess that serves runs which only ask whether something runs; nothing is claimed on it.
"""

import ast
import re
from collections.abc import Iterable, Iterator

from infrarsi.knobs import Binding
from infrarsi.place import Place
from infrarsi.reading.sources import Sources

_NAME = re.compile(
    r"(n|num|number_of)_?(hidden_)?(layers?|blocks?)|layers|depth|model_depth", re.IGNORECASE
)


def depth_bindings(files: Iterable[str], sources: Sources) -> list[tuple[int, Binding]]:
    """The whole numbers with such a name, each with how another would be written.

    Assigned constants, parameters' defaults and argparse defaults are found; a file that does not
    parse has none.
    """
    return [found for file in files for found in _in_file(file, sources.text(file) or "")]


def _in_file(file: str, text: str) -> Iterator[tuple[int, Binding]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield from _named(file, "constant", name, value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant() as value):
                yield from _named(file, "constant", name, value)
            case ast.Call(
                func=ast.Attribute(attr="add_argument"), args=[ast.Constant(value=str(name)), *_]
            ):
                given = next((k.value for k in node.keywords if k.arg == "default"), None)
                if given is not None:
                    yield from _named(file, "argument_default", name, given)
            case _:
                pass


def _named(file: str, carrier: str, name: str, value: ast.expr) -> Iterator[tuple[int, Binding]]:
    if not _NAME.fullmatch(name.replace("-", "_").strip("_")):
        return
    if not isinstance(value, ast.Constant) or type(value.value) is not int:
        return
    place = Place(
        file=file,
        line=value.lineno,
        column=value.col_offset + 1,
        end_line=value.end_lineno or value.lineno,
        end_column=(value.end_col_offset or value.col_offset) + 1,
    )
    made = "constant" if carrier == "constant" else "argument_default"
    yield value.value, Binding(carrier=made, name=name, file=file, place=place)
