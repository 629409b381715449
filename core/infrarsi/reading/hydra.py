"""Hydra: a primary config, its defaults list, and overrides on the launch line.

Composition as Hydra 1.1 and later do it: groups in order, the primary config last unless `_self_`
says otherwise, then `a.b=4`, `+a.b=4` and `~a.b` from the command line. Leaves out sweeps.
"""

import ast
import posixpath
from collections.abc import Iterator
from typing import TYPE_CHECKING

from infrarsi.reading.documents import parse_document
from infrarsi.reading.frames import Frame
from infrarsi.reading.loading import beside_script, file_value, node_value, resolve
from infrarsi.reading.mappings import as_record, joined_records
from infrarsi.reading.values import Known, Many, Origin, Record, Unknown, Value

if TYPE_CHECKING:
    from infrarsi.reading.evaluate import Evaluator

_MAX_DEPTH = 12
_OWN = ("hydra.", "hydra/")


def hydra_call(evaluator: "Evaluator", name: str, node: ast.Call, frame: Frame) -> Value | None:
    """`hydra.compose(...)`, `OmegaConf.from_cli()` and `from_dotlist`; None for any other call."""
    if name == "omegaconf.OmegaConf.from_cli":
        return overrides_record(evaluator, evaluator.launch.args)
    if name == "omegaconf.OmegaConf.from_dotlist" and node.args:
        words = evaluator.value(node.args[0], frame)
        known = [
            item.value
            for item in (words.items if isinstance(words, Many) else ())
            if isinstance(item, Known) and isinstance(item.value, str)
        ]
        return overrides_record(evaluator, tuple(known))
    if name not in {"hydra.compose", "hydra.experimental.compose"}:
        return None
    keywords = {k.arg: evaluator.value(k.value, frame) for k in node.keywords if k.arg}
    first = evaluator.value(node.args[0], frame) if node.args else keywords.get("config_name")
    folder = next(_initialised(evaluator), None)
    given = keywords.get("overrides")
    items = given.items if isinstance(given, Many) else ()
    listed = [item.value for item in items if isinstance(item, Known)]
    return composed(evaluator, folder, first, tuple(str(word) for word in listed))


def main_config(evaluator: "Evaluator", decorator: ast.Call, frame: Frame) -> Value:
    """What `@hydra.main(config_path=..., config_name=...)` hands to its function."""
    given: dict[str, Value] = {}
    names = ("config_path", "config_name")
    for name, argument in zip(names, decorator.args, strict=False):
        given[name] = evaluator.value(argument, frame)
    for keyword in decorator.keywords:
        if keyword.arg is not None:
            given[keyword.arg] = evaluator.value(keyword.value, frame)
    words = evaluator.launch.args
    for flags, name in (
        (("--config-name", "-cn"), "config_name"),
        (("--config-path", "-cp"), "config_path"),
    ):
        text = _flag(words, flags)
        if text is not None:
            given[name] = Known(text)
    return composed(evaluator, given.get("config_path"), given.get("config_name"), words)


def composed(
    evaluator: "Evaluator", folder: Value | None, name: Value | None, words: tuple[str, ...]
) -> Value:
    """The config of that name in that folder, under the overrides among the words."""
    if isinstance(folder, Unknown) or isinstance(name, Unknown):
        return Unknown("which configuration Hydra takes is not known")
    if any(word in {"-m", "--multirun"} for word in words):
        return Unknown("Hydra runs it several times with different settings")
    path = folder.value if isinstance(folder, Known) else None
    where = beside_script(evaluator, path) if isinstance(path, str) else ""
    wanted = name.value if isinstance(name, Known) else None
    overrides = [word for word in words if "=" in word and not word.startswith("-")]
    composer = _Composer(evaluator, where, dict(_groups(overrides)))
    base: Value = Record({})
    if isinstance(wanted, str):
        found = composer.config(wanted, "", 0)
        if found is None:
            return Unknown(f"the configuration `{wanted}` is not found")
        base = found
    settings = tuple(word for word in overrides if not composer.is_group(word))
    given = overrides_record(evaluator, settings)
    both = joined_records([base, given], deep=True)
    deleted = [word[1:] for word in words if word.startswith("~") and "/" not in word]
    for key in deleted:
        both = _without(both, key.partition("=")[0].split("."))
    return resolve(both, both)


def overrides_record(evaluator: "Evaluator", words: tuple[str, ...]) -> Record:
    """`a.b=4` words as nested values; each is an argument of the launch under its own name."""
    record: Value = Record({})
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name.startswith("-"):
            continue
        scalar = _override_value(evaluator, name, text)
        nested: Value = scalar
        for key in reversed(name.lstrip("+").split(".")):
            nested = Record({key: nested})
        record = joined_records([record, nested], deep=True)
    return record if isinstance(record, Record) else Record({})


def _override_value(evaluator: "Evaluator", name: str, text: str) -> Value:
    document = parse_document("", text, "yaml")
    value = node_value(evaluator, document, document.root, "", modern=True)
    if isinstance(value, Known):
        if value.value is None:
            return Known(None)
        given = evaluator.originate(Origin("argument", name, value.value))
        return Known(given.value, given.origins)
    return Unknown("its text on the launch line is not followed") if text else Known("")


class _Composer:
    """Loads configs and their defaults lists from one folder."""

    def __init__(self, evaluator: "Evaluator", folder: str, choices: dict[str, str]) -> None:
        self._evaluator = evaluator
        self._folder = folder
        self._choices = choices
        self._seen: set[str] = set()

    def is_group(self, word: str) -> bool:
        """Whether an override chooses a config of a group rather than setting a value."""
        name = word.partition("=")[0].lstrip("+").partition("@")[0]
        is_own = name.startswith(_OWN) or name == "hydra"
        return is_own or name in self._seen or self._is_folder(name, word.partition("=")[2])

    def config(self, name: str, package: str, depth: int) -> Value | None:
        """One config with everything its defaults list draws in."""
        path = posixpath.join(self._folder, name)
        if not path.endswith((".yaml", ".yml")):
            path += ".yaml"
        own = file_value(self._evaluator, path, "yaml", modern=True)
        if own is None:
            own = self._stored(name)
        if not isinstance(own, Record) or depth > _MAX_DEPTH:
            return own
        package = self._package(path, package)
        content = {key: value for key, value in own.fields.items() if key != "defaults"}
        placed = _under(Record(content), package)
        listed = own.fields.get("defaults")
        parts: list[Value] = []
        is_placed = False
        for entry in listed.items if isinstance(listed, Many) else ():
            if isinstance(entry, Known) and entry.value == "_self_":
                parts.append(placed)
                is_placed = True
            else:
                parts += self._entry(entry, posixpath.dirname(name), package, depth)
        if not is_placed:
            parts.append(placed)
        if not depth:
            parts += self._appended(depth)
        return joined_records(parts, deep=True)

    def _entry(self, entry: Value, parent: str, package: str, depth: int) -> Iterator[Value]:
        if isinstance(entry, Known) and isinstance(entry.value, str):
            config, _, where = entry.value.partition("@")
            found = self.config(self._from(parent, config), where or package, depth + 1)
            if found is not None:
                yield found
            return
        for key, choice in entry.fields.items() if isinstance(entry, Record) else ():
            words = key.split()
            group, _, where = words[-1].partition("@")
            if words[0] == "override" or group.startswith("hydra"):
                if words[0] == "override" and isinstance(choice, Known):
                    self._choices.setdefault(group, str(choice.value))
                continue
            self._seen.add(group)
            chosen = self._choices.pop(group, None)
            option = chosen or (choice.value if isinstance(choice, Known) else None)
            for name in [option] if isinstance(option, str) else _texts(choice):
                path = self._from(parent, f"{group}/{name}")
                inner = self._group_package(package, where or self._local(parent, group))
                found = self.config(path, inner, depth + 1)
                if found is not None:
                    yield found
                elif words[0] != "optional":
                    yield Unknown(f"the configuration `{path}` is not found")

    def _appended(self, depth: int) -> Iterator[Value]:
        """Groups the launch line adds that no defaults list names."""
        for group, option in list(self._choices.items()):
            if group not in self._seen and self._is_folder(group, option):
                found = self.config(f"{group}/{option}", group.replace("/", "."), depth + 1)
                if found is not None:
                    yield found

    def _from(self, parent: str, config: str) -> str:
        return config[1:] if config.startswith("/") else posixpath.join(parent, config)

    def _local(self, parent: str, group: str) -> str:
        return group.lstrip("/").replace("/", ".")

    def _group_package(self, package: str, own: str) -> str:
        if own.startswith("_global_"):
            return own.removeprefix("_global_").lstrip(".")
        own = own.replace("_here_", "").lstrip(".")
        return ".".join(part for part in (package, own) if part)

    def _package(self, path: str, package: str) -> str:
        """The package a config's header names, else the one its group gives it."""
        text = self._evaluator.project.text(posixpath.normpath(path)) or ""
        for line in text.splitlines()[:5]:
            header = line.strip().removeprefix("#").strip()
            if line.strip().startswith("#") and header.startswith("@package"):
                named = header.removeprefix("@package").strip()
                if named == "_group_":
                    return package
                return self._group_package("", named)
        return package

    def _is_folder(self, group: str, option: str) -> bool:
        path = posixpath.normpath(posixpath.join(self._folder, group, f"{option}.yaml"))
        return bool(group) and self._evaluator.project.text(path) is not None

    def _stored(self, name: str) -> Value | None:
        """A structured config that a `ConfigStore` was given under that name."""
        group, _, last = name.rpartition("/")
        for site in self._evaluator.project.calls_by_name.get("store", []):
            keywords = {k.arg: k.value for k in site.call.keywords if k.arg}
            frame = self._evaluator.frame(site.scope)
            texts = {
                key: value.value
                for key in ("name", "group")
                if key in keywords
                and isinstance(value := self._evaluator.value(keywords[key], frame), Known)
            }
            if texts.get("name") == last and (texts.get("group") or "") == group:
                node = keywords.get("node")
                value = self._evaluator.value(node, frame) if node is not None else Record({})
                return as_record(self._evaluator, value)
        return None


def _groups(overrides: list[str]) -> Iterator[tuple[str, str]]:
    for word in overrides:
        name, _, text = word.partition("=")
        yield name.lstrip("+").partition("@")[0], text


def _under(record: Value, package: str) -> Value:
    for key in reversed([part for part in package.split(".") if part]):
        record = Record({key: record})
    return record


def _without(value: Value, keys: list[str]) -> Value:
    if not isinstance(value, Record) or keys[0] not in value.fields:
        return value
    fields = dict(value.fields)
    if len(keys) == 1:
        del fields[keys[0]]
    else:
        fields[keys[0]] = _without(fields[keys[0]], keys[1:])
    return Record(fields)


def _flag(words: tuple[str, ...], flags: tuple[str, ...]) -> str | None:
    for index, word in enumerate(words):
        name, equals, text = word.partition("=")
        if name in flags:
            return text if equals else next(iter(words[index + 1 : index + 2]), None)
    return None


def _initialised(evaluator: "Evaluator") -> Iterator[Value]:
    for name in ("initialize", "initialize_config_dir"):
        for site in evaluator.project.calls_by_name.get(name, []):
            frame = evaluator.frame(site.scope)
            for keyword in site.call.keywords:
                if keyword.arg in {"config_path", "config_dir"}:
                    yield evaluator.value(keyword.value, frame)
            if site.call.args:
                yield evaluator.value(site.call.args[0], frame)


def _texts(value: Value) -> list[str]:
    items = value.items if isinstance(value, Many) else ()
    return [i.value for i in items if isinstance(i, Known) and isinstance(i.value, str)]
