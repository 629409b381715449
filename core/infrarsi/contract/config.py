"""infrarsi.toml: one commented `[job.NAME]` table for each training job, owned by the user.

What a job is and how it is written; guessing a first one from source is `reading.propose`.
"""

import json
import re
import tomllib
from collections.abc import Iterable
from typing import Any, NoReturn, cast

import tomlkit
from pydantic import ValidationError
from tomlkit.items import Array, Table

from infrarsi.contract.contract import Fact, Protocol
from infrarsi.errors import ConfigError, UsageError
from infrarsi.frozen import Frozen, Scalar
from infrarsi.launch import parse_launch
from infrarsi.place import Place

CONFIG_PATH = "infrarsi.toml"
"""Where the configuration stands, relative to the workspace root."""


class JobConfig(Frozen):
    """One job as the user wrote it.

    `launch` is the line as typed; `python` the job's own interpreter (a name on PATH or a path,
    relative ones from the workspace root). `facts` holds what the user said about what could not
    be read, by canonical name (`seq_len = 512`).
    """

    name: str
    launch: str
    python: str = "python"
    memory_limit_gib: float | None = None
    timeout_s: float | None = None
    protocol: Protocol = Protocol()
    editable: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()
    facts: dict[str, Scalar] = {}


class Config(Frozen):
    """The whole file."""

    jobs: dict[str, JobConfig] = {}


def parse_config(text: str) -> Config:
    """Read the text of `infrarsi.toml`.

    Raises:
        ConfigError: not TOML, an unknown key, a value of the wrong type or a launch line that is
            not understood; names the line and the key.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"{CONFIG_PATH} is not valid TOML: {error}.", "Mend that line."
        ) from error
    where = _Where(text)
    for key in tables:
        if key != "job":
            where.refuse((), key, f"the key `{key}` is unknown", "Use tables named [job.NAME].")
    jobs = _table(tables.get("job", {}), where, (), "job")
    return Config(jobs={name: _job(name, value, where) for name, value in jobs.items()})


def add_job(
    text: str | None, job: JobConfig, facts: Iterable[Fact] = (), note: str | None = None
) -> str:
    """The file's text with the job added at its end; everything already there stays as it is.

    A job of that name that is already there is the user's and is left alone, so adding twice
    changes nothing.

    Args:
        text: the present text, None where there is no file.
        job: the job to add.
        facts: what was understood (becomes a comment with its place) and what was not (becomes
            a line to fill in, with the guess).
        note: one line on how `python` was chosen.

    Raises:
        ConfigError: the present text cannot be read, or cannot take a table at its end.
    """
    if text is not None and job.name in parse_config(text).jobs:
        return text
    document = tomlkit.parse(text) if text else tomlkit.document()
    if not text:
        for line in _HEADER:
            document.add(tomlkit.comment(line))
    kept = tomlkit.dumps(document)
    separator = "" if not kept else "\n" if kept.endswith("\n") else "\n\n"
    added = kept + separator + _render(job, tuple(facts), note)
    parse_config(added)
    return added


def place_of(text: str, job: str, key: str) -> Place | None:
    """Where a job's key stands in the file, None where it is not written."""
    line = _Where(text).line(("job", job), key)
    if line is None:
        return None
    end = len(text.splitlines()[line - 1]) + 1
    return Place(file=CONFIG_PATH, line=line, end_line=line, end_column=end)


_HEADER = (
    "Training jobs of this repository, as InfraRSI understands them. Yours to edit;",
    "`infrarsi lock` freezes what is said here, `infrarsi check` holds edits against it.",
)
_KEYS = {
    "launch",
    "python",
    "memory_limit_gib",
    "timeout_s",
    "editable",
    "locked",
    "facts",
    "protocol",
}


def _render(job: JobConfig, facts: tuple[Fact, ...], note: str | None) -> str:
    table = tomlkit.table()
    table.add("launch", job.launch)
    table.add(tomlkit.comment(note or "The job's own interpreter; relative paths from here."))
    table.add("python", job.python)
    _add_memory_limit(table, job.memory_limit_gib)
    table.add(tomlkit.comment("Files a proposal may change, and files nothing may change."))
    table.add("editable", _globs(job.editable))
    table.add("locked", _globs(job.locked))
    _add_understood(table, [fact for fact in facts if fact.unknown is None])
    unknown = [fact for fact in facts if fact.unknown is not None and fact.name not in job.facts]
    if unknown or job.facts:
        table.add("facts", _facts_table(job, unknown))
    document = tomlkit.document()
    jobs = tomlkit.table(is_super_table=True)
    jobs.add(job.name, table)
    document.add("job", jobs)
    return tomlkit.dumps(document)


def _add_memory_limit(table: Table, limit_gib: float | None) -> None:
    if limit_gib is None:
        table.add(
            tomlkit.comment("memory_limit_gib = 8.0  # of each process; unset: its share of memory")
        )
    else:
        table.add("memory_limit_gib", limit_gib)


def _add_understood(table: Table, facts: list[Fact]) -> None:
    if not facts:
        return
    table.add(tomlkit.nl())
    table.add(tomlkit.comment("Understood from the source (information, not settings):"))
    width = max(len(fact.name) for fact in facts)
    for fact in facts:
        place = f"  {fact.place.file}:{fact.place.line}" if fact.place else ""
        value = tomlkit.item(fact.value).as_string()
        table.add(tomlkit.comment(f"  {fact.name:<{width}} = {value}{place}"))


def _facts_table(job: JobConfig, unknown: list[Fact]) -> Table:
    table = tomlkit.table()
    if unknown:
        table.add(tomlkit.comment("Not understood. Where you know the value, say it here."))
    for fact in unknown:
        guess = "" if fact.guess is None else tomlkit.item(fact.guess).as_string()
        reason = " ".join((fact.unknown or "").split())
        table.add(tomlkit.comment(f"{fact.name} = {guess}  # {reason}"))
    for name, value in job.facts.items():
        table.add(name, value)
    return table


def _globs(globs: tuple[str, ...]) -> Array:
    array = tomlkit.array()
    array.extend(globs)
    return array.multiline(len(globs) > 3)


class _Where:
    """Finds the line a key stands on; tomllib does not tell."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()

    def line(self, table: tuple[str, ...], key: str) -> int | None:
        """The 1-based line of `key` in `[table]`, or of the table whose last name is `key`."""
        current: tuple[str, ...] = ()
        wanted = (*table, key)
        for number, line in enumerate(self._lines, 1):
            if header := re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line):
                current = tuple(part.strip(" '\"") for part in header[1].split("."))
                if current[: len(wanted)] == wanted:
                    return number
            elif assigned := re.match(r"\s*([A-Za-z0-9_\-.'\" ]+?)\s*=", line):
                names = tuple(part.strip(" '\"") for part in assigned[1].split("."))
                if (*current, *names)[: len(wanted)] == wanted:
                    return number
        return None

    def refuse(self, table: tuple[str, ...], key: str, what: str, do: str) -> NoReturn:
        line = self.line(table, key)
        at = CONFIG_PATH if line is None else f"{CONFIG_PATH}, line {line}"
        raise ConfigError(f"{at}: {what}.", do)


def _job(name: str, value: object, where: _Where) -> JobConfig:
    table = _table(value, where, ("job",), name)
    path = ("job", name)
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        where.refuse(
            ("job",), name, f"the job name `{name}` is not usable", "Use letters, digits, - and _."
        )
    for key in table:
        if key not in _KEYS:
            where.refuse(path, key, f"the key `{key}` is unknown", f"Known are {_known()}.")
    if "launch" not in table:
        where.refuse(("job",), name, f"job `{name}` has no launch line", _SAY_LAUNCH)
    return JobConfig(
        name=name,
        launch=_launch(table["launch"], where, path),
        python=_text(table.get("python", "python"), where, path, "python"),
        memory_limit_gib=_positive(table.get("memory_limit_gib"), where, path, "memory_limit_gib"),
        timeout_s=_positive(table.get("timeout_s"), where, path, "timeout_s"),
        protocol=_protocol(table.get("protocol", {}), where, path),
        editable=_texts(table.get("editable", []), where, path, "editable"),
        locked=_texts(table.get("locked", []), where, path, "locked"),
        facts=_facts(table.get("facts", {}), where, path),
    )


_SAY_LAUNCH = 'Add launch = "python train.py" with your own line.'


def _known() -> str:
    return ", ".join(f"`{key}`" for key in sorted(_KEYS))


def _table(value: object, where: _Where, path: tuple[str, ...], key: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        where.refuse(path, key, f"`{key}` must be a table", f"Write [{'.'.join((*path, key))}].")
    return cast("dict[str, Any]", value)


def _launch(value: object, where: _Where, path: tuple[str, ...]) -> str:
    text = _text(value, where, path, "launch")
    try:
        parse_launch(text)
    except UsageError as error:
        where.refuse(path, "launch", error.what.rstrip("."), error.do)
    return text


def _text(value: object, where: _Where, path: tuple[str, ...], key: str) -> str:
    if not isinstance(value, str) or not value.strip():
        where.refuse(path, key, f"`{key}` must be text", f'Write {key} = "...".')
    return value


def _texts(value: object, where: _Where, path: tuple[str, ...], key: str) -> tuple[str, ...]:
    items = cast("list[object]", value) if isinstance(value, list) else [None]
    if not all(isinstance(item, str) for item in items):
        where.refuse(path, key, f"`{key}` must be a list of globs", f'Write {key} = ["src/**"].')
    return tuple(cast("list[str]", items))


def _protocol(value: object, where: _Where, path: tuple[str, ...]) -> Protocol:
    table = _table(value, where, path, "protocol")
    within = (*path, "protocol")
    for key in table:
        if key not in Protocol.model_fields:
            known = ", ".join(f"`{name}`" for name in Protocol.model_fields)
            where.refuse(within, key, f"the key `{key}` is unknown", f"Known are {known}.")
    try:
        return Protocol.model_validate_json(json.dumps(table, default=str))
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0])
        where.refuse(within, key, f"`{key}`: {first['msg']}", "See docs/contract.md.")


def _positive(value: object, where: _Where, path: tuple[str, ...], key: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e6:
        where.refuse(
            path,
            key,
            f"`{key}` must be a positive number",
            f"Write {key} = 8.0.",
        )
    return float(value)


def _facts(value: object, where: _Where, path: tuple[str, ...]) -> dict[str, Scalar]:
    facts = _table(value, where, path, "facts")
    for key, fact in facts.items():
        finite = not isinstance(fact, float) or abs(fact) < float("inf")
        if not isinstance(fact, bool | int | float | str) or not finite:
            where.refuse(
                (*path, "facts"),
                key,
                f"the fact `{key}` must be a number, text, true or false",
                f"Write {key} = 1.",
            )
    return facts
