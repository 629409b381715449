"""A redo tells where the data start over, and what that explains of a regrouped run."""

from collections.abc import Callable

import pytest
import torch
from judged import honest, open_bytes
from probe_jobs import JobEnd, run_job

from infrarsi.judge.audit_numbers import compare
from infrarsi.judge.start_over import last_shared_step, start_over_step
from infrarsi.wire.probe import ProbeConfig
from infrarsi_probe.repeats import MOST_ROWS, SeenRows

Make = Callable[..., ProbeConfig]
STEPS = (1, 5)
END = ("--rows", "26")
"""Steps of eight rows: the fourth runs over the end, and leaves out none or two rows."""


def test_rows_of_earlier_steps_count_and_those_of_the_same_do_not() -> None:
    seen = SeenRows()
    assert seen.count([torch.tensor([1, 2]), torch.tensor([2])]) == 0
    assert seen.count([torch.tensor([3, 2]), torch.tensor([1])]) == 2
    assert seen.count([]) is None


def test_what_is_too_much_to_remember_is_unknown() -> None:
    seen = SeenRows()
    assert seen.count([torch.arange(MOST_ROWS)]) == 0
    assert seen.count([torch.tensor([1])]) is None


def both_sides(config: Make, *candidate: str) -> tuple[tuple[ProbeConfig, JobEnd], ...]:
    settings = config(audit_steps=STEPS, warmup_steps=0, window_steps=max(STEPS) + 1)
    ours = run_job(settings, *candidate)
    redo = config(
        mode="redo", warmup_steps=0, redo_steps=STEPS, redo_dir=str(settings.evidence_dir)
    )
    theirs = run_job(redo, *END)
    assert (ours.code, theirs.code) == (0, 0), ours.output + theirs.output
    return (settings, ours), (redo, theirs)


def gradient_errors(sides: tuple[tuple[ProbeConfig, JobEnd], ...]) -> list[float]:
    (ours, a), (theirs, b) = sides
    folders = ours.evidence_dir, theirs.evidence_dir
    found = [
        compare(folders[0], a.evidence, folders[1], b.evidence, step, open_bytes) for step in STEPS
    ]
    errors = [comparison.grad_rel_err for (comparison,) in found]
    return [error for error in errors if error is not None]


@pytest.mark.live
def test_a_regrouped_run_differs_after_the_data_start_over_and_not_before(config: Make) -> None:
    sides = both_sides(config, *END, "--micro", "4")
    (_, candidate), (_, baseline) = sides
    assert [s.rows_seen for s in baseline.evidence[0].steps] == [0, 0, 0, 6, 8, 8]
    assert [s.rows_seen for s in candidate.evidence[0].steps] == [None] * 6
    early, late = gradient_errors(sides)
    assert early < 1e-4
    assert late > 0.1
    assert start_over_step(baseline.evidence) == 3
    evidence = honest(candidate=candidate.evidence, baseline=baseline.evidence)
    assert last_shared_step(evidence, 5) == 1


@pytest.mark.live
def test_other_rows_of_a_run_that_is_not_regrouped_are_not_explained(config: Make) -> None:
    sides = both_sides(config, "--rows", "24")
    (_, candidate), (_, baseline) = sides
    evidence = honest(candidate=candidate.evidence, baseline=baseline.evidence)
    assert gradient_errors(sides)[1] > 0.1
    assert last_shared_step(evidence, 5) is None
