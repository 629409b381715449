"""AuditComparison: what came of redoing a candidate's step with the baseline's own run.

Plain numbers, free of numpy, so that clauses and reports can read them anywhere.
`audit_numbers.compare` makes them from the raw files.
"""

import math
from collections.abc import Iterable
from typing import Literal

from infrarsi.frozen import Frozen


class TensorDifference(Frozen):
    """One parameter on both sides. Norms are Euclidean; an absent gradient counts as zero.

    `grad_diff` and `update_diff` are norms of candidate minus baseline; an update is the
    parameter after the step minus before it.
    """

    name: str
    n_elements: int
    grad_norm_baseline: float
    grad_norm_candidate: float
    grad_diff: float
    update_norm_baseline: float
    update_norm_candidate: float
    update_diff: float
    start_norm: float = 0.0
    start_diff: float = 0.0

    @property
    def grad_rms_baseline(self) -> float:
        """Root mean square of the baseline's gradient elements."""
        return self.grad_norm_baseline / math.sqrt(max(1, self.n_elements))

    @property
    def grad_rel_err(self) -> float | None:
        """Norm of the gradients' difference over the baseline's norm; None where that is zero."""
        return _ratio(self.grad_diff, self.grad_norm_baseline)


class DtypeDifference(Frozen):
    """A weight, gradient or optimizer state held in another type than the baseline's."""

    role: str
    name: str
    baseline: str
    candidate: str


class AuditComparison(Frozen):
    """One audited step on one rank, over all matched parameters.

    `missing` are parameters only the baseline trains, `extra` those only the candidate has.
    `unreadable` is the reason where the files could not be compared; nothing else counts then.
    `reference_*` are the errors of the baseline under the policy's own 16-bit autocast against
    the baseline as it is, where such a run was made.
    `is_relaid` says that the candidate's parameters were brought into the baseline's layout.
    `n_dropouts` counts the baseline's dropout calls; the noises are how far dropout moves each
    side's gradient from the one without, as a fraction of its norm, where that was measured;
    `dropped_*` are the elements each side says it drops in a step.
    """

    step: int
    rank: int
    matched_by: Literal["name", "order"] = "name"
    tensors: tuple[TensorDifference, ...] = ()
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    dtypes: tuple[DtypeDifference, ...] = ()
    n_nonfinite_candidate: int = 0
    n_nonfinite_baseline: int = 0
    unreadable: str | None = None
    reference_grad_rel_err: float | None = None
    reference_update_rel_err: float | None = None
    is_relaid: bool = False
    n_dropouts: int = 0
    dropout_noise_candidate: float | None = None
    dropout_noise_baseline: float | None = None
    dropped_candidate: float | None = None
    dropped_baseline: float | None = None

    def as_reference(self) -> "AuditComparison":
        """A comparison of the reference arm, its own errors noted as the reference."""
        return self.model_copy(
            update={
                "reference_grad_rel_err": self.grad_rel_err,
                "reference_update_rel_err": self.update_rel_err,
            }
        )

    def judged_by(self, reference: "AuditComparison") -> "AuditComparison":
        """This comparison with the reference errors of another."""
        return self.model_copy(
            update={
                "reference_grad_rel_err": reference.reference_grad_rel_err,
                "reference_update_rel_err": reference.reference_update_rel_err,
            }
        )

    @property
    def grad_rel_err(self) -> float | None:
        """Over all tensors; None where the baseline's gradients are all zero."""
        return _ratio(
            _norm(t.grad_diff for t in self.tensors),
            _norm(t.grad_norm_baseline for t in self.tensors),
        )

    @property
    def update_rel_err(self) -> float | None:
        """Over all tensors; None where the baseline's step changes nothing."""
        return _ratio(
            _norm(t.update_diff for t in self.tensors),
            _norm(t.update_norm_baseline for t in self.tensors),
        )

    @property
    def start_rel_err(self) -> float:
        """How far the baseline's start of the step was from the candidate's; 0 when swapped in."""
        ratio = _ratio(
            _norm(t.start_diff for t in self.tensors), _norm(t.start_norm for t in self.tensors)
        )
        return ratio or 0.0

    @property
    def grad_rms(self) -> float:
        """Root mean square of all elements of the baseline's gradients."""
        n = sum(t.n_elements for t in self.tensors)
        return _norm(t.grad_norm_baseline for t in self.tensors) / math.sqrt(max(1, n))

    def best_scale(self) -> tuple[float, float] | None:
        """The factor s that makes s times the baseline's gradient closest, and what then remains.

        The rest is relative to the scaled gradient. None where either side is zero.
        """
        b2 = sum(t.grad_norm_baseline**2 for t in self.tensors)
        c2 = sum(t.grad_norm_candidate**2 for t in self.tensors)
        d2 = sum(t.grad_diff**2 for t in self.tensors)
        dot = (b2 + c2 - d2) / 2
        if b2 <= 0 or c2 <= 0 or dot <= 0:
            return None
        return dot / b2, math.sqrt(max(0.0, c2 * b2 / dot**2 - 1))

    def worst(self, n: int = 3) -> tuple[TensorDifference, ...]:
        """The tensors whose gradients differ most, relative to the baseline's."""
        return tuple(sorted(self.tensors, key=lambda t: -(t.grad_rel_err or 0.0))[:n])


def _norm(values: Iterable[float]) -> float:
    return math.sqrt(sum(v * v for v in values))


def _ratio(difference: float, norm: float) -> float | None:
    return difference / norm if norm > 0 else None
