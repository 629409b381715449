"""Clause: the same number and kind of devices, ranks and software on both sides.

Threads per rank are a knob unless the contract pins them (fact `threads`).
"""

from infrarsi.contract.catalogue import violation
from infrarsi.contract.violation import Violation
from infrarsi.judge.answer import answer
from infrarsi.judge.evidence import JudgedEvidence
from infrarsi.judge.verdict import Verdict
from infrarsi.wire.probe import RankEvidence


def clause(evidence: JudgedEvidence) -> Verdict:
    """Compare what every rank reports with contract and baseline."""
    if not evidence.candidate or not evidence.baseline:
        who = "baseline" if evidence.candidate else "candidate"
        return answer("", missing=(f"The {who} left no evidence.",))
    violations = [*_ranks(evidence), *_kinds(evidence), *_threads(evidence)]
    missing = () if violations else _absent_ranks(evidence)
    return answer(f"{evidence.world_size} ranks on the same devices.", tuple(violations), missing)


def _ranks(evidence: JudgedEvidence) -> list[Violation]:
    declared = evidence.world_size
    seen = max(max(rank.world_size, rank.rank + 1) for rank in evidence.candidate)
    if seen == declared:
        return []
    return [violation("E501", f"The job runs {seen} ranks instead of {declared}.")]


def _absent_ranks(evidence: JudgedEvidence) -> tuple[str, ...]:
    sides = (("candidate", evidence.candidate), ("baseline", evidence.baseline))
    expected = set(range(evidence.world_size))
    return tuple(
        f"Rank {rank} of the {who} left no evidence."
        for who, side in sides
        for rank in sorted(expected - {r.rank for r in side})
    )


def _kinds(evidence: JudgedEvidence) -> list[Violation]:
    ours, theirs = _kind(evidence.candidate), _kind(evidence.baseline)
    if ours[0] != theirs[0]:
        message = f"The job runs on {_listed(ours[0])} instead of {_listed(theirs[0])}."
        return [violation("E501", message)]
    if ours[1] != theirs[1]:
        message = f"The job runs with {_listed(ours[1])} instead of {_listed(theirs[1])}."
        return [violation("E502", message)]
    return []


def _kind(side: tuple[RankEvidence, ...]) -> tuple[frozenset[str], frozenset[str]]:
    devices = frozenset(rank.device.partition(":")[0] for rank in side)
    software = frozenset(f"torch {r.torch_version}, Python {r.python_version}" for r in side)
    return devices, software


def _threads(evidence: JudgedEvidence) -> list[Violation]:
    pinned = evidence.lock.contract.fact("threads")
    seen = {rank.n_threads for rank in evidence.candidate}
    if pinned is None or not isinstance(pinned.value, int) or seen == {pinned.value}:
        return []
    return [violation("E501", f"The contract pins {pinned.value} threads a rank; {max(seen)} ran.")]


def _listed(values: frozenset[str]) -> str:
    return " and ".join(sorted(values))
