"""Verify: two folders run and judged by the runner under before's contract."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from infrarsi.contract import make_lock
from infrarsi.frozen import Frozen
from infrarsi.report.findings import Finding, findings
from infrarsi.wire.messages import Budget, CampaignView, StartCampaign
from infrarsi.wire.results import Speedup
from infrarsi_server.operations.contracting import NO_COMMIT, Sides, after_contract
from infrarsi_server.operations.lock import hash_locked_files
from infrarsi_server.runner_client import RunnerClient
from infrarsi_server.workspace.interpreter import (
    choose_python,
    editable_roots,
    need_torch,
    resolve_python,
)
from infrarsi_server.workspace.snapshots import snapshot_folder

_STORE = "snapshots.git"


class VerifyReport(Frozen):
    """The verdict is on the contract; the gain stands beside it.

    `missing` is what kept it from deciding; an inconclusive answer is never accepted.
    """

    verdict: Literal["accepted", "rejected", "inconclusive"]
    violations: tuple[Finding, ...]
    missing: tuple[str, ...]
    speedup: Speedup | None


@dataclass(frozen=True)
class Prepared:
    """Both sides and the interpreter they run with."""

    sides: Sides
    python: Path


def prepare_verify(
    sides: Sides, python: str | None, environ: Mapping[str, str], current: Path
) -> Prepared:
    """Find the interpreter: the given one, before's own, or one that has torch.

    Raises:
        ConfigError: it is not there, or has no torch.
    """
    root = sides.before.root
    named = sides.python or choose_python(root, environ).python
    where = (root, named) if python is None else (current, python)
    found = resolve_python(*where, environ)
    need_torch(found)
    return Prepared(sides, found)


def start_verify(
    prepared: Prepared, campaign: str, minutes: float | None, state: Path, runner: RunnerClient
) -> CampaignView:
    """Hand both folders to the runner and start; short without `minutes`.

    Raises:
        RunnerError: the runner refuses or is gone.
        UsageError: a folder cannot be taken.
    """
    sides = prepared.sides
    store = state / _STORE
    before, after = (snapshot_folder(s.root, store) for s in (sides.before, sides.after))
    for snapshot in (before, after):
        runner.store(snapshot.bundle())
    hashes = hash_locked_files(sides.after.root, sides.after, sides.lock.contract.scope.locked)
    return runner.start(
        StartCampaign(
            id=campaign,
            kind="verify",
            lock=sides.lock,
            after_lock=make_lock(after_contract(sides), hashes, NO_COMMIT),
            source=before.commit,
            candidate_source=after.commit,
            python=str(prepared.python),
            editable_roots=editable_roots(prepared.python, sides.before.root),
            workspace=str(sides.before.root),
            budget=Budget() if minutes is None else Budget(minutes=minutes),
            quick=minutes is None,
        )
    )


def refused_report(sides: Sides) -> VerifyReport | None:
    """The answer where after cannot be run as it asks to be; None where it can."""
    if sides.refused is not None:
        return VerifyReport(
            verdict="rejected", violations=findings([sides.refused]), missing=(), speedup=None
        )
    if sides.unclear is not None:
        return VerifyReport(
            verdict="inconclusive", violations=(), missing=(sides.unclear,), speedup=None
        )
    return None


def verify_report(view: CampaignView) -> VerifyReport:
    """The answer of a finished verify; KeyError where it is none."""
    if view.verify is None:
        raise KeyError(view.id)
    return VerifyReport(
        verdict=view.verify.verdict,
        violations=findings(view.verify.violations),
        missing=view.verify.missing,
        speedup=view.verify.speedup,
    )
