"""The packed public runs as jobs with what was observed of them."""

import csv
import gzip
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from infrarsi.estimate import Job, UnreadableJob, read_job
from infrarsi.estimate.physics import resolve_checkpointing

FILE = Path(__file__).resolve().parent / "data" / "public_runs.csv.gz"
OUTCOMES = {
    "tokens_per_s_per_gpu", "step_time_s", "peak_mem_gib", "mem_basis", "oom", "oom_inferred",
    "status", "check_flags", "mfu_std_vs_16bit_peak_frac",
}  # fmt: skip
NAMES = {"source_family", "split_group", "config_key"}
UNSOUND = ("suspect", "invalid", "product_mismatch", "likely_gqa", "mem_above", "mem_below")
CAPPED = {"litgpt", "peft-methods", "ms-swift"}
"""Sources whose sequence length is a cap, so that their tokens a second mean something else."""


@dataclass(frozen=True)
class Run:
    """One configuration of one source; `step_s` and `peak_gib` are medians over its repeats.

    `failed` is "oom" (the source says so), "inferred" (arithmetic says so) or empty.
    """

    source: str
    group: str
    told: dict[str, str]
    job: Job
    basis: str
    step_s: float | None
    peak_gib: float | None
    failed: str
    mfu: float | None


def load_runs() -> list[Run]:
    """All configurations that can be read, repeats merged."""
    found: dict[tuple[str, str], list[Run]] = {}
    for run, key in _read():
        found.setdefault((key, run.failed), []).append(run)
    return [_merged(same) for same in found.values()]


def told_of(row: dict[str, str]) -> dict[str, str]:
    """The configuration columns that are told."""
    return {k: v for k, v in row.items() if v and k not in OUTCOMES | NAMES}


def _read() -> Iterator[tuple[Run, str]]:
    with gzip.open(FILE, "rt", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            if any(flag in row["check_flags"] for flag in UNSOUND):
                continue
            try:
                job = resolve_checkpointing(read_job(told_of(row)))
            except UnreadableJob:
                continue
            yield _run(row, job), row["config_key"] + row["mem_basis"]


def _run(row: dict[str, str], job: Job) -> Run:
    good = row["status"] == "ok"
    return Run(
        source=row["source_family"],
        group=row["split_group"],
        told=told_of(row),
        job=job,
        basis=row["mem_basis"],
        step_s=_step_s(row, job) if good else None,
        peak_gib=float(row["peak_mem_gib"]) if good and row["peak_mem_gib"] else None,
        failed=_failed(row),
        mfu=_number(row["mfu_std_vs_16bit_peak_frac"]),
    )


def _step_s(row: dict[str, str], job: Job) -> float | None:
    if row["source_family"] in CAPPED or "mfu_rounded" in row["check_flags"]:
        return None
    step, rate = _number(row["step_time_s"]), _number(row["tokens_per_s_per_gpu"])
    if step is not None:
        return step
    return job.step_tokens / (rate * job.layout.gpus) if rate else None


def _failed(row: dict[str, str]) -> str:
    if row["oom"].lower() == "true":
        return "oom"
    return "inferred" if row["oom_inferred"].startswith(("oom_certain", "oom_likely")) else ""


def _number(text: str) -> float | None:
    return float(text) if text else None


def _merged(same: list[Run]) -> Run:
    first = same[0]
    steps = [run.step_s for run in same if run.step_s is not None]
    peaks = [run.peak_gib for run in same if run.peak_gib is not None]
    return Run(
        first.source, first.group, first.told, first.job, first.basis,
        statistics.median(steps) if steps else None,
        statistics.median(peaks) if peaks else None,
        first.failed, first.mfu,
    )  # fmt: skip
