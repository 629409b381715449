"""Script arguments: argparse options, what the launch line gives them, and their defaults."""

import argparse
import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from infrarsi.reading.attached import attached
from infrarsi.reading.parts import CallSite
from infrarsi.reading.project import Project
from infrarsi.reading.syntax import unparse
from infrarsi.reading.values import Known, Origin, Symbol, Unknown, Value

_FLAGS = {"store_true": True, "store_false": False}


@dataclass(frozen=True, eq=False)
class Option:
    """One `add_argument` call."""

    site: CallSite
    flags: tuple[str, ...]
    dest: str
    keywords: Mapping[str, ast.expr]

    @property
    def flag(self) -> str:
        """The flag in its longest spelling, or the positional's name."""
        return max(self.flags, key=len)

    @property
    def action(self) -> str:
        """The action's name, `store` where none is written."""
        action = self.keywords.get("action")
        if isinstance(action, ast.Constant):
            return str(action.value)
        return "store" if action is None else unparse(action).rpartition(".")[2]


def find_options(project: Project) -> tuple[Option, ...]:
    """All options any parser of the job defines, in order of their place."""
    return tuple(
        option
        for site in project.calls_by_name.get("add_argument", [])
        if (option := _option(site)) is not None
    )


def given_texts(options: tuple[Option, ...], args: tuple[str, ...]) -> dict[Option, str | bool]:
    """What the launch line says for each option it names, as argparse would read it."""
    by_flag = {flag: option for option in options for flag in option.flags}
    given: dict[Option, str | bool] = {}
    words = iter(args)
    for word in words:
        flag, equals, value = word.partition("=")
        option, negated = _find_option(flag, by_flag)
        if option is None:
            continue
        if option.action in _FLAGS:
            given[option] = _FLAGS[option.action]
        elif option.action == "BooleanOptionalAction":
            given[option] = not negated
        else:
            given[option] = value if equals else next(words, "")
    return given


def given_value(option: Option, text: str | bool, kind: Value | None) -> Value:
    """The value of an option on the launch line; `kind` is what its `type` evaluates to."""
    value = text if isinstance(text, bool) else convert(text, kind)
    if isinstance(value, Unknown) or "nargs" in option.keywords:
        return Unknown(f"{option.flag} is converted in a way that is not followed")
    origin = Origin(carrier="argument", name=option.flag, value=value)
    place = option.site.scope.source.place(option.site.call)
    return Known(value, (origin,), place)


def convert(text: str, kind: Value | None) -> str | int | float | Unknown:
    """The text as argparse's `type` turns it."""
    try:
        match kind:
            case None | Symbol(name="builtins.str"):
                return text
            case Symbol(name="builtins.int"):
                return int(text)
            case Symbol(name="builtins.float"):
                return float(text)
            case _:
                return Unknown("its type is not followed")
    except ValueError:
        return Unknown("its text does not fit its type")


@attached
def _option(site: CallSite) -> Option | None:
    flags = tuple(
        argument.value
        for argument in site.call.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    )
    if not flags or len(flags) != len(site.call.args) or not all(flags):
        return None
    keywords = {keyword.arg: keyword.value for keyword in site.call.keywords if keyword.arg}
    dest = keywords.get("dest")
    if isinstance(dest, ast.Constant) and isinstance(dest.value, str):
        name = dest.value
    else:
        longs = [flag for flag in flags if flag.startswith("--")]
        name = (longs or list(flags))[0].lstrip("-").replace("-", "_")
    return Option(site, flags, name, keywords)


def _find_option(flag: str, by_flag: Mapping[str, Option]) -> tuple[Option | None, bool]:
    """The option of a flag (also abbreviated), and whether it was written as `--no-...`."""
    if not flag.startswith("-"):
        return None, False
    if flag in by_flag:
        return by_flag[flag], False
    positive = f"--{flag.removeprefix('--no-')}"
    if flag.startswith("--no-") and positive in by_flag:
        return by_flag[positive], True
    starting = set(_starting(flag, by_flag)) if flag.startswith("--") else set[Option]()
    return (starting.pop() if len(starting) == 1 else None), False


def _starting(flag: str, by_flag: Mapping[str, Option]) -> Iterator[Option]:
    return (option for known, option in by_flag.items() if known.startswith(flag))


def is_namespace(name: str) -> bool:
    """Whether the dotted name is a parser's class."""
    return name.endswith(argparse.ArgumentParser.__name__)
