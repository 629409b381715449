"""Peaks of resident memory by process, and whether a limit was passed. Reads; never kills."""

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from infrarsi_runner.process_tree import first_environment, machine_memory, memory_bytes
from infrarsi_runner.sandbox.limits import BASE_ALLOWANCE_BYTES, machine_is_full, rank_limit_bytes

_OOM_SCORE = "800"


class MemoryWatch:
    """Keeps the peak of each process, and what each rank used when it said hello."""

    def __init__(self, budget_bytes: int | None) -> None:
        """`budget_bytes` is what a rank may use beyond its base."""
        self._budget = budget_bytes
        self._peaks: dict[int, int] = {}
        self._bases: dict[int, int] = {}
        self._environments: dict[int, dict[str, str]] = {}

    def sample(self, pids: Iterable[int], ranks: Mapping[int, int]) -> bool:
        """Look at those processes; true if one is over its limit or the machine is full.

        `ranks` maps ranks to process ids.
        """
        over = False
        for pid in pids:
            memory = memory_bytes(pid)
            if memory is None:
                continue
            resident, peak = memory
            self._meet(pid)
            if pid in ranks.values():
                self._bases.setdefault(pid, resident)
            self._peaks[pid] = max(self._peaks.get(pid, 0), peak)
            limit = rank_limit_bytes(self._bases.get(pid), self._budget)
            over = over or (limit is not None and resident > limit)
        return over or machine_is_full(*machine_memory())

    def peaks(self, ranks: Mapping[int, int], n_ranks: int) -> tuple[int, ...]:
        """Peak of each rank in order; where none said hello, by the launcher's variables.

        A job without a launcher's variables is one rank: the process that used the most.
        """
        if ranks:
            return tuple(self._peaks.get(pid, 0) for _, pid in sorted(ranks.items()))
        by_rank: dict[int, int] = {}
        for pid, peak in self._peaks.items():
            name = self._environments[pid].get("RANK", "0" if n_ranks == 1 else "")
            if name.isdigit():
                by_rank[int(name)] = max(by_rank.get(int(name), 0), peak)
        return tuple(peak for _, peak in sorted(by_rank.items()))

    def used_frac(self) -> float:
        """The largest peak beyond its base as a part of the budget; 0 without a budget."""
        if self._budget is None or not self._peaks:
            return 0.0
        above = (
            p - self._bases.get(pid, BASE_ALLOWANCE_BYTES // 4) for pid, p in self._peaks.items()
        )
        return max(above) / self._budget

    def _meet(self, pid: int) -> None:
        """The first time a process is seen: what it was started with, and let it die first."""
        if pid not in self._environments:
            self._environments[pid] = first_environment(pid)
            with contextlib.suppress(OSError):
                Path(f"/proc/{pid}/oom_score_adj").write_text(_OOM_SCORE)
