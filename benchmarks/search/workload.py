"""A workload as a search sees it: space, static check, samples, noisy outcomes, job facts.

The knobs carry the workload's own spellings; `Workload.config` turns them into the simulator's.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any, Protocol

import numpy as np

from search.cluster import DEFAULTS, Config, Constants, Device, Model
from search.step import Step, run_step

Setting = dict[str, Any]
LAYOUT = ("tp", "pp", "cp", "ep", "dp", "mbs", "accum", "vpp")


@dataclass(frozen=True, kw_only=True)
class Knob:
    """A knob: `own` is the simulator's name, `choices` the spelled values, `means` theirs."""

    own: str
    name: str
    type: str
    choices: tuple[Any, ...]
    kind: str = "setting"
    means: tuple[Any, ...] = ()

    @property
    def values(self) -> tuple[Any, ...]:
        """The simulator's values, in the order of `choices`."""
        return self.means or self.choices


def plain_space(knobs: tuple[Knob, ...]) -> dict[str, Any]:
    """The knobs as `Searcher` takes a space."""
    return {
        "knobs": {
            k.name: {"type": k.type, "choices": list(k.choices), "kind": k.kind} for k in knobs
        }
    }


@dataclass(frozen=True, kw_only=True)
class Break:
    """A conjunction of values that ends a trial, for instance in a compile error."""

    when: tuple[tuple[str, tuple[Any, ...]], ...]
    status: str

    def hits(self, c: Config) -> bool:
        """Whether every part of the conjunction holds."""
        return all(c.c[name] in values for name, values in self.when)


NEEDS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "seq_par": lambda c: c["tp"] > 1,
    "async_tp": lambda c: c["tp"] > 1,
    "comm_overlap": lambda c: c["tp"] > 1,
    "overlap_dispatch": lambda c: c["ep"] > 1,
    "delayed_scaling": lambda c: c["precision"] == "fp8",
    "tf32": lambda c: c["precision"] == "fp32",
}


def switch_off(c: dict[str, Any]) -> None:
    """Code switches that do not act as off: they change nothing and break nothing."""
    for name, needs in NEEDS.items():
        if c[name] and not needs(c):
            c[name] = False


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Everything about one simulated job."""

    name: str
    model: Model
    device: Device
    gpus: int
    constants: Constants
    knobs: tuple[Knob, ...]
    baseline: Setting
    fixed: dict[str, Any] = field(default_factory=dict)
    breaks: tuple[Break, ...] = ()
    facts: tuple[str, ...] | None = None
    noise: float = 0.013
    ep_inside_dp: bool = True
    strict_seq_par: bool = False
    says_memory: float = 0.75

    @cached_property
    def space(self) -> dict[str, Any]:
        """The space as `Searcher` takes it."""
        return plain_space(self.knobs)

    @cached_property
    def job(self) -> dict[str, Any]:
        """Facts about the job in the names of `Searcher`'s `job`."""
        m, d = self.model, self.device
        known = {
            **{n: getattr(m, n) for n in ("layers", "d_model", "heads") if hasattr(m, n)},
            "d_model": m.d,
            "kv_heads": m.kv,
            "head_dim": m.head_dim,
            "ffn": m.ffn,
            "vocab": m.vocab,
            "seq": m.seq,
            "global_batch": m.global_batch,
            "params_dense": m.dense_params,
            "hardware": d.name,
            "gpus": self.gpus,
            "gpus_per_node": d.gpus_per_node,
            "capacity_gib": d.capacity_gib,
            "peak_bf16": d.peak_bf16,
            "hbm": d.hbm,
            "nvlink": d.nvlink,
            "ib": d.ib,
        }
        if d.peak_fp8:
            known["peak_fp8"] = d.peak_fp8
        if m.experts:
            known |= {"experts": m.experts, "top_k": m.top_k, "params_expert": m.expert_params}
        return known if self.facts is None else {n: known[n] for n in self.facts}

    @cached_property
    def _translate(self) -> dict[str, tuple[str, dict[Any, Any]]]:
        return {
            k.name: (k.own, dict(zip(map(key, k.choices), k.values, strict=True)))
            for k in self.knobs
        }

    @cached_property
    def knob_of(self) -> dict[str, Knob]:
        """Knobs by the simulator's name."""
        return {k.own: k for k in self.knobs}

    def config(self, setting: Setting) -> Config:
        """The simulator's configuration of a complete setting."""
        c = {**DEFAULTS, **self.fixed}
        for name, value in setting.items():
            own, values = self._translate[name]
            c[own] = values[key(value)]
        c["asked_seq_par"] = c["seq_par"]
        switch_off(c)
        return Config(c, self.gpus, self.model)

    def valid(self, setting: Setting) -> str | None:
        """The static reason a setting is not allowed, or None."""
        return reason(self, self.config(setting))

    @cached_property
    def layouts(self) -> list[Setting]:
        """Every allowed combination of the layout's knobs."""
        knobs = [k for k in self.knobs if k.own in LAYOUT]
        rest = {k.name: k.choices[0] for k in self.knobs if k.own not in LAYOUT}
        off = {"seq_par": False, "zero": 0}
        for own, value in off.items():
            if own in self.knob_of:
                k = self.knob_of[own]
                if value in k.values:
                    rest[k.name] = k.choices[k.values.index(value)]
        found = []
        for values in product(*(k.choices for k in knobs)):
            part = {k.name: v for k, v in zip(knobs, values, strict=True)}
            if self.valid({**rest, **part}) is None:
                found.append(part)
        return found

    def sample(self, rng: np.random.Generator) -> Setting:
        """A random allowed setting: a layout and everything else, drawn until allowed."""
        while True:
            layout = self.layouts[int(rng.integers(len(self.layouts)))]
            setting = {k.name: k.choices[int(rng.integers(len(k.choices)))] for k in self.knobs}
            setting.update(layout)
            if self.valid(setting) is None:
                return setting

    def repaired(self, setting: Setting, rng: np.random.Generator) -> Setting:
        """The setting with a sampled layout; the whole sample where that is not allowed."""
        drawn = self.sample(rng)
        for _ in range(50):
            layout = {k.name: drawn[k.name] for k in self.knobs if k.own in LAYOUT}
            if self.valid(setting | layout) is None:
                return setting | layout
            drawn = self.sample(rng)
        return drawn

    def true_step(self, setting: Setting) -> Step:
        """Noiseless seconds and GiB, whether or not the trial would survive."""
        return run_step(self.model, self.device, self.constants, self.config(setting))

    def fate(self, setting: Setting) -> str:
        """How a noiseless trial ends."""
        return fate(self, self.config(setting), self.true_step(setting))

    def true_time(self, setting: Setting) -> float:
        """Noiseless seconds, infinite where the trial would not survive."""
        step = self.true_step(setting)
        return step.seconds if fate(self, self.config(setting), step) == "ok" else math.inf

    @cached_property
    def limit_s(self) -> float:
        """Seconds after which a step counts as a timeout."""
        return 6 * self.true_step(self.baseline).seconds

    def run(self, setting: Setting, rng: np.random.Generator) -> dict[str, Any]:
        """One trial's outcome: 1 to 2 % of noise, stragglers, failures."""
        luck = draw(rng, self.noise)
        why = self.valid(setting)
        if why is not None:
            return {"status": "rejected"}
        step = self.true_step(setting)
        peak = step.peak_gib * luck["memory"]
        ends = fate(self, self.config(setting), Step(seconds=step.seconds, peak_gib=peak))
        seconds = step.seconds * luck["time"]
        match ends:
            case "ok":
                return {"status": "ok", "step_time_s": seconds, "peak_mem_gib": peak}
            case "nan":
                return {"status": "nan", "step_time_s": seconds, "peak_mem_gib": peak}
            case "oom":
                said = min(peak, self.device.capacity_gib * (0.97 + 0.3 * luck["said"]))
                known = luck["says"] < self.says_memory
                return {"status": "oom"} | ({"mem_at_least_gib": said} if known else {})
            case other:
                return {"status": other}


class Searched(Protocol):
    """What a search may ask of a job: `Workload` here, `recorded.Table` there."""

    @property
    def knobs(self) -> tuple[Knob, ...]: ...
    def valid(self, setting: Setting) -> str | None: ...
    def sample(self, rng: np.random.Generator) -> Setting: ...
    def repaired(self, setting: Setting, rng: np.random.Generator) -> Setting: ...


def key(value: Any) -> tuple[str, Any]:
    """A dictionary key that keeps True and 1 apart."""
    return (type(value).__name__, value)


def draw(rng: np.random.Generator, noise: float) -> dict[str, float]:
    """One trial's luck; always the same number of draws."""
    time, memory = rng.normal(0.0, noise), rng.normal(0.0, 0.003)
    slow, how_slow, says, said = rng.random(4)
    straggler = 1.1 + 0.2 * how_slow if slow < 0.05 else 1.0
    return {
        "time": math.exp(time) * straggler,
        "memory": math.exp(memory),
        "says": float(says),
        "said": float(said),
    }


def fate(w: Workload, c: Config, step: Step) -> str:
    """How a trial ends: what fails first is what is told."""
    hits = [b.status for b in w.breaks if b.hits(c)]
    for status in ("compile_error", "crashed"):
        if status in hits:
            return status
    if step.peak_gib > w.device.capacity_gib:
        return "oom"
    if "timeout" in hits or step.seconds > w.limit_s:
        return "timeout"
    return "nan" if "nan" in hits else "ok"


def reason(w: Workload, c: Config) -> str | None:
    """The first static reason against a configuration."""
    return next(reasons(w, c), None)


def reasons(w: Workload, c: Config) -> Iterator[str]:
    """Every static reason: products, divisibility, what a switch needs."""
    m = w.model
    product_of = c["tp"] * c["pp"] * c["cp"]
    if w.gpus % product_of or ("dp" in c.c and c.c["dp"] * product_of != w.gpus):
        yield f"degrees must multiply to {w.gpus}"
        return
    if m.global_batch % (c.dp * c["mbs"]) or m.global_batch < c.dp * c["mbs"]:
        yield "the global batch is not a whole number of micro-batches"
        return
    if "accum" in c.c and c.c["accum"] != c.accum:
        yield "accumulation does not give the global batch"
    if m.heads % c["tp"] or m.kv % c["tp"]:
        yield "heads do not divide by the tensor-parallel degree"
    if m.layers % (c["pp"] * c["vpp"]):
        yield "layers do not divide by the stages"
    if c["vpp"] > 1 and (c["pp"] == 1 or c.accum % c["pp"]):
        yield "virtual stages need a pipeline and whole rounds of micro-batches"
    if m.experts and (m.experts % c["ep"] or (c.dp * c["cp"]) % c["ep"]):
        yield "experts or replicas do not divide by the expert-parallel degree"
    if m.seq % (2 * c["cp"] * c["tp"]):
        yield "the sequence does not divide"
    if w.strict_seq_par and c["asked_seq_par"] and c["tp"] == 1:
        yield "sequence parallelism needs tensor parallelism"
    if c["zero"] >= 2 and c["pp"] > 1:
        yield "gradients cannot be sharded under a pipeline"
