"""Lightning's Trainer: its arguments, the module's training step, and the loader it is given."""

import ast
from collections.abc import Iterator

from infrarsi.frozen import Scalar
from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.flow import Fetch
from infrarsi.reading.objects import member
from infrarsi.reading.project import CallSite
from infrarsi.reading.scopes import Scope
from infrarsi.reading.trainers.callees import calls_of
from infrarsi.reading.trainers.devices import lightning_world
from infrarsi.reading.trainers.dialects import lightning_formats
from infrarsi.reading.trainers.library_job import LibraryJob
from infrarsi.reading.trainers.settings import Settings, clip_of, settings_of, whole
from infrarsi.reading.values import FunctionValue, Instance, Known, Made, Record, Unknown, Value

ROOTS = {"lightning", "pytorch_lightning", "lightning_fabric"}
_DEFAULTS: dict[str, Scalar | None] = {
    "accumulate_grad_batches": 1,
    "gradient_clip_val": None,
    "max_steps": -1,
    "num_nodes": 1,
}
"""From the signature of `lightning.pytorch.Trainer`."""
_LOADER = "train_dataloader"


def read_lightning(evaluator: Evaluator) -> LibraryJob | None:
    """What the first Trainer that fits a module says."""
    for site, _ in calls_of(evaluator, ROOTS, {"Trainer"}):
        frame = evaluator.frame(site.scope)
        made = Made("lightning.Trainer", site.call, frame)
        settings = settings_of(evaluator, made, _DEFAULTS)
        fit = _fit(evaluator, site)
        module = evaluator.value(fit.call.args[0], evaluator.frame(fit.scope)) if fit else None
        module = module if isinstance(module, Instance) else None
        return LibraryJob(
            site=site,
            owns_loop=True,
            values=dict(_values(evaluator, settings, module)),
            replicas=_replicas(evaluator),
            step=_method(evaluator, module, "training_step"),
            fetches=tuple(_fetches(evaluator, fit, module)),
        )
    return None


def _values(
    evaluator: Evaluator, settings: Settings, module: Instance | None
) -> Iterator[tuple[str, Value]]:
    yield "world_size", lightning_world(evaluator, settings)
    manual = _is_manual(module)
    unclear = Unknown("the module steps its optimizers itself (manual optimization)")
    yield "accumulation", unclear if manual else _accumulation(evaluator, settings)
    yield "clip", unclear if manual else clip_of(settings.get("gradient_clip_val"))
    formats = lightning_formats(settings.get("precision"))
    if formats.precision is not None:
        yield "precision", formats.precision
    if formats.parameters is not None:
        yield "parameters", formats.parameters
    yield "updates", _updates(settings)


def _accumulation(evaluator: Evaluator, settings: Settings) -> Value:
    if "GradientAccumulationScheduler" in evaluator.project.calls_by_name:
        return Unknown("accumulation follows a schedule (GradientAccumulationScheduler)")
    if isinstance(settings.get("accumulate_grad_batches"), Record):
        return Unknown("accumulation follows a schedule of epochs")
    return settings.number("accumulate_grad_batches")


def _updates(settings: Settings) -> Value:
    short = settings.get("fast_dev_run")
    if short is not None and (not isinstance(short, Known) or short.value):
        return Unknown("`fast_dev_run` ends the run early")
    steps = settings.get("max_steps")
    if whole(steps) is not None and steps is not None:
        return steps
    if isinstance(steps, Unknown):
        return steps
    return Unknown("the run is bounded in epochs; its steps depend on the data")


def _is_manual(module: Instance | None) -> bool:
    """Whether the module says `self.automatic_optimization = False`."""
    scopes = module.of.scope.inner.values() if module is not None else ()
    return any(
        isinstance(event.value, ast.Constant) and event.value.value is False
        for scope in scopes
        for event in scope.events.get("self.automatic_optimization", [])
    )


def _replicas(evaluator: Evaluator) -> Value | None:
    if "ModelParallelStrategy" in evaluator.project.calls_by_name:
        return Unknown("how many processes share one batch is the strategy's choice")
    return None


def _fit(evaluator: Evaluator, trainer: CallSite) -> CallSite | None:
    """The call `trainer.fit(module, ...)`."""
    for site in evaluator.project.calls_by_name.get("fit", []):
        func = site.call.func
        if isinstance(func, ast.Attribute) and site.call.args:
            value = evaluator.value(func.value, evaluator.frame(site.scope))
            if isinstance(value, Made | Instance) and value.call is trainer.call:
                return site
    return None


def _method(evaluator: Evaluator, holder: Instance | None, name: str) -> Scope | None:
    found = member(evaluator, holder, name) if holder is not None else None
    return found.scope if isinstance(found, FunctionValue) else None


def _fetches(
    evaluator: Evaluator, fit: CallSite | None, module: Instance | None
) -> Iterator[Fetch]:
    """The loader given to `fit`, or what `train_dataloader` of data or module gives."""
    keywords = {k.arg: k.value for k in fit.call.keywords} if fit is not None else {}
    positional = fit.call.args if fit is not None else []
    for number, name in ((1, "train_dataloaders"), (3, "datamodule")):
        given = keywords.get(name) or (positional[number] if number < len(positional) else None)
        if given is None or fit is None or isinstance(given, ast.Starred):
            continue
        value = evaluator.value(given, evaluator.frame(fit.scope))
        method = _method(evaluator, value if isinstance(value, Instance) else None, _LOADER)
        if method is None:
            yield Fetch(given, fit.scope, given)
        else:
            yield from _returned(method)
    method = _method(evaluator, module, _LOADER)
    if method is not None:
        yield from _returned(method)


def _returned(scope: Scope) -> Iterator[Fetch]:
    for event in scope.returns:
        if event.value is not None:
            yield Fetch(event.value, scope, event.node)
