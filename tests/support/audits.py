"""Reads raw audit files as the judge will: by their index alone, without torch."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from infrarsi.wire.probe import RankEvidence

Tensors = dict[tuple[str, str], npt.NDArray[np.float64]]


def tensors_of(folder: Path, evidence: RankEvidence, step: int) -> Tensors:
    """{(role, name): array} of one audited step of a rank."""
    (audit,) = (a for a in evidence.audits if a.step == step)
    raw = (folder / audit.file).read_bytes()
    assert sum(t.n_bytes for t in audit.tensors) == len(raw)
    return {
        (t.role, t.name): np.frombuffer(
            raw[t.offset : t.offset + t.n_bytes], dtype=np.dtype(t.dtype)
        )
        .reshape(t.shape)
        .astype(np.float64)
        for t in audit.tensors
    }


def relative_errors(candidate: Tensors, redone: Tensors) -> tuple[float, float]:
    """Of all gradients and of the change of all weights; a missing gradient is zero."""
    names = [name for role, name in redone if role == "before"]

    def gradient(of: Tensors) -> npt.NDArray[np.float64]:
        zeros = {n: np.zeros_like(of["before", n]) for n in names}
        return np.concatenate([of.get(("grad", n), zeros[n]).ravel() for n in names])

    def update(of: Tensors) -> npt.NDArray[np.float64]:
        return np.concatenate([(of["after", n] - of["before", n]).ravel() for n in names])

    return (
        float(_error(gradient(candidate), gradient(redone))),
        float(_error(update(candidate), update(redone))),
    )


def _error(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> np.floating:
    return np.linalg.norm(a - b) / np.linalg.norm(b)
