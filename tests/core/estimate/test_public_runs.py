"""The shipped estimate against the public runs that are kept in the repository."""

import csv
import gzip
import math
import statistics
from pathlib import Path

import pytest

from infrarsi.estimate import UnreadableJob, estimate_job

RUNS = Path(__file__).resolve().parents[3] / "benchmarks" / "data" / "public_runs.csv.gz"
NO_INPUTS = {
    "source_family", "split_group", "config_key", "tokens_per_s_per_gpu", "step_time_s",
    "peak_mem_gib", "oom", "oom_inferred", "status", "check_flags", "mfu_std_vs_16bit_peak_frac",
}  # fmt: skip


@pytest.fixture(scope="module")
def answered():
    with gzip.open(RUNS, "rt", encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["status"] == "ok"]
    found = []
    for row in rows[::5]:
        told = {name: text for name, text in row.items() if name not in NO_INPUTS and text}
        try:
            found.append((row, estimate_job(told)))
        except UnreadableJob:
            found.append((row, None))
    return found


def errors(answered, column, name):
    return [
        abs(math.log(float(row[column]) / getattr(answer, name).value))
        for row, answer in answered
        if answer is not None and row[column] and not row["check_flags"]
    ]


def test_nearly_every_run_is_answered(answered):
    assert sum(answer is None for _, answer in answered) < 0.05 * len(answered)


def test_half_of_the_peaks_are_within_a_sixth(answered):
    assert statistics.median(errors(answered, "peak_mem_gib", "peak_mem_gib")) < 0.18


def test_half_of_the_step_times_are_within_a_third(answered):
    assert statistics.median(errors(answered, "step_time_s", "step_time_s")) < 0.33


def test_about_nine_of_ten_peaks_lie_in_their_interval(answered):
    inside = [
        answer.peak_mem_gib.low <= float(row["peak_mem_gib"]) <= answer.peak_mem_gib.high
        for row, answer in answered
        if answer is not None and row["peak_mem_gib"]
    ]
    assert 0.85 < sum(inside) / len(inside) < 0.99


def test_utilisation_is_by_the_sources_standardised_definition(answered):
    ratios = [
        answer.mfu_frac.value
        / answer.tokens_per_s_per_gpu.value
        * float(row["tokens_per_s_per_gpu"])
        / float(row["mfu_std_vs_16bit_peak_frac"])
        for row, answer in answered
        if answer is not None and row["mfu_std_vs_16bit_peak_frac"] and row["tokens_per_s_per_gpu"]
    ]
    assert sum(abs(ratio - 1) < 0.03 for ratio in ratios) > 0.9 * len(ratios)
