"""Clause: the baseline's own step from the candidate's state gives the candidate's update.

Decides. Compares gradients over all tensors and one by one, the change of all tensors, types
and the set of trained parameters; the tolerances are the policy's, of the precision class that
was declared or allowed. Counters only name what was found. Source of the margins: the tried
audit, where honest fp32 rewrites differ by 1e-6, bf16 autocast by 2e-3 and cheats by 0.2.
"""

from infrarsi.contract.catalogue import violation
from infrarsi.contract.contract import EquivalencePolicy
from infrarsi.contract.violation import Violation
from infrarsi.judge.answer import answer
from infrarsi.judge.audit_comparison import AuditComparison, TensorDifference
from infrarsi.judge.evidence import JudgedEvidence, PrecisionClass
from infrarsi.judge.hints import update_hint, workload_hint
from infrarsi.judge.verdict import Verdict

_START_REL_ERR = 1e-5
_VANISHED = 1e-3
"""A norm below this fraction of the baseline's counts as zero."""

_NEGLIGIBLE_RMS = {"fp32": 1e-4, "16bit": 3e-2}
"""Tensors whose gradient is smaller than this fraction of the average are rounding noise (the
gradient of a key's bias is zero in exact arithmetic)."""

_SINGLE_TENSOR = {"fp32": 20.0, "16bit": 5.0}
"""How many times the tolerance over all tensors one tensor may reach (measured with bf16 autocast
on a small dense model: 0.004 over all, at most 0.006 for a tensor that counts)."""


def clause(evidence: JudgedEvidence) -> Verdict:
    """Judge every audited step of every rank."""
    if not evidence.audits and "audit" not in evidence.needs:
        return answer("")
    missing = _missing(evidence)
    if missing:
        return answer("", missing=missing)
    violations: list[Violation] = []
    for comparison in evidence.audits:
        found = _breach_of(evidence, comparison)
        if found and found.code not in {v.code for v in violations}:
            violations.append(found)
    steps = sorted({c.step for c in evidence.audits})
    worst = max(c.grad_rel_err or 0.0 for c in evidence.audits)
    return answer(
        f"The baseline's own update was redone at step {', '.join(map(str, steps))} "
        f"(gradients differ by {worst:.1g}).",
        tuple(violations),
    )


def _missing(evidence: JudgedEvidence) -> tuple[str, ...]:
    if not evidence.audits:
        return ("No step of the candidate was audited.",)
    for c in evidence.audits:
        if c.unreadable:
            return (f"Step {c.step} of rank {c.rank} could not be audited: {c.unreadable}",)
        if c.start_rel_err > _START_REL_ERR:
            return (f"The baseline could not start step {c.step} from the candidate's weights.",)
        if c.grad_rel_err is None or c.update_rel_err is None:
            return (f"The baseline's own step {c.step} changes nothing.",)
    steps = {c.step for c in evidence.audits}
    for step in sorted(steps):
        n = len({c.rank for c in evidence.audits if c.step == step})
        if n < evidence.world_size:
            return (f"Step {step} was audited on {n} of {evidence.world_size} ranks.",)
    return ()


def _breach_of(evidence: JudgedEvidence, c: AuditComparison) -> Violation | None:
    return _parameters_differ(c) or _numbers_differ(evidence, c)


def _parameters_differ(c: AuditComparison) -> Violation | None:
    where = f"at step {c.step}"
    if c.missing and c.extra:
        return violation("W104", f"The model has other parameters {where}: {_some(c.extra)}.")
    if c.missing:
        return violation("L207", f"Parameters are no longer trained {where}: {_some(c.missing)}.")
    if c.extra:
        return violation("W104", f"The model has more parameters {where}: {_some(c.extra)}.")
    if c.dtypes:
        d = c.dtypes[0]
        return violation(
            "L203", f"{d.name} ({d.role}) is kept in {d.candidate} instead of {d.baseline} {where}."
        )
    return None


def _numbers_differ(evidence: JudgedEvidence, c: AuditComparison) -> Violation | None:
    policy, kind = evidence.lock.contract.policy, evidence.precision_class()
    grad_tolerance, update_tolerance = _tolerances(policy, kind, c)
    grad_error, update_error = c.grad_rel_err, c.update_rel_err
    if grad_error is None or update_error is None:
        return None
    if _all_vanished(c):
        return violation("W103", f"Step {c.step} changes no parameter.")
    frozen = [n for n in _frozen(c, kind) if _is_frozen_throughout(evidence, c.rank, n, kind)]
    if frozen:
        return violation("L207", f"{len(frozen)} tensors get no gradient: {_some(tuple(frozen))}.")
    if grad_error > grad_tolerance:
        return _name_gradients(evidence, c)
    strayed = [
        n for n in _strayed(evidence, c, kind) if _strays_throughout(evidence, c.rank, n, kind)
    ]
    if strayed:
        return violation("L208", f"The update of {strayed[0]} differs from the baseline's.")
    if update_error > update_tolerance:
        return update_hint(evidence) or violation(
            "L209", f"Step {c.step} applies something else than its own gradients."
        )
    return None


def _tolerances(
    policy: EquivalencePolicy, kind: PrecisionClass, c: AuditComparison
) -> tuple[float, float]:
    """Of gradients and updates.

    In 16 bit what the reference arm strays, times the policy's factor, where there is such an
    arm; for gradients never more than the ceiling, which lies below the mildest cheats.
    """
    if kind == "fp32":
        return policy.grad_rel_err_fp32, policy.update_rel_err_fp32
    if c.reference_grad_rel_err is None or c.reference_update_rel_err is None:
        return policy.grad_rel_err_16bit, policy.update_rel_err_16bit
    factor, ceiling = policy.reference_factor_16bit, policy.grad_rel_err_16bit_ceiling
    return (
        min(ceiling, max(policy.grad_rel_err_fp32, factor * c.reference_grad_rel_err)),
        max(policy.update_rel_err_16bit, factor * c.reference_update_rel_err),
    )


def _name_gradients(evidence: JudgedEvidence, c: AuditComparison) -> Violation:
    """The code of a gradient that differs: from the counters, else from the kind of difference."""
    hint = workload_hint(evidence)
    if hint:
        return hint
    if (c.grad_rel_err or 0.0) <= evidence.lock.contract.policy.grad_rel_err_16bit:
        return violation("L216", f"Step {c.step} computes in lower precision than was declared.")
    scaled = c.best_scale()
    if scaled and scaled[1] <= evidence.lock.contract.policy.grad_rel_err_16bit:
        return _name_scale(evidence, c, scaled[0])
    return violation("L208", f"The update of step {c.step} differs from the baseline's.")


def _name_scale(evidence: JudgedEvidence, c: AuditComparison, scale: float) -> Violation:
    """The same direction at another length: the divisor if the grouping changed, else clipping."""
    regrouped = any(a[0].micro_steps != b[0].micro_steps for a, b in evidence.common_steps())
    what = "is normalised otherwise" if regrouped else "is clipped or scaled otherwise"
    return violation(
        "L208" if regrouped else "L205",
        f"The gradient of step {c.step} {what}: {scale:.3g} times the baseline's.",
    )


def _all_vanished(c: AuditComparison) -> bool:
    return all(t.update_norm_candidate <= _VANISHED * t.update_norm_baseline for t in c.tensors)


def _strayed(evidence: JudgedEvidence, c: AuditComparison, kind: PrecisionClass) -> tuple[str, ...]:
    """Tensors that differ far more than all do together, the worst first."""
    tolerance, _ = _tolerances(evidence.lock.contract.policy, kind, c)
    single, negligible = _SINGLE_TENSOR[kind] * tolerance, _NEGLIGIBLE_RMS[kind]
    return tuple(t.name for t in c.worst(len(c.tensors)) if _strays(c, t, single, negligible))


def _strays_throughout(
    evidence: JudgedEvidence, rank: int, name: str, kind: PrecisionClass
) -> bool:
    """Whether a tensor strays at every step audited on the rank, in 16 bit at two at least.

    There a few rows may be routed to other experts, other ones in each step; what computes
    something else does so in all of them.
    """
    steps = [c for c in evidence.audits if c.rank == rank and c.unreadable is None]
    if kind == "fp32":
        return True
    return len(steps) > 1 and all(name in _strayed(evidence, c, kind) for c in steps)


def _frozen(c: AuditComparison, kind: PrecisionClass) -> tuple[str, ...]:
    return tuple(t.name for t in c.tensors if _is_frozen(c, t, _NEGLIGIBLE_RMS[kind]))


def _is_frozen_throughout(
    evidence: JudgedEvidence, rank: int, name: str, kind: PrecisionClass
) -> bool:
    """Whether it is frozen at every step audited on the rank.

    In 16 bit a single row may be routed to another expert, which then has no gradient in one
    step; what is frozen has none in any.
    """
    steps = [c for c in evidence.audits if c.rank == rank and c.unreadable is None]
    return kind == "fp32" or all(name in _frozen(c, kind) for c in steps)


def _is_frozen(c: AuditComparison, t: TensorDifference, negligible: float) -> bool:
    if t.grad_norm_candidate == 0:
        return _counts(c, t, _NEGLIGIBLE_RMS["fp32"])
    gradient_gone = t.grad_norm_candidate <= _VANISHED * t.grad_norm_baseline
    update_gone = t.update_norm_candidate <= _VANISHED * t.update_norm_baseline
    return _counts(c, t, negligible) and (
        gradient_gone or (update_gone and t.update_norm_baseline > 0)
    )


def _strays(c: AuditComparison, t: TensorDifference, tolerance: float, negligible: float) -> bool:
    return _counts(c, t, negligible) and (t.grad_rel_err or 0.0) > tolerance


def _counts(c: AuditComparison, t: TensorDifference, negligible: float) -> bool:
    return t.grad_rms_baseline > negligible * c.grad_rms


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
