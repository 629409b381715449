"""The probe's configuration: the JSON file of the shape `ProbeConfig`, read without pydantic.

Unknown keys are ignored, so that an older probe reads a newer runner's file.
"""

import json
from pathlib import Path

DEFAULTS = {
    "mode": "timed",
    "evidence_dir": ".",
    "control_socket": None,
    "warmup_steps": 2,
    "window_steps": 10,
    "max_steps": 100_000,
    "hash_key": "0",
    "seed": None,
    "memory_budget_bytes": None,
    "audit_steps": (),
    "audit_limit_bytes": 4 << 30,
    "redo_steps": (),
    "natural_steps": (),
    "redo_dir": None,
    "autocast": None,
    "rounds_weights": False,
    "spans": (),
    "source_root": None,
}


class Config:
    """The keys of `ProbeConfig` as attributes; `spans` are dictionaries."""

    def __init__(self, values):
        for key, default in DEFAULTS.items():
            setattr(self, key, values.get(key, default))

    @property
    def end_step(self):
        """Number of steps after which a run without control ends by itself."""
        if self.mode == "redo":
            return max(self.redo_steps) + 1
        if self.control_socket:
            return self.max_steps
        floor = 2 if self.mode == "preflight" else 1
        return min(self.max_steps, max(floor, self.warmup_steps + self.window_steps))

    @property
    def first_recorded(self):
        """Index of the first step that is recorded."""
        return self.warmup_steps


def read_config(path):
    """The configuration at `path`. Raises OSError or ValueError where it cannot be read."""
    return Config(json.loads(Path(path).read_text("utf-8")))
