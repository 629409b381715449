"""A made-up job with additive effects, a memory ceiling and a patch that breaks: for the search."""

import itertools
import math

import numpy as np

PATCHES = ("bf16", "sdpa", "fused", "sync")
SPACE = {
    "knobs": {
        "threads": {"type": "ordinal", "choices": [1, 2], "kind": "setting", "default": 1},
        "micro_batch": {
            "type": "ordinal",
            "choices": [1, 2, 4, 8],
            "kind": "setting",
            "default": 2,
        },
        **{p: {"type": "bool", "choices": [False, True], "kind": "patch"} for p in PATCHES},
    }
}
CLAIMS = (
    {"knob": "bf16", "value": True, "log_speedup": 0.5, "sd": 0.3},
    {"knob": "sdpa", "value": True, "log_speedup": 0.15, "sd": 0.2, "memory_role": "saver"},
    {"knob": "fused", "value": True, "log_speedup": 0.03, "sd": 0.05},
    {"knob": "sync", "value": True, "log_speedup": 0.02, "sd": 0.05},
)
BASELINE = {"threads": 1, "micro_batch": 2, **dict.fromkeys(PATCHES, False)}


def all_settings():
    names = list(SPACE["knobs"])
    choices = (SPACE["knobs"][n]["choices"] for n in names)
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*choices)]


class ToyCluster:
    """Effects drawn from a seed; `breaks` names a patch that crashes."""

    def __init__(self, seed, breaks=None):
        rng = np.random.default_rng(seed)
        self.effects = {
            "threads": -rng.uniform(-0.2, 0.5),
            "micro_batch": rng.normal(-0.03, 0.08),
            "bf16": -rng.uniform(0.0, 0.8),
            "sdpa": -rng.uniform(-0.1, 0.5),
            "fused": -rng.uniform(-0.1, 0.1),
            "sync": -rng.uniform(-0.03, 0.08),
        }
        self.capacity_gib = float(rng.uniform(1.2, 2.6))
        self.saved = float(rng.uniform(0, 0.4))
        self.breaks = breaks
        self.noise = rng

    def outcome(self, setting, noisy=True):
        if self.breaks and setting[self.breaks]:
            return {"status": "crashed"}
        doublings = math.log2(setting["micro_batch"] / 2)
        peak = 0.2 + 0.8 * math.exp(0.6 * doublings - self.saved * setting["sdpa"])
        if peak > self.capacity_gib:
            return {"status": "oom", "mem_at_least_gib": self.capacity_gib}
        log = math.log(2) + self.effects["micro_batch"] * doublings
        log += self.effects["threads"] * (setting["threads"] == 2)
        log += sum(self.effects[p] for p in PATCHES if setting[p])
        noise = 0.04 * self.noise.standard_normal() if noisy else 0.0
        return {"status": "ok", "step_time_s": math.exp(log + noise), "peak_mem_gib": peak}

    def true_time(self, setting):
        return self.outcome(setting, noisy=False).get("step_time_s", math.inf)

    def regret(self, setting):
        return self.true_time(setting) / min(map(self.true_time, all_settings())) - 1
