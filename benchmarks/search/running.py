"""One method on one workload with one seed: a line of JSON, kept so that a bench goes on."""

import hashlib
import json
import math
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from infrarsi.errors import UsageError
from search.methods import Method
from search.mixtures import all_workloads
from search.optima import digest, optimum
from search.workload import Setting, Workload

BUDGET = 40
MARKS = (10, 20, 40)
Line = dict[str, Any]


def run_method(w: Workload, make: Callable[[Workload, int], Method], seed: int) -> dict[str, Any]:
    """Regrets at the marks, counts of failures, and CPU seconds of the asks.

    A method that says it has nothing left to ask spends no more trials.
    """
    method = make(w, seed)
    statuses: list[str] = []
    asking: list[float] = []
    regrets: dict[int, float] = {}
    setting: Setting | None = w.baseline
    for trial in range(1, BUDGET + 1):
        if setting is not None:
            outcome = w.run(setting, np.random.default_rng([seed, trial, 9]))
            statuses.append(outcome["status"])
            method.tell(setting, outcome)
        if trial in MARKS:
            regrets[trial] = regret_pct(w, method)
        if setting is not None and trial < BUDGET:
            before = time.process_time()
            setting = asked(method)
            asking.append(time.process_time() - before)
    oom = statuses.count("oom")
    return {
        **{f"regret_{mark}_pct": regrets[mark] for mark in MARKS},
        "oom": oom,
        "broken": len(statuses) - oom - statuses.count("ok"),
        "ask_cpu_ms": 1e3 * float(np.mean(asking)),
        "statuses": statuses,
    }


def asked(method: Method) -> Setting | None:
    """The next setting, or None where the method says that nothing is left."""
    try:
        return method.ask()
    except UsageError:
        return None


def regret_pct(w: Workload, method: Method) -> float:
    """Noiseless seconds of what the method chose over the optimum's, the excess in per cent.

    A choice that would not survive without luck is worth the baseline.
    """
    chosen = method.chosen()
    got = math.inf if chosen is None else w.true_time(chosen)
    if math.isinf(got):
        got = w.true_time(w.baseline)
    return 100 * (got / optimum(w.name)[1] - 1)


@cache
def searcher_digest() -> str:
    """Of the code that our lines follow from."""
    import infrarsi

    root = Path(infrarsi.__path__[0])
    folders = ("search", "models", "estimate")
    files = sorted(p for f in folders for p in (root / f).rglob("*") if p.suffix in (".py", ".csv"))
    return hashlib.sha256(b"".join(p.read_bytes() for p in files)).hexdigest()[:16]


def kept_lines(path: Path, searcher: str | None) -> list[Line]:
    """Lines of an earlier run of the same simulator and, where given, the same searcher."""
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    own = [line for line in lines if line["digest"] == digest()]
    return own if searcher is None else [line for line in own if line["searcher"] == searcher]


def keep(path: Path, line: Line) -> None:
    """Append a line with the digests of what it came from."""
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = {"digest": digest(), "searcher": searcher_digest(), **line}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(whole) + "\n")


def run_simulated(
    place: str, make: Callable[[Workload, int], Method], name: str, seed: int
) -> Line | None:
    """A method's line on a workload; None where the searcher lacks the method's switch."""
    try:
        result = run_method(all_workloads()[place], make, seed)
    except TypeError as problem:
        if "without" not in str(problem):
            raise
        return None
    marks = " ".join(f"{result[f'regret_{m}_pct']:6.1f}" for m in MARKS)
    rest = f"oom {result['oom']:2} broken {result['broken']:2} ask {result['ask_cpu_ms']:.0f} ms"
    print(f"{place:20} {name:26} {seed:3} regret {marks}  {rest}", flush=True)
    return {"place": place, "method": name, "seed": seed, **result}
