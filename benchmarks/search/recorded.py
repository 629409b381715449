"""Searching among recorded runs: every model and number of GPUs of the nanotron table.

The recorded configurations are the whole allowed space; a crash is out of memory where the
table's inference says memory, else a crash. Counts trials until within 5 % of the best recorded,
and judges what `predict` says of memory after 8 trials.
"""

import csv
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from infrarsi.errors import UsageError
from infrarsi.search import Searcher
from search.methods import RandomValid
from search.workload import Knob, Setting, plain_space

FILE = Path(__file__).parent / "data" / "nanotron.csv"
CAPACITY_GIB = 79.14
NEAR_GIB = 60.0
WITHIN = 1.05
MODELS = {
    "nanotron-1b": {"layers": 16, "d_model": 2048, "heads": 32, "head_dim": 64, "ffn": 8192},
    "nanotron-8b": {"layers": 32, "d_model": 4096, "heads": 32, "head_dim": 128, "ffn": 14336},
    "nanotron-80b": {"layers": 80, "d_model": 8192, "heads": 64, "head_dim": 128, "ffn": 28672},
}
PARAMS = {"nanotron-1b": 1342244864, "nanotron-8b": 8858636288, "nanotron-80b": 79995084800}
COLUMNS = {
    "tp": "tp",
    "pp": "pp",
    "micro_batch_size": "micro_batch_seqs",
    "zero_stage": "zero_stage",
}
Place = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A recorded run."""

    setting: Setting
    status: str
    seconds: float
    peak_gib: float

    @property
    def outcome(self) -> dict[str, Any]:
        """As a trial would tell it."""
        if self.status != "ok":
            return {"status": self.status}
        return {"status": "ok", "step_time_s": self.seconds, "peak_mem_gib": self.peak_gib}


@dataclass(frozen=True, kw_only=True)
class Table:
    """The recorded runs of one model on one number of GPUs, as a job to search."""

    name: str
    model: str
    gpus: int
    rows: dict[Place, Row]
    knobs: tuple[Knob, ...]
    tried: set[Place] = field(default_factory=set)

    @cached_property
    def space(self) -> dict[str, Any]:
        """The space as `Searcher` takes it."""
        return plain_space(self.knobs)

    @property
    def job(self) -> dict[str, Any]:
        """What the table's page says of the job."""
        heads = MODELS[self.model]["heads"]
        return {
            **MODELS[self.model],
            "kv_heads": heads,
            "vocab": 131072,
            "seq": 4096,
            "global_batch": 256,
            "params_dense": PARAMS[self.model],
            "hardware": "H100-SXM-80GB",
            "gpus": self.gpus,
            "gpus_per_node": 8,
            "framework": "nanotron v0.5",
            "precision": "bf16 (fp32 grad accumulation)",
            "optimizer": "AdamW, ZeRO stage 0/1",
            "attn_impl": "flash-attn 2",
            "act_ckpt_class": "assumed_none",
            "tied_embeddings": self.model == "nanotron-1b",
            "gated_mlp": True,
            "capacity_gib": CAPACITY_GIB,
            "peak_bf16": 989.4e12,
            "hbm": 3.35e12,
            "nvlink": 450e9,
            "ib": 50e9,
        }

    def place(self, setting: Setting) -> Place:
        """A setting's key."""
        return tuple(setting[name] for name in COLUMNS)

    def valid(self, setting: Setting) -> str | None:
        """Whether the table has it."""
        return None if self.place(setting) in self.rows else "not recorded"

    def sample(self, rng: np.random.Generator) -> Setting:
        """Any recorded setting."""
        rows = list(self.rows.values())
        return dict(rows[int(rng.integers(len(rows)))].setting)

    def repaired(self, setting: Setting, rng: np.random.Generator) -> Setting:
        """The nearest recorded setting that was not tried, by ranks."""
        left = [row.setting for place, row in self.rows.items() if place not in self.tried]
        return dict(min(left, key=lambda other: self.distance(setting, other) + 0.1 * rng.random()))

    def distance(self, one: Setting, other: Setting) -> float:
        """Steps of rank between two settings."""
        return float(
            sum(
                abs(k.choices.index(one[k.name]) - k.choices.index(other[k.name]))
                for k in self.knobs
            )
        )

    @cached_property
    def best(self) -> float:
        """Seconds of the fastest recorded run."""
        return min(row.seconds for row in self.rows.values() if row.status == "ok")

    def baseline(self, seed: int) -> Setting:
        """Where the user is: a run of the slower half."""
        good = sorted((r for r in self.rows.values() if r.status == "ok"), key=lambda r: r.seconds)
        slow = [r for r in good[len(good) // 2 :] if r.seconds > WITHIN * self.best]
        return dict(
            slow[int(np.random.default_rng([self.luck(seed), 5]).integers(len(slow)))].setting
        )

    def luck(self, seed: int) -> int:
        """A seed of this table's own, so that methods are not lucky on all tables at once."""
        return zlib.crc32(f"{self.name} {seed}".encode())


@cache
def recorded_rows() -> dict[tuple[str, int], dict[Place, Row]]:
    """Rows by model and number of GPUs."""
    found: dict[tuple[str, int], dict[Place, Row]] = {}
    with FILE.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            setting = {name: int(line[column]) for name, column in COLUMNS.items()}
            memory = line["oom_inferred"].startswith("oom_")
            bad = "oom" if memory else "crashed"
            ok = line["status"] == "ok"
            row = Row(
                setting=setting,
                status="ok" if ok else bad,
                seconds=float(line["step_time_s"]) if ok else float("inf"),
                peak_gib=float(line["peak_mem_gib"]) if ok else float("nan"),
            )
            rows = found.setdefault((line["model"], int(line["n_gpus"])), {})
            rows[tuple(setting.values())] = row
    return found


def tables() -> list[Table]:
    """Every table in which something ran, fresh."""
    return [
        Table(name=f"{model}-{gpus}", model=model, gpus=gpus, rows=rows, knobs=knobs_of(rows))
        for (model, gpus), rows in recorded_rows().items()
        if any(row.status == "ok" for row in rows.values())
    ]


def knobs_of(rows: dict[Place, Row]) -> tuple[Knob, ...]:
    """The table's columns and the values recorded."""
    found: list[Knob] = []
    for name in COLUMNS:
        choices = tuple(sorted({row.setting[name] for row in rows.values()}))
        kind = "parallelism" if name in ("tp", "pp") else "setting"
        found.append(Knob(own=name, name=name, type="ordinal", choices=choices, kind=kind))
    return tuple(found)


class OursOnTable:
    """`Searcher` on a table."""

    def __init__(self, table: Table, seed: int) -> None:
        self.searcher = Searcher(
            table.space, valid=table.valid, sample=table.sample, job=table.job, seed=seed
        )

    def ask(self) -> Setting:
        return self.searcher.ask()

    def tell(self, setting: Setting, outcome: dict[str, Any]) -> None:
        self.searcher.tell(setting, outcome)


def makers() -> dict[str, Callable[[Table, int], Any]]:
    """The methods tried on tables."""
    from search.peers import PEERS

    return {
        "ours": OursOnTable,
        "random": RandomValid,
        "optuna-tpe": PEERS["optuna-tpe"],
        "optuna-tpe-penalised": PEERS["optuna-tpe-penalised"],
    }


def trials_needed(table: Table, make: Callable[[Table, int], Any], seed: int) -> int:
    """Trials, the baseline's included, until one is within 5 % of the best recorded.

    What was tried already costs nothing when asked again, as a user would look it up.
    """
    method = make(table, table.luck(seed))
    setting, again = table.baseline(seed), 0
    rng = np.random.default_rng([table.luck(seed), 6])
    while True:
        place = table.place(setting)
        table.tried.add(place)
        row = table.rows[place]
        if row.seconds <= WITHIN * table.best:
            return len(table.tried)
        method.tell(setting, row.outcome)
        try:
            setting = method.ask()
        except UsageError:
            return len(table.rows)
        again = again + 1 if table.place(setting) in table.tried else 0
        if again > 10:
            setting, again = table.repaired(setting, rng), 0


def memory_cases(table: Table, seed: int, trials: int = 8) -> list[dict[str, Any]]:
    """What `predict` says of every row not told, after `trials` tells, the baseline among them."""
    method = OursOnTable(table, table.luck(seed))
    setting = table.baseline(seed)
    for _ in range(trials):
        table.tried.add(table.place(setting))
        method.tell(setting, table.rows[table.place(setting)].outcome)
        setting = method.ask()
    rest = [row for place, row in table.rows.items() if place not in table.tried]
    answers = method.searcher.predict([row.setting for row in rest])
    return [case(table, row, answer) for row, answer in zip(rest, answers, strict=True)]


def case(table: Table, row: Row, answer: dict[str, Any]) -> dict[str, Any]:
    """One prediction beside what was recorded."""
    memory = answer["peak_mem_gib"]
    return {
        "setting": row.setting,
        "status": row.status,
        "peak_gib": row.peak_gib if row.status == "ok" else None,
        "told_gib": memory["value"] if memory else None,
        "low": memory["low"] if memory else None,
        "high": memory["high"] if memory else None,
        "p_fit": answer["p_fit"],
        "near": near_ceiling(table, row),
    }


def near_ceiling(table: Table, row: Row) -> bool:
    """A run above 60 GiB, or an out-of-memory whose neighbour by one rank ran."""
    if row.status == "ok":
        return row.peak_gib >= NEAR_GIB
    if row.status != "oom":
        return False
    return any(
        other.status == "ok" and table.distance(row.setting, other.setting) <= 1
        for other in table.rows.values()
    )
