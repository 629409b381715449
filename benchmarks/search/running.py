"""One method on one workload with one seed: a line of JSON, kept so that a bench goes on."""

import json
import math
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from search.methods import Method
from search.optima import digest, optimum
from search.workload import Workload

BUDGET = 40
MARKS = (10, 20, 40)


def run_method(
    w: Workload, make: Callable[[Workload, int], Method], seed: int
) -> dict[str, object]:
    """Regrets at the marks, counts of failures, and CPU seconds of the asks."""
    method = make(w, seed)
    best = optimum(w.name)[1]
    statuses, asking, regrets = [], [], {}
    for trial in range(1, BUDGET + 1):
        before = time.process_time()
        setting = w.baseline if trial == 1 else method.ask()
        asking.append(time.process_time() - before)
        outcome = w.run(setting, np.random.default_rng([seed, trial, 9]))
        statuses.append(outcome["status"])
        method.tell(setting, outcome)
        if trial in MARKS:
            chosen = method.chosen()
            got = w.true_time(chosen) if chosen is not None else math.inf
            if math.isinf(got):
                got = w.true_time(w.baseline)
            regrets[trial] = 100 * (got / best - 1)
    oom = statuses.count("oom")
    return {
        **{f"regret_{mark}_pct": regrets[mark] for mark in MARKS},
        "oom": oom,
        "broken": len(statuses) - oom - statuses.count("ok"),
        "ask_cpu_ms": 1e3 * float(np.mean(asking[1:])),
        "statuses": statuses,
    }


def kept_results(path: Path) -> list[dict[str, object]]:
    """Lines of an earlier run of the same simulator."""
    if not path.exists():
        return []
    lines = (json.loads(line) for line in path.read_text("utf-8").splitlines())
    return [line for line in lines if line["digest"] == digest()]


def run_all(
    todo: Iterable[tuple[Workload, str, int]],
    methods: dict[str, Callable[[Workload, int], Method]],
    path: Path,
) -> None:
    """Run and append every (workload, method, seed); a method the searcher lacks is skipped."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lacking: set[str] = set()
    for w, name, seed in todo:
        if name in lacking:
            continue
        try:
            result = run_method(w, methods[name], seed)
        except TypeError as problem:
            if "without" not in str(problem):
                raise
            lacking.add(name)
            print(f"{name}: the searcher has no such switch yet", flush=True)
            continue
        line = {"digest": digest(), "workload": w.name, "method": name, "seed": seed, **result}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(
            f"{w.name:20} {name:26} {seed:3} regret "
            + " ".join(f"{line[f'regret_{m}_pct']:6.1f}" for m in MARKS)
            + f"  oom {line['oom']:2} broken {line['broken']:2} ask {line['ask_cpu_ms']:.0f} ms",
            flush=True,
        )
