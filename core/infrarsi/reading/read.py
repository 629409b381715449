"""`read` and `follow`: from a launch and its sources to what they say. Neither ever raises."""

import math
from collections.abc import Iterator

from infrarsi.contract.contract import Fact
from infrarsi.frozen import Scalar
from infrarsi.knobs import Binding
from infrarsi.launch import Launch
from infrarsi.place import Place
from infrarsi.reading.doubt import doubted
from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.find_knobs import find_knobs
from infrarsi.reading.horizon import updates_fact
from infrarsi.reading.loading import named_documents
from infrarsi.reading.memory import Memory
from infrarsi.reading.numerics import loss_fact, parameters_fact, precision_fact
from infrarsi.reading.optimization import (
    clip_fact,
    find_optimizers,
    optimizer_facts,
    seed_fact,
)
from infrarsi.reading.program import Program
from infrarsi.reading.project import Project
from infrarsi.reading.reading import Problem, Reading
from infrarsi.reading.roles import find_roles
from infrarsi.reading.sources import Sources
from infrarsi.reading.syntax import SourceFile
from infrarsi.reading.values import Known, Unknown, Value, merge_origins
from infrarsi.reading.workload import StepWork, read_step_work, spelled, whole_number


def read(sources: Sources, launch: Launch, n_cpus: int = 1) -> Reading:
    """Read a job's sources from its launch's script on.

    Args:
        sources: the workspace's texts.
        launch: how the job is started; its arguments and variables override defaults.
        n_cpus: processors of the machine it will run on; bounds the choices of threads.

    Whatever cannot be understood is an unknown fact or a problem; no text makes it raise.
    """
    return follow(sources, launch, n_cpus).reading


def follow(
    sources: Sources, launch: Launch, n_cpus: int = 1, memory: Memory | None = None
) -> Program:
    """The same, with the means to ask further.

    With the `memory` of earlier readings of the same launch only what changed is read again.
    """
    if sources.text(launch.script) is None:
        what = f"The script {launch.script} is not there."
        return Program(sources, launch, Reading(problems=(Problem(what=what),)), None)
    try:
        return _follow(sources, launch, n_cpus, memory)
    except RecursionError:
        what = f"The code {launch.script} reaches is nested too deeply to be read."
        reading = Reading(problems=(Problem(what=what),), files=(launch.script,))
        return Program(sources, launch, reading, None)


def _follow(sources: Sources, launch: Launch, n_cpus: int, memory: Memory | None) -> Program:
    project = Project(sources, launch, memory)
    if memory is not None:
        memory.settle([None, *project.files.values()])
    evaluator = Evaluator(project)
    work = read_step_work(evaluator)
    reading = _read(evaluator, work, n_cpus)
    return Program(sources, launch, reading, (evaluator, work))


def _read(evaluator: Evaluator, work: StepWork, n_cpus: int) -> Reading:
    project = evaluator.project
    values = dict(_values(evaluator, work))
    facts = tuple(_fact(evaluator, name, value) for name, value in values.items())
    facts = tuple(_with_cast_place(evaluator, fact) for fact in facts)
    documents = _documents(evaluator)
    return Reading(
        facts=facts,
        knobs=find_knobs(evaluator, work, n_cpus),
        roles=find_roles(evaluator, work),
        problems=tuple(_problems(project, work)),
        files=tuple(project.files),
        documents=documents,
        bindings=dict(_bindings(values)),
    )


def _values(evaluator: Evaluator, work: StepWork) -> Iterator[tuple[str, Value]]:
    """Every fact's value by its canonical name; a library's settings go before the rest."""
    stated = dict(work.library.values) if work.library is not None else {}
    has_loop = work.training is not None or work.library is not None
    for name, value in _followed(evaluator, work, stated):
        told = stated.pop(name, value)
        yield name, doubted(evaluator.project, work.library, name, told, has_loop=has_loop)
    yield from stated.items()


def _followed(
    evaluator: Evaluator, work: StepWork, stated: dict[str, Value]
) -> Iterator[tuple[str, Value]]:
    for name in ("micro_batch", "accumulation", "seq_len"):
        stated.pop(name, None)
    yield "micro_batch", work.micro
    yield "accumulation", work.accumulation
    yield "world_size", work.world
    global_batch = _global_batch(work)
    yield "global_batch", global_batch
    yield "seq_len", work.seq_len
    yield "tokens_per_step", _tokens(global_batch, work.seq_len)
    yield from optimizer_facts(evaluator, find_optimizers(evaluator, work.training))
    yield "clip", clip_fact(evaluator, work.training)
    parameters, _ = parameters_fact(evaluator)
    parameters = stated.get("parameters", parameters)
    parameters = doubted(evaluator.project, work.library, "parameters", parameters)
    yield "precision", precision_fact(evaluator, work, parameters)
    yield "parameters", parameters
    yield "loss", loss_fact(evaluator, work)
    yield "seed", seed_fact(evaluator)
    yield "updates", updates_fact(evaluator, work)


def _global_batch(work: StepWork) -> Value:
    """Rows of a step; placed on the literal that sets them, where there is one of its own."""
    rows = work.rows()
    if rows is None:
        factors = (work.micro, work.accumulation, work.replicas)
        reasons = [v.reason for v in factors if isinstance(v, Unknown)]
        return Unknown(reasons[0] if reasons else "it is no whole number of rows")
    origins = merge_origins([work.micro, work.accumulation])
    factors = [work.micro, work.accumulation]
    direct = {o.key for v in factors if isinstance(v, Known) and (o := v.direct()) is not None}
    own = [o for o in origins if o.key not in direct and o.carrier != "launcher"]
    length = whole_number(work.seq_len) or 1
    for amount in (rows, rows * length):
        setting = [o for o in own if o.value == amount and type(o.value) is int]
        if len(setting) == 1:
            return Known(rows, (setting[0],), setting[0].place)
    micro = work.micro
    return Known(rows, origins, micro.place if isinstance(micro, Known) else None)


def _tokens(global_batch: Value, seq_len: Value) -> Value:
    rows, length = whole_number(global_batch), whole_number(seq_len)
    if rows is None or length is None:
        missing = global_batch if rows is None else seq_len
        reason = missing.reason if isinstance(missing, Unknown) else "it is no whole number"
        return Unknown(reason)
    return Known(rows * length, merge_origins([global_batch, seq_len]))


def _fact(evaluator: Evaluator, name: str, value: Value) -> Fact:
    scalar = _scalar(value)
    if scalar is not None and isinstance(value, Known):
        return Fact(name=name, value=scalar, place=_place(value))
    reason = value.reason if isinstance(value, Unknown) else "it is no plain number or text"
    named = spelled(evaluator, name)
    guess = _scalar(named) if named is not None else None
    derived = isinstance(guess, int) and guess < 0
    return Fact(name=name, unknown=reason, guess=None if derived else guess)


def _with_cast_place(evaluator: Evaluator, fact: Fact) -> Fact:
    """A cast of the parameters that may or may not happen is still shown where it stands."""
    if fact.name != "parameters" or fact.unknown is None:
        return fact
    _, site = parameters_fact(evaluator)
    place = site.scope.source.place(site.call) if site is not None else None
    return fact.model_copy(update={"place": place})


def _scalar(value: Value) -> Scalar | None:
    """The value if a record can hold it: no infinity, no number beyond 64 bits."""
    scalar = value.value if isinstance(value, Known) else None
    if isinstance(scalar, float) and not math.isfinite(scalar):
        return None
    if isinstance(scalar, int) and scalar.bit_length() > 63:
        return None
    return scalar


def _place(value: Known) -> Place | None:
    if value.place is not None:
        return value.place
    origin = value.direct()
    return origin.place if origin is not None else None


def _bindings(values: dict[str, Value]) -> Iterator[tuple[str, Binding]]:
    for name, value in values.items():
        origin = value.direct() if isinstance(value, Known) else None
        binding = origin.binding() if origin is not None else None
        if binding is not None:
            yield name, binding


def _problems(project: Project, work: StepWork) -> Iterator[Problem]:
    for source in project.files.values():
        for line in source.broken:
            what = "This line could not be parsed."
            yield Problem(what=what, place=_line(source, line), half_typed=True)
    for document in project.documents.values():
        for line in document.broken:
            what = "This line could not be read."
            yield Problem(what=what, place=document.line_place(line), half_typed=True)
    for site in project.calls_by_name.get("exec", []):
        if site.scope.source.file in project.files and not project.is_overlay(site.call):
            what = "Code is made at run time here; only a run can tell what it sets."
            yield Problem(what=what, place=site.scope.source.place(site.call))
    script = project.launch.script
    if work.library is not None and work.library.owns_loop:
        return
    if work.training is None:
        yield Problem(what=f"No call of backward was found in what {script} reaches.")
    elif work.training.update is None:
        place = work.training.backward.scope.source.place(work.training.backward.call)
        yield Problem(what="No optimizer step was found around this backward call.", place=place)


def _documents(evaluator: Evaluator) -> tuple[str, ...]:
    named_documents(evaluator)
    return tuple(sorted(evaluator.project.documents))


def _line(source: SourceFile, line: int) -> Place:
    text = source.line(line)
    start = len(text) - len(text.lstrip()) + 1
    end = max(start + 1, len(text.rstrip()) + 1)
    return Place(file=source.file, line=line, column=start, end_line=line, end_column=end)
