"""Script arguments that stand in files: `@args.txt`, and jsonargparse's `--config file.yaml`.

Also flags with dots in their names, which give nested values.
"""

import ast
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from infrarsi.reading.loading import file_value
from infrarsi.reading.mappings import joined_records
from infrarsi.reading.options import Option
from infrarsi.reading.paths import inside
from infrarsi.reading.values import Record, Value

if TYPE_CHECKING:
    from infrarsi.reading.evaluate import Evaluator

_CONFIG_ACTIONS = {"config", "ActionConfigFile"}


def expanded_words(evaluator: "Evaluator") -> tuple[str, ...]:
    """The launch line's arguments with the files that stand for some of them written out."""
    marks = "".join(_prefixes(evaluator))
    words: list[str] = []
    for word in evaluator.launch.args:
        path = inside(evaluator, word[1:]) if marks and word[:1] in marks and word else None
        text = evaluator.project.text(path) if path is not None else None
        words += [word] if text is None else text.splitlines()
    return tuple(words)


def configured_fields(
    evaluator: "Evaluator", given: Mapping[Option, str | bool]
) -> dict[str, Value]:
    """What a file given for an option of jsonargparse's config action says, by dotted name."""
    for option, text in given.items():
        if option.action in _CONFIG_ACTIONS and isinstance(text, str):
            content = file_value(evaluator, text)
            return dict(_flat(content, "")) if content is not None else {}
    return {}


def nested_fields(fields: Mapping[str, Value]) -> Record:
    """The fields with `a.b` under `a` too."""
    record: Value = Record(fields)
    for name, value in fields.items():
        nested = value
        for key in reversed(name.split(".")):
            nested = Record({key: nested})
        if "." in name:
            record = joined_records([record, nested], deep=True)
    return record if isinstance(record, Record) else Record(fields)


def _prefixes(evaluator: "Evaluator") -> Iterator[str]:
    for site in evaluator.project.calls_by_name.get("ArgumentParser", []):
        for keyword in site.call.keywords:
            if keyword.arg == "fromfile_prefix_chars" and isinstance(keyword.value, ast.Constant):
                yield str(keyword.value.value)


def _flat(value: Value, prefix: str) -> Iterator[tuple[str, Value]]:
    if not isinstance(value, Record):
        yield prefix, value
        return
    for key, inner in value.fields.items():
        yield from _flat(inner, f"{prefix}.{key}" if prefix else key)
