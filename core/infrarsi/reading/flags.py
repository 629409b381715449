"""Flags of a launch line without a parser that lists them: names, texts, and their conversion.

For the command lines that are made from functions and dataclasses (click, typer, tyro, fire,
`HfArgumentParser`, jsonargparse); `options` reads argparse's own.
"""

import ast
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infrarsi.frozen import Scalar
from infrarsi.reading.frames import Frame
from infrarsi.reading.values import Known, Origin, Symbol, Unknown, Value

if TYPE_CHECKING:
    from infrarsi.reading.evaluate import Evaluator

_TRUE = {"true", "yes", "on", "1", "t", "y"}
_FALSE = {"false", "no", "off", "0", "f", "n"}
_KINDS = {
    "builtins.int": int,
    "builtins.float": float,
    "builtins.str": str,
    "builtins.bool": bool,
    "click.INT": int,
    "click.FLOAT": float,
    "click.STRING": str,
    "click.BOOL": bool,
    "click.Path": str,
    "pathlib.Path": str,
}


@dataclass(frozen=True)
class Flag:
    """One flag as it is written, and its text; None where it stands alone."""

    written: str
    text: str | None


def given_flags(args: tuple[str, ...], bare: Collection[str] = ()) -> dict[str, Flag]:
    """All flags by their plain name (`--a.batch-size` as `a.batch_size`), the last of each.

    A flag whose plain name is in `bare` takes no word after it.
    """
    found: dict[str, Flag] = {}
    index = 0
    while index < len(args):
        word = args[index]
        index += 1
        written, equals, text = word.partition("=")
        if not re.fullmatch(r"--?[A-Za-z][\w.-]*", written):
            continue
        name = plain_name(written)
        value: str | None = text if equals else None
        following = args[index] if index < len(args) else None
        if not equals and name not in bare and following is not None and not _is_flag(following):
            value = following
            index += 1
        found[name] = Flag(written, value)
    return found


def positional_words(args: tuple[str, ...]) -> list[str]:
    """The words before the first flag."""
    words: list[str] = []
    for word in args:
        if _is_flag(word):
            break
        words.append(word)
    return words


def plain_name(flag: str) -> str:
    """`--batch-size` as `batch_size`."""
    return flag.lstrip("-").replace("-", "_")


def flag_value(evaluator: "Evaluator", flag: Flag, kind: type | None) -> Value:
    """The value of a flag; `kind` is its type where that is known, else it is guessed."""
    value = convert_text(flag.text, kind)
    if isinstance(value, Unknown):
        return value
    given = evaluator.originate(Origin("argument", flag.written, value))
    return Known(given.value, given.origins)


def convert_text(text: str | None, kind: type | None) -> Scalar | Unknown:
    """A flag's text as its type reads it; without a type as Python would write it."""
    if text is None:
        return True
    try:
        if kind is bool:
            lower = text.lower()
            known = lower in _TRUE or lower in _FALSE
            return lower in _TRUE if known else Unknown("its text is no truth value")
        if kind in (int, float, str):
            return kind(text)
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return text if kind is None else Unknown("its text does not fit its type")
    return value if isinstance(value, bool | int | float | str) else Unknown("it is no number")


def annotated_kind(evaluator: "Evaluator", node: ast.expr | None, frame: Frame) -> type | None:
    """The plain type an annotation names: `int` of `int | None` and `Annotated[int, ...]`."""
    match node:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return annotated_kind(evaluator, left, frame) or annotated_kind(evaluator, right, frame)
        case ast.Subscript(slice=inner):
            first = inner.elts[0] if isinstance(inner, ast.Tuple) and inner.elts else inner
            return annotated_kind(evaluator, first, frame)
        case ast.Constant(value=str(text)):
            named = {"int": int, "float": float, "str": str, "bool": bool}
            return named.get(text.partition("|")[0].strip())
        case ast.Name() | ast.Attribute():
            value = evaluator.value(node, frame)
            return _KINDS.get(value.name) if isinstance(value, Symbol) else None
        case _:
            return None


def kind_of(value: Value | None) -> type | None:
    """The type of a default, None where it does not tell."""
    plain = value.value if isinstance(value, Known) else None
    return None if plain is None else type(plain)


def negated(flags: Mapping[str, Flag], name: str) -> Flag | None:
    """The flag that says no to `name`: `--no-name`, `--noname`."""
    head, _, last = name.rpartition(".")
    prefix = f"{head}." if head else ""
    return flags.get(f"{prefix}no_{last}") or flags.get(f"{prefix}no{last}")


def _is_flag(word: str) -> bool:
    return re.match(r"--?[A-Za-z]", word) is not None
