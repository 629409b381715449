"""The Trainer of transformers and of trl: its arguments, its rows, the loss of its model."""

import ast
from collections.abc import Iterator

from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.flow import Fetch, calls_loss
from infrarsi.reading.pipelines import dataset_calls
from infrarsi.reading.project import CallSite
from infrarsi.reading.scopes import Scope
from infrarsi.reading.syntax import unparse
from infrarsi.reading.trainers.callees import calls_of
from infrarsi.reading.trainers.dialects import flag_formats
from infrarsi.reading.trainers.library_job import LibraryJob
from infrarsi.reading.trainers.settings import (
    Settings,
    clip_of,
    plain,
    settings_of,
    whole,
)
from infrarsi.reading.trainers.training_arguments import (
    SFT_CONFIG,
    TRAINING_ARGUMENTS,
    optimizer_name,
)
from infrarsi.reading.values import ClassValue, Known, Made, Unknown, Value

ROOTS = {"transformers", "trl"}
_TRAINERS = {"Trainer", "Seq2SeqTrainer", "SFTTrainer"}


def read_trainer(evaluator: Evaluator) -> LibraryJob | None:
    """What the first Trainer says."""
    for site, callee in calls_of(evaluator, ROOTS, _TRAINERS):
        settings = _settings(evaluator, site)
        own = callee.scope if isinstance(callee, ClassValue) else None
        loader = _method(own, "get_train_dataloader")
        values = dict(_values(evaluator, settings, site, own))
        if loader is not None:
            del values["micro_batch"]
        return LibraryJob(
            site=site,
            owns_loop=True,
            values=values,
            replicas=_replicas(evaluator),
            step=_method(own, "compute_loss"),
            fetches=tuple(_fetches(evaluator, site, loader)),
            splits_rows=_splits_rows(evaluator, settings),
        )
    return None


def _settings(evaluator: Evaluator, site: CallSite) -> Settings:
    """The Trainer's `args`; where there are none, the defaults."""
    frame = evaluator.frame(site.scope)
    given = _argument(site.call, "args", 1)
    value = evaluator.value(given, frame) if given is not None else None
    is_sft = site.name == "SFTTrainer"
    callee = value.callee if isinstance(value, Made) else ""
    is_sft = is_sft if not callee else callee.endswith("SFTConfig")
    settings = settings_of(evaluator, value, SFT_CONFIG if is_sft else TRAINING_ARGUMENTS)
    return settings if settings.made is not None else settings.placed(site.call, site.scope)


def _argument(call: ast.Call, name: str, position: int | None) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    given = position is not None and position < len(call.args)
    return call.args[position] if given and position is not None else None


def _values(
    evaluator: Evaluator, settings: Settings, site: CallSite, own: Scope | None
) -> Iterator[tuple[str, Value]]:
    searched = settings.is_on("auto_find_batch_size")
    found = Unknown("`auto_find_batch_size` may make it smaller at run time")
    micro = settings.number("per_device_train_batch_size")
    yield "micro_batch", micro if searched is False else found
    yield "accumulation", settings.number("gradient_accumulation_steps")
    length = _sequence_length(settings)
    if length is not None:
        yield "seq_len", length
    yield "clip", clip_of(settings.get("max_grad_norm"))
    precision = _precision(settings)
    if precision is not None:
        yield "precision", precision
    yield "seed", settings.number("seed")
    yield "updates", _updates(settings)
    if (
        _argument(site.call, "optimizers", None) is None
        and _method(own, "create_optimizer") is None
    ):
        yield from _optimizer(settings)
    yield from _loss(evaluator, settings, site, own)


def _precision(settings: Settings) -> Value | None:
    """The format of autocast; None where there is none."""
    value = flag_formats(settings, "bf16", "fp16")
    if value is None and settings.get("bf16") is None:
        return Unknown("whether SFTConfig turns bf16 on by itself depends on trl's version")
    return value


def _sequence_length(settings: Settings) -> Value | None:
    """SFT: rows are filled up to `max_length` where they are packed, else at most so long."""
    if settings.defaults is not SFT_CONFIG:
        return None
    length = settings.get("max_length") or settings.get("max_seq_length")
    if settings.is_on("packing") is not True:
        return Unknown("rows are not packed: they are as long as their texts, or cut")
    if length is None:
        return Unknown("`max_length` is not set, and its default depends on trl's version")
    return length


def _updates(settings: Settings) -> Value:
    steps = settings.get("max_steps")
    if steps is not None and (whole(steps) is not None or isinstance(steps, Unknown)):
        return steps
    return Unknown("the run is bounded in epochs; its steps depend on the data")


def _optimizer(settings: Settings) -> Iterator[tuple[str, Value]]:
    optim = settings.get("optim")
    name = optimizer_name(str(plain(optim))) if isinstance(optim, Known) else None
    if name is None or not isinstance(optim, Known):
        yield "optimizer", Unknown("the optimizer named by `optim` is not one that is understood")
    else:
        yield "optimizer", Known(name, optim.origins, optim.place)
    yield "lr", settings.number("learning_rate")
    yield "weight_decay", settings.number("weight_decay")
    betas = [settings.number("adam_beta1"), settings.number("adam_beta2")]
    known = [beta for beta in betas if isinstance(beta, Known)]
    if name in {"AdamW", "Adam"} and len(known) == 2:
        origins = (*known[0].origins, *known[1].origins)
        place = next((beta.place for beta in known if beta.origins), known[0].place)
        yield "betas", Known(f"({known[0].value}, {known[1].value})", origins, place)


def _loss(
    evaluator: Evaluator, settings: Settings, site: CallSite, own: Scope | None
) -> Iterator[tuple[str, Value]]:
    if _argument(site.call, "compute_loss_func", None) is not None:
        given = _argument(site.call, "compute_loss_func", None)
        name = unparse(given) if given is not None else ""
        yield (
            "loss",
            Known(name.rpartition(".")[2], (), site.scope.source.place(given or site.call)),
        )
        return
    method = _method(own, "compute_loss")
    if method is not None:
        if not any(calls_loss(evaluator, s) for s in evaluator.project.calls if s.scope is method):
            yield "loss", Known("compute_loss", (), None)
        return
    smoothed = plain(settings.get("label_smoothing_factor"))
    name = "label_smoother" if smoothed else "outputs.loss"
    yield "loss", Known(name, (), site.scope.source.place(site.call))


def _replicas(evaluator: Evaluator) -> Value | None:
    if "ParallelismConfig" in evaluator.project.calls_by_name:
        return Unknown("how many processes share one batch is set by ParallelismConfig")
    return None


def _splits_rows(evaluator: Evaluator, settings: Settings) -> bool | None:
    held = settings.get("accelerator_config")
    if isinstance(held, Made):
        return settings_of(evaluator, held, {"split_batches": False}).is_on("split_batches")
    return settings.is_on("split_batches")


def _method(own: Scope | None, name: str) -> Scope | None:
    """A method the workspace's Trainer overrides."""
    inner = own.inner.values() if own is not None else ()
    return next((scope for scope in inner if scope.name == name), None)


def _fetches(evaluator: Evaluator, site: CallSite, loader: Scope | None) -> Iterator[Fetch]:
    """The training rows: the dataset, what it was mapped through, how rows are put together."""
    for event in loader.returns if loader is not None else ():
        if event.value is not None:
            yield Fetch(event.value, loader or site.scope, event.node)
    dataset = _argument(site.call, "train_dataset", 3)
    if dataset is not None:
        yield Fetch(dataset, site.scope, dataset)
        yield from dataset_calls(evaluator, dataset, site.scope)
    collator = _argument(site.call, "data_collator", 2)
    if collator is not None:
        yield Fetch(collator, site.scope, collator)
