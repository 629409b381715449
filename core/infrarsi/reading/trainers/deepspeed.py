"""DeepSpeed's engine: its configuration, of which two batch sizes give the third."""

import ast
from collections.abc import Iterator

from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.flow import Fetch
from infrarsi.reading.loading import file_value
from infrarsi.reading.objects import attribute
from infrarsi.reading.operators import binary
from infrarsi.reading.project import CallSite
from infrarsi.reading.trainers.callees import calls_of
from infrarsi.reading.trainers.library_job import LibraryJob
from infrarsi.reading.trainers.settings import argument, clip_of, plain, whole
from infrarsi.reading.values import Known, Many, Origin, Record, Unknown, Value

ROOTS = {"deepspeed"}
ROWS, MICRO, STEPS = (
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
)

_KEYS = (ROWS, MICRO, STEPS, "gradient_clipping", "bf16", "fp16", "optimizer")


def read_deepspeed(evaluator: Evaluator) -> LibraryJob | None:
    """What the first `deepspeed.initialize` is configured with."""
    for site, _ in calls_of(evaluator, ROOTS, {"initialize"}):
        config = configuration(evaluator, site)
        sizes = batch_sizes(evaluator, config)
        values = dict(_values(config))
        values["accumulation"] = sizes[STEPS]
        pipelined = "train_batch" in evaluator.project.calls_by_name
        data = next((k.value for k in site.call.keywords if k.arg == "training_data"), None)
        own = {"micro_batch": sizes[MICRO]}
        return LibraryJob(
            site=site,
            owns_loop=pipelined,
            steps_inside=True,
            values=values | own if data is not None or pipelined else values,
            defaults=own,
            fetches=(Fetch(data, site.scope, data),) if data is not None else (),
        )
    return None


def configuration(evaluator: Evaluator, site: CallSite) -> Value:
    """The dictionary or file given as `config` (or `config_params`)."""
    frame = evaluator.frame(site.scope)
    for name in ("config", "config_params"):
        value = argument(evaluator, site.call, frame, name)
        if value is not None:
            return _loaded(evaluator, value)
    given = argument(evaluator, site.call, frame, "args")
    held = None
    if given is not None:
        held = attribute(evaluator, given, "deepspeed_config")
    if isinstance(held, Known) and held.value is not None:
        return _loaded(evaluator, held)
    return Unknown("the configuration of DeepSpeed is not written in plain sight")


def _loaded(evaluator: Evaluator, value: Value) -> Value:
    if not isinstance(value, Known) or not isinstance(value.value, str):
        return value
    held = file_value(evaluator, value.value, "json")
    if isinstance(held, Record) and evaluator.project.half_typed:
        missing = Unknown(f"a line of the job or of {value.value} is half typed")
        return Record(dict.fromkeys(_KEYS, missing) | dict(held.fields))
    return held or Unknown(f"the configuration {value.value} is not there")


def batch_sizes(evaluator: Evaluator, config: Value) -> dict[str, Value]:
    """The three batch sizes, each given or derived from the others and the processes."""
    if not isinstance(config, Record):
        reason = config.reason if isinstance(config, Unknown) else "it is no dictionary"
        return dict.fromkeys((ROWS, MICRO, STEPS), Unknown(reason))
    n_processes = evaluator.launch.n_processes
    world = Known(n_processes, (Origin("launcher", "world_size", n_processes),))
    rows, micro, steps = (_number(config, name) for name in (ROWS, MICRO, STEPS))
    if micro is None and rows is not None:
        steps = steps or Known(1)
        micro = _divide(_divide(rows, steps), world)
    elif steps is None and micro is not None:
        steps = _divide(_divide(rows, micro), world) if rows is not None else Known(1)
    if micro is None or steps is None:
        unclear = Unknown("DeepSpeed's configuration holds no batch size")
        return {ROWS: rows or unclear, MICRO: micro or unclear, STEPS: steps or unclear}
    product = binary(ast.Mult(), binary(ast.Mult(), micro, steps), world)
    if rows is not None and plain(rows) != plain(product) and isinstance(product, Known):
        unclear = Unknown("DeepSpeed's batch sizes contradict each other")
        return {ROWS: unclear, MICRO: unclear, STEPS: unclear}
    return {ROWS: rows or product, MICRO: micro, STEPS: steps}


def _number(config: Record, name: str) -> Value | None:
    """A batch size; None where it is left out, unknown where something else fills it in."""
    value = config.fields.get(name)
    if value is None or (isinstance(value, Known) and value.value is None):
        return None
    if isinstance(value, Known) and whole(value) is None:
        return Unknown(f"`{name}` is {value.value!r}, to be filled in elsewhere")
    return value


def _divide(whole_value: Value, part: Value) -> Value:
    return binary(ast.FloorDiv(), whole_value, part)


def _values(config: Value) -> Iterator[tuple[str, Value]]:
    if not isinstance(config, Record):
        reason = config.reason if isinstance(config, Unknown) else "it is no dictionary"
        for name in ("clip", "precision", "parameters"):
            yield name, Unknown(reason)
        return
    clip = config.fields.get("gradient_clipping", Known(0.0))
    unclear = Unknown("gradient_clipping is to be filled in elsewhere")
    yield "clip", unclear if plain(clip) == "auto" else clip_of(clip)
    yield from _formats(config)
    optimizer = config.fields.get("optimizer")
    if isinstance(optimizer, Record):
        yield from _optimizer(optimizer)


def _formats(config: Record) -> Iterator[tuple[str, Value]]:
    for key, form in (("bf16", "bf16"), ("bfloat16", "bf16"), ("fp16", "fp16")):
        section = config.fields.get(key)
        if section is None:
            continue
        enabled = section.fields.get("enabled") if isinstance(section, Record) else section
        if isinstance(enabled, Known) and isinstance(enabled.value, bool):
            if enabled.value:
                value = Known(form, enabled.origins, enabled.place)
                yield "precision", value
                yield "parameters", value
                return
        elif enabled is not None:
            unclear = Unknown(f"whether {key} is enabled is not known")
            yield "precision", unclear
            yield "parameters", unclear
            return


def _optimizer(section: Record) -> Iterator[tuple[str, Value]]:
    yield "optimizer", section.fields.get("type", Unknown("its type is not written"))
    params = section.fields.get("params")
    fields = params.fields if isinstance(params, Record) else {}
    for name in ("lr", "weight_decay"):
        value = fields.get(name)
        if value is not None:
            filled = Unknown(f"`{name}` is to be filled in elsewhere")
            yield name, filled if plain(value) == "auto" else value
    betas = fields.get("betas")
    if isinstance(betas, Many) and all(isinstance(item, Known) for item in betas.items):
        known = [item for item in betas.items if isinstance(item, Known)]
        origins = tuple(origin for item in known for origin in item.origins)
        yield "betas", Known(f"({', '.join(str(item.value) for item in known)})", origins)
