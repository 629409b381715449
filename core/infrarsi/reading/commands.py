"""Functions that are commands: what their parameters are when the launch line starts them.

click and typer decorators, `fire.Fire(main)`, `jsonargparse.CLI(main)`, `tyro.cli(main)`, and
`@hydra.main`. A parameter is what its flag says, else its environment variable, else its default.
"""

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from infrarsi.reading import hydra
from infrarsi.reading.dataclass_cli import (
    configured,
    dataclass_call,
    over_file,
    parser_value,
    put_flag,
)
from infrarsi.reading.externals import environment
from infrarsi.reading.flags import (
    annotated_kind,
    convert_text,
    flag_value,
    given_flags,
    kind_of,
    negated,
    plain_name,
    positional_words,
)
from infrarsi.reading.frames import Frame
from infrarsi.reading.scopes import Scope, parameters
from infrarsi.reading.values import (
    ClassValue,
    FunctionValue,
    Instance,
    Known,
    Made,
    Origin,
    Record,
    Symbol,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from infrarsi.reading.evaluate import Evaluator

Kind = Literal["click", "typer", "fire", "made", "config", "hydra"]
_RUNNERS: dict[str, Kind] = {
    "fire.Fire": "fire",
    "fire.core.Fire": "fire",
    "typer.run": "typer",
    "jsonargparse.CLI": "made",
    "jsonargparse.auto_cli": "made",
    "tyro.cli": "made",
    "defopt.run": "made",
}
_WRAPS = {"draccus.wrap", "pyrallis.wrap", "chz.main"}


@dataclass(frozen=True)
class Command:
    """A function the launch line starts; `decorators` are the calls that stand over it."""

    kind: Kind
    decorators: tuple[ast.Call, ...] = ()


def command_call(evaluator: "Evaluator", name: str, node: ast.Call, frame: Frame) -> Value | None:
    """What a call gives that makes a command line of a dataclass; None for any other."""
    return dataclass_call(evaluator, name, node, frame)


def parser_method(
    evaluator: "Evaluator", base: Made, name: str, node: ast.Call, frame: Frame
) -> Value | None:
    """What a method of `HfArgumentParser` gives; None for any other."""
    if not base.callee.endswith("HfArgumentParser"):
        return None
    return parser_value(evaluator, base, name, node, frame)


def parameter_value(evaluator: "Evaluator", function: Scope, name: str) -> Value | None:
    """What the launch line makes of a command's parameter; None where it is no command."""
    command = _command(evaluator, function)
    node = function.node
    if command is None or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    outer = evaluator.frame(function.parent) if function.parent else evaluator.frame(function)
    default = dict(parameters(node)).get(name)
    annotation = next((a.annotation for a in _arguments(node) if a.arg == name), None)
    match command.kind:
        case "hydra":
            first = _arguments(node)[0].arg
            call = command.decorators[0]
            return hydra.main_config(evaluator, call, outer) if name == first else None
        case "click":
            return _click(evaluator, command, name, outer)
        case "typer":
            return _typer(evaluator, name, default, annotation, outer)
        case "config":
            of = evaluator.value(annotation, outer) if annotation is not None else None
            return configured(evaluator, Instance(of)) if isinstance(of, ClassValue) else None
        case _:
            return _plain(evaluator, command, node, name, default, annotation, outer)


def index_commands(evaluator: "Evaluator") -> None:
    """Find all commands of the project."""
    for scope in evaluator.project.scopes.values():
        if isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef):
            command = _decorated(evaluator, scope, scope.node)
            if command is not None:
                evaluator.commands[scope] = command
    for site_name in {name.rpartition(".")[2] for name in _RUNNERS}:
        for site in evaluator.project.calls_by_name.get(site_name, []):
            frame = evaluator.frame(site.scope)
            callee = evaluator.value(site.call.func, frame)
            kind = _RUNNERS.get(callee.name) if isinstance(callee, Symbol) else None
            if kind is not None and site.call.args:
                function = evaluator.value(site.call.args[0], frame)
                if isinstance(function, FunctionValue):
                    evaluator.commands.setdefault(function.scope, Command(kind))


def _command(evaluator: "Evaluator", function: Scope) -> Command | None:
    if not evaluator.is_ready:
        evaluator.trace.never()
        return evaluator.commands.get(function)
    return evaluator.trace.look(evaluator.subject, _known_command, function)


def _known_command(evaluator: "Evaluator", function: Scope) -> Command | None:
    return evaluator.commands.get(function)


def _decorated(
    evaluator: "Evaluator", scope: Scope, node: ast.FunctionDef | ast.AsyncFunctionDef
) -> Command | None:
    calls = tuple(d for d in node.decorator_list if isinstance(d, ast.Call))
    if not calls or scope.parent is None:
        return None
    frame = evaluator.frame(scope.parent)
    for call in calls:
        callee = evaluator.value(call.func, frame)
        name = callee.name if isinstance(callee, Symbol) else ""
        last = call.func.attr if isinstance(call.func, ast.Attribute) else name.rpartition(".")[2]
        if name == "hydra.main":
            return Command("hydra", (call,))
        if name in _WRAPS:
            return Command("config", calls)
        if name.startswith("click.") and last in {"command", "group", "option"}:
            return Command("click", calls)
        if last in {"command", "callback"} and isinstance(call.func, ast.Attribute):
            owner = evaluator.value(call.func.value, frame)
            is_typer = isinstance(owner, Made) and owner.callee.endswith("Typer")
            return Command("typer" if is_typer else "click", calls)
    return None


def _click(evaluator: "Evaluator", command: Command, name: str, frame: Frame) -> Value | None:
    for call in command.decorators:
        last = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        last = last or getattr(call.func, "id", "")
        texts = [
            a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)
        ]
        if last not in {"option", "argument"} or _click_name(texts) != name:
            continue
        return _click_value(evaluator, call, texts, frame)
    return None


def _click_value(evaluator: "Evaluator", call: ast.Call, texts: list[str], frame: Frame) -> Value:
    keywords = {k.arg: k.value for k in call.keywords if k.arg}
    names = [part for text in texts for part in text.split("/")[:1] if part.startswith("-")]
    refusals = [part for text in texts for part in text.split("/")[1:]]
    default = _literal_default(evaluator, call, keywords, max(names, key=len, default=""), frame)
    kind = annotated_kind(evaluator, keywords.get("type"), frame) or kind_of(default)
    alone = bool(refusals) or "is_flag" in keywords
    flags = given_flags(
        evaluator.launch.args, {plain_name(n) for n in [*names, *refusals] if alone}
    )
    for written in flags.values():
        if written.written in refusals:
            return evaluator.originate(Origin("argument", written.written, False))
        if written.written in names:
            return flag_value(evaluator, written, bool if alone else kind)
    held = evaluator.value(keywords["envvar"], frame) if "envvar" in keywords else None
    variable = environment(evaluator.launch, held) if held is not None else None
    if variable is not None:
        value = convert_text(str(variable.value), kind)
        return value if isinstance(value, Unknown) else Known(value, variable.origins)
    if default is None and alone:
        return Known(False)
    return default or Known(None)


def _literal_default(
    evaluator: "Evaluator",
    call: ast.Call,
    keywords: dict[str, ast.expr],
    flag: str,
    frame: Frame,
) -> Value | None:
    if "default" not in keywords:
        return None
    value = evaluator.named(keywords["default"], frame, flag)
    origin = value.direct() if isinstance(value, Known) else None
    if origin is None or origin.place is None or origin.place.line < call.lineno:
        return value
    carried = Origin("argument_default", flag, origin.value, origin.file, origin.place)
    return evaluator.originate(carried)


def _typer(
    evaluator: "Evaluator",
    name: str,
    default: ast.expr | None,
    annotation: ast.expr | None,
    frame: Frame,
) -> Value | None:
    options = [node for node in (default, *_metadata(annotation)) if isinstance(node, ast.Call)]
    option = next((o for o in options if _last_name(o.func) in {"Option", "Argument"}), None)
    texts = [
        a.value
        for a in (option.args if option else [])
        if isinstance(a, ast.Constant) and isinstance(a.value, str) and a.value.startswith("-")
    ]
    written = default
    if option is not None and option is default:
        keyword = next((k.value for k in option.keywords if k.arg == "default"), None)
        written = keyword or next(iter(option.args), None)
        if isinstance(written, ast.Constant) and written.value is ...:
            written = None
    value = None if written is None else evaluator.named(written, frame, name)
    kind = annotated_kind(evaluator, annotation, frame) or kind_of(value)
    names = {part for text in texts for part in text.split("/")} or {f"--{name.replace('_', '-')}"}
    flags = given_flags(evaluator.launch.args, {plain_name(n) for n in names if kind is bool})
    for flag in flags.values():
        if flag.written in names:
            return flag_value(evaluator, flag, kind)
    refusal = negated(flags, name)
    if refusal is not None and kind is bool:
        return evaluator.originate(Origin("argument", refusal.written, False))
    return value


def _plain(
    evaluator: "Evaluator",
    command: Command,
    node: ast.FunctionDef | ast.AsyncFunctionDef,
    name: str,
    default: ast.expr | None,
    annotation: ast.expr | None,
    frame: Frame,
) -> Value | None:
    """A parameter of `fire.Fire(main)`, `jsonargparse.CLI(main)` or `tyro.cli(main)`."""
    value = None if default is None else evaluator.named(default, frame, name)
    of = evaluator.value(annotation, frame) if annotation is not None else None
    if value is None and isinstance(of, ClassValue):
        value = Instance(of)
    kind = annotated_kind(evaluator, annotation, frame) or kind_of(value)
    bare = {name} if kind is bool and command.kind != "fire" else set[str]()
    flags = given_flags(evaluator.launch.args, bare)
    if command.kind == "made":
        held = over_file(evaluator, Record({name: value or Known(None)}), flags)
        found = held.fields[name] if isinstance(held, Record) else Known(None)
        value = value if found == Known(None) else found
    if name in flags:
        kind = None if command.kind == "fire" else kind
        return flag_value(evaluator, flags[name], kind)
    refusal = negated(flags, name)
    if refusal is not None and kind is bool:
        return evaluator.originate(Origin("argument", refusal.written, False))
    for flag_name, flag in flags.items():
        head, _, rest = flag_name.partition(".")
        if head == name and rest and value is not None:
            value = put_flag(evaluator, value, rest.split("."), flag) or value
    words = positional_words(evaluator.launch.args)
    index = [a.arg for a in _arguments(node)].index(name)
    if command.kind == "fire" and index < len(words):
        text = convert_text(words[index], None)
        return text if isinstance(text, Unknown) else Known(text)
    return value


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _click_name(texts: list[str]) -> str | None:
    """The parameter click gives an option's value to."""
    plain = [text for text in texts if not text.startswith("-")]
    if plain:
        return plain[0].lower().replace("-", "_")
    longest = sorted(texts, key=lambda text: -(len(text) - len(text.lstrip("-"))))
    return plain_name(longest[0].split("/")[0]).lower() if longest else None


def _metadata(annotation: ast.expr | None) -> list[ast.expr]:
    """What stands behind the type in `Annotated[type, ...]`."""
    match annotation:
        case ast.Subscript(slice=ast.Tuple(elts=[_, *rest])):
            return rest
        case _:
            return []


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
