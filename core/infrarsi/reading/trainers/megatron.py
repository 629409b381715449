"""Megatron's `pretrain`: its flags on the launch line, with the library's own defaults."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from infrarsi.frozen import Scalar
from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.operators import binary
from infrarsi.reading.project import CallSite
from infrarsi.reading.scopes import Scope
from infrarsi.reading.trainers.callees import calls_of
from infrarsi.reading.trainers.library_job import LibraryJob
from infrarsi.reading.trainers.settings import clip_of, plain, whole
from infrarsi.reading.values import FunctionValue, Known, Origin, Unknown, Value

ROOTS = {"megatron"}
_DEFAULTS: dict[str, Scalar | None] = {
    "clip-grad": 1.0,
    "weight-decay": 0.01,
    "adam-beta1": 0.9,
    "adam-beta2": 0.999,
    "optimizer": "adam",
    "seed": 1234,
    "tensor-model-parallel-size": 1,
    "pipeline-model-parallel-size": 1,
    "context-parallel-size": 1,
}
"""From Megatron-LM's `megatron/training/arguments.py`."""
_RAMPS = ("rampup-batch-size", "step-batch-size-schedule")
_PARALLEL = ("tensor-model-parallel-size", "pipeline-model-parallel-size", "context-parallel-size")


@dataclass(frozen=True)
class Flags:
    """The flags of a launch line; what is not given has Megatron's default."""

    evaluator: Evaluator
    given: Mapping[str, str | None]

    def get(self, name: str) -> Value | None:
        """A flag's value; None where it is neither given nor has a default."""
        if name not in self.given:
            return Known(_DEFAULTS[name]) if name in _DEFAULTS else None
        text = self.given[name]
        value: Scalar = True if text is None else _scalar(text)
        return self.evaluator.originate(Origin("argument", f"--{name}", value))

    def number(self, name: str) -> Value:
        """The same, unknown where it is not there."""
        return self.get(name) or Unknown(f"--{name} is not on the launch line")


def read_megatron(evaluator: Evaluator) -> LibraryJob | None:
    """What the launch line of the first `pretrain` says."""
    for site, _ in calls_of(evaluator, ROOTS, {"pretrain"}):
        flags = Flags(evaluator, dict(_flags(evaluator.launch.args)))
        replicas = _replicas(evaluator, flags)
        return LibraryJob(
            site=site,
            owns_loop=True,
            values=dict(_values(flags, replicas, _step(evaluator, site))),
            replicas=replicas,
            step=_step(evaluator, site),
        )
    return None


def _flags(args: tuple[str, ...]) -> Iterator[tuple[str, str | None]]:
    for number, word in enumerate(args):
        if not word.startswith("--"):
            continue
        name, equals, value = word[2:].partition("=")
        following = args[number + 1] if number + 1 < len(args) else "--"
        takes = equals or not following.startswith("--")
        yield name.replace("_", "-"), value if equals else following if takes else None


def _scalar(text: str) -> Scalar:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _replicas(evaluator: Evaluator, flags: Flags) -> Value:
    n_processes = evaluator.launch.n_processes
    value: Value = Known(n_processes, (Origin("launcher", "world_size", n_processes),))
    for name in _PARALLEL:
        value = binary(ast.FloorDiv(), value, flags.number(name))
    return value


def _values(flags: Flags, replicas: Value, step: Scope | None) -> Iterator[tuple[str, Value]]:
    micro = flags.number("micro-batch-size")
    yield "micro_batch", micro
    yield "accumulation", _accumulation(flags, micro, replicas)
    yield "seq_len", flags.number("seq-length")
    yield "clip", clip_of(flags.get("clip-grad"))
    form = next((name for name in ("bf16", "fp16") if name in flags.given), None)
    chosen = flags.get(form) if form is not None else None
    origins = chosen.origins if isinstance(chosen, Known) else ()
    yield "precision", Known(form or "fp32", origins)
    yield "parameters", Known(form or "fp32", origins)
    yield "optimizer", flags.number("optimizer")
    yield "lr", flags.number("lr")
    yield "weight_decay", flags.number("weight-decay")
    first, second = plain(flags.get("adam-beta1")), plain(flags.get("adam-beta2"))
    yield "betas", Known(f"({first}, {second})")
    yield "seed", flags.number("seed")
    yield "updates", _updates(flags)
    if step is not None:
        yield "loss", _loss(step)


def _accumulation(flags: Flags, micro: Value, replicas: Value) -> Value:
    for ramp in _RAMPS:
        if ramp in flags.given:
            return Unknown(f"--{ramp} changes the batch during the run")
    rows = flags.get("global-batch-size")
    if rows is None:
        return Known(1)
    return binary(ast.FloorDiv(), rows, binary(ast.Mult(), micro, replicas))


def _updates(flags: Flags) -> Value:
    samples, rows = flags.get("train-samples"), flags.get("global-batch-size")
    if whole(samples) is not None and samples is not None and rows is not None:
        return binary(ast.FloorDiv(), samples, rows)
    return flags.number("train-iters")


def _step(evaluator: Evaluator, site: CallSite) -> Scope | None:
    """The function of the job that makes a forward pass: the last positional of `pretrain`."""
    given = [k.value for k in site.call.keywords if k.arg == "forward_step_func"]
    given += site.call.args[3:4]
    for expression in given:
        value = evaluator.value(expression, evaluator.frame(site.scope))
        if isinstance(value, FunctionValue):
            return value.scope
    return None


def _loss(step: Scope) -> Value:
    """The loss function, which the forward step gives back beside the output."""
    for event in step.returns:
        match event.value:
            case (
                ast.Tuple(elts=[_, ast.Call(args=[ast.Name(id=name), *_])])
                | ast.Tuple(elts=[_, ast.Name(id=name)])
            ):
                return Known(name, (), step.source.place(event.value))
            case _:
                pass
    return Unknown("the loss function the forward step gives is not written in plain sight")
