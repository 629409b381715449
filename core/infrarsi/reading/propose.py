"""From a reading to what the user is shown first: a job for infrarsi.toml, and its contract."""

import ast
import posixpath
from collections.abc import Iterable, Iterator

from infrarsi.contract import Fact, JobConfig, Precision, Scope, TaskContract, Workload, matches
from infrarsi.frozen import Scalar
from infrarsi.launch import Launch, render_launch
from infrarsi.reading.reading import Reading
from infrarsi.reading.sources import Sources
from infrarsi.reading.syntax import parse_source
from infrarsi.reading.walking import walk

_LOCKED = ("**/data/**", "*.bin", "*.npy", "*.npz", "*.parquet", "*.arrow")
_NEVER_PROPOSED = ("eval", "prepare", "test_")
_SEED = 1337
_MAX_NAMED = 500


def default_job(
    name: str, launch: Launch, reading: Reading, python: str, sources: Sources | None = None
) -> JobConfig:
    """The job as first proposed.

    Editable are the Python files the script reaches, apart from those that prepare data or
    evaluate, and its configuration files; locked are data files, and with `sources` every other
    file the script names.
    """
    reached = tuple(file for file in reading.files if not _prepares(file))
    editable = (*reached, *reading.documents) if reached else ()
    return JobConfig(
        name=name,
        launch=render_launch(launch),
        python=python,
        editable=editable or (launch.script,),
        locked=(*_LOCKED, *(_named_files(reading, sources) if sources is not None else ())),
    )


def bare_job(
    name: str, launch: Launch, reading: Reading, sources: Sources, launch_file: str | None
) -> JobConfig:
    """The job of a folder that says nothing about its scope.

    Editable are the script, its configuration files and the launch file; every other file that is
    there is locked. What is new may be added.
    """
    opened = (launch.script, *reading.documents, *([launch_file] if launch_file else []))
    editable = tuple(dict.fromkeys(opened))
    return JobConfig(
        name=name,
        launch=render_launch(launch),
        python="python",
        editable=editable,
        locked=tuple(_others(sources.paths(), editable)),
    )


def propose_contract(job: JobConfig, launch: Launch, reading: Reading) -> TaskContract:
    """The contract of a job as it stands. What the user says in `job.facts` goes first."""
    facts = _with_given(reading, job.facts)
    values = {fact.name: fact.value for fact in facts}
    limit = job.memory_limit_gib
    seed = values.get("seed")
    return TaskContract(
        job=job.name,
        launch=launch,
        workload=Workload(
            global_batch_rows=_count(values.get("global_batch")),
            seq_len_tokens=_count(values.get("seq_len")),
            world_size=launch.n_processes,
        ),
        precision=_precision(values.get("precision")),
        facts=facts,
        scope=Scope(editable=job.editable or (launch.script,), locked=job.locked),
        protocol=job.protocol,
        run_timeout_s=job.timeout_s or TaskContract.model_fields["run_timeout_s"].default,
        memory_limit_bytes=None if limit is None else round(limit * (1 << 30)),
        seed=seed if type(seed) is int and seed >= 0 else _SEED,
    )


def _with_given(reading: Reading, given: dict[str, Scalar]) -> tuple[Fact, ...]:
    """The facts, with what the user gave in the place of what was read."""
    names = list(dict.fromkeys([*(fact.name for fact in reading.facts), *given]))
    facts = [
        Fact(name=name, value=given[name], given=True) if name in given else reading.fact(name)
        for name in names
    ]
    complete = [fact for fact in facts if fact is not None]
    return tuple(_completed(complete, given))


def _completed(facts: list[Fact], given: dict[str, Scalar]) -> Iterator[Fact]:
    """Products that are unknown for want of a factor the user has given."""
    values = {fact.name: fact.value for fact in facts}
    for fact in facts:
        names = _FACTORS.get(fact.name, ())
        factors = [_count(values.get(name)) for name in names]
        known = [factor for factor in factors if factor is not None]
        follows = fact.unknown is not None or any(name in given for name in names)
        if names and follows and not fact.given and len(known) == len(names):
            product = 1
            for factor in known:
                product *= factor
            values[fact.name] = product
            yield Fact(name=fact.name, value=product, given=True)
        else:
            yield fact


_FACTORS = {
    "global_batch": ("micro_batch", "accumulation", "world_size"),
    "tokens_per_step": ("global_batch", "seq_len"),
}


def _count(value: Scalar | None) -> int | None:
    return value if type(value) is int and value >= 1 else None


def _precision(value: Scalar | None) -> Precision:
    match value:
        case "bf16":
            return "bf16"
        case "fp16":
            return "fp16"
        case _:
            return "fp32"


def _others(paths: Iterable[str], editable: tuple[str, ...]) -> Iterator[str]:
    """Globs for the other files; whole folders by name where there are very many files."""
    others = [
        path
        for path in paths
        if path not in editable and not matches(path, (".infrarsi/**", "infrarsi.toml"))
    ]
    if len(others) <= _MAX_NAMED:
        yield from others
        return
    open_folders = {path.split("/")[0] for path in editable}
    closed = (
        p if "/" not in p or p.split("/")[0] in open_folders else p.split("/")[0] + "/"
        for p in others
    )
    yield from dict.fromkeys(closed)


def _prepares(file: str) -> bool:
    name = posixpath.basename(file)
    in_data = "data" in posixpath.dirname(file).split("/")
    return in_data or name.startswith(_NEVER_PROPOSED)


def _named_files(reading: Reading, sources: Sources) -> tuple[str, ...]:
    """Files of the workspace, other than code and data, that a text in the job's code names."""
    texts = {text for file in reading.files for text in _texts(sources, file)}
    code = (".py", ".pyi", ".toml", ".md", ".lock")
    return tuple(
        path
        for path in sources.paths()
        if posixpath.basename(path) in texts
        and path not in reading.documents
        and not path.endswith(code)
        and not matches(path, (*_LOCKED, ".infrarsi/**"))
    )


def _texts(sources: Sources, file: str) -> Iterator[str]:
    for node in walk(parse_source(file, sources.text(file) or "").tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = posixpath.basename(node.value.strip())
            if "." in name:
                yield name
