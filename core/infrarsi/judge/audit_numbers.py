"""Compare a candidate's audited step with the baseline's redo of it, number by number.

Reads nothing by itself: the caller hands in a function that maps a path to its raw bytes.
Sums run in float64 over chunks, so that a file larger than memory can be a memory map.
The files come from the candidate and may lie about sizes and places: every bound is checked.
Leaves out what the numbers mean; the clause `update_audit` judges them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from infrarsi.judge.audit_comparison import AuditComparison, DtypeDifference, TensorDifference
from infrarsi.wire.probe import Audit, AuditTensor, RankEvidence

Opener = Callable[[str], NDArray[np.uint8]]
"""A path to the file's bytes, one-dimensional, usually a memory map."""

_CHUNK = 1 << 20
_NUMPY_DTYPES = {
    "float64": "<f8",
    "float32": "<f4",
    "float16": "<f2",
    "bfloat16": "<u2",
    "int64": "<i8",
    "int32": "<i4",
    "int16": "<i2",
    "int8": "<i1",
    "uint8": "<u1",
    "bool": "<u1",
}
_WRAPPERS = {"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "module"}
_NARROW = ("bfloat16", "float16")


def compare(
    candidate_dir: str,
    candidate: tuple[RankEvidence, ...],
    redo_dir: str,
    redo: tuple[RankEvidence, ...],
    step: int,
    open_: Opener,
) -> tuple[AuditComparison, ...]:
    """Compare one step on every rank that either side audited.

    Args:
        candidate_dir: folder of the candidate's evidence files.
        candidate: the candidate's evidence, one of each rank.
        redo_dir: folder of the evidence of the baseline's run with the candidate's state.
        redo: that run's evidence.
        step: the audited step's index.
        open_: gives a file's bytes; OSError and ValueError become an unreadable comparison.
    """
    ours = {e.rank: a for e in candidate for a in e.audits if a.step == step}
    theirs = {e.rank: a for e in redo for a in e.audits if a.step == step}
    return tuple(
        _compare_rank(
            step, rank, (candidate_dir, ours.get(rank)), (redo_dir, theirs.get(rank)), open_
        )
        for rank in sorted({*ours, *theirs})
    )


@dataclass(kw_only=True)
class _Side:
    data: NDArray[np.uint8]
    tensors: dict[str, dict[str, AuditTensor]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return [name for name, roles in self.tensors.items() if "before" in roles]

    def shape(self, name: str) -> tuple[int, ...]:
        return self.tensors[name]["before"].shape

    def values(self, name: str, role: str, first: int, last: int) -> NDArray[np.float64]:
        """Elements [first, last) as float64; zeros where the tensor was absent."""
        tensor = self.tensors[name].get(role)
        if tensor is None:
            return np.zeros(last - first)
        width = np.dtype(_NUMPY_DTYPES[_plain(tensor.dtype)]).itemsize
        raw = self.data[tensor.offset + first * width : tensor.offset + last * width]
        return _decode(raw, _plain(tensor.dtype))


def _compare_rank(
    step: int,
    rank: int,
    candidate: tuple[str, Audit | None],
    redo: tuple[str, Audit | None],
    open_: Opener,
) -> AuditComparison:
    sides: list[_Side] = []
    for who, (folder, audit) in (("candidate", candidate), ("baseline", redo)):
        side = _read_side(folder, audit, open_)
        if isinstance(side, str):
            return AuditComparison(step=step, rank=rank, unreadable=f"The {who}'s {side}.")
        sides.append(side)
    ours, theirs = sides
    pairs, matched_by = _match(ours, theirs)
    sums = [_sum_tensor(ours, theirs, c, b) for c, b in pairs]
    matched_ours, matched_theirs = {c for c, _ in pairs}, {b for _, b in pairs}
    return AuditComparison(
        step=step,
        rank=rank,
        matched_by=matched_by,
        tensors=tuple(s.difference for s in sums),
        missing=tuple(n for n in theirs.names if n not in matched_theirs),
        extra=tuple(n for n in ours.names if n not in matched_ours),
        dtypes=tuple(d for c, b in pairs for d in _dtype_differences(ours, theirs, c, b)),
        n_nonfinite_candidate=sum(s.n_nonfinite_candidate for s in sums),
        n_nonfinite_baseline=sum(s.n_nonfinite_baseline for s in sums),
    )


def _read_side(folder: str, audit: Audit | None, open_: Opener) -> _Side | str:
    if audit is None:
        return "audit of this step is missing"
    if "/" in audit.file or "\\" in audit.file or audit.file.startswith("."):
        return "audit names a file outside its folder"
    try:
        data = open_(f"{folder}/{audit.file}")
    except (OSError, ValueError) as error:
        return f"audit file cannot be read ({error})"
    side = _Side(data=data)
    for tensor in audit.tensors:
        if not _fits(tensor, data.size):
            return f"audit index is wrong for {tensor.role} of {tensor.name}"
        side.tensors.setdefault(_bare(tensor.name), {})[tensor.role] = tensor
    if any(_ragged(roles) for roles in side.tensors.values()):
        return "audit index gives one parameter several shapes"
    return side


def _fits(tensor: AuditTensor, size: int) -> bool:
    dtype = _NUMPY_DTYPES.get(_plain(tensor.dtype))
    if dtype is None or min((0, *tensor.shape)) < 0:
        return False
    n_bytes = _n_elements(tensor.shape) * np.dtype(dtype).itemsize
    return n_bytes == tensor.n_bytes and 0 <= tensor.offset <= size - n_bytes


def _ragged(roles: Mapping[str, AuditTensor]) -> bool:
    return len({roles[r].shape for r in ("before", "grad", "after") if r in roles}) > 1


def _match(ours: _Side, theirs: _Side) -> tuple[list[tuple[str, str]], Literal["name", "order"]]:
    """By name and shape; where not all agree, by order if the whole list of shapes does."""
    known = set(ours.names)
    by_name = [n for n in theirs.names if n in known and ours.shape(n) == theirs.shape(n)]
    complete = len(by_name) == len(theirs.names) == len(ours.names)
    same_shapes = [ours.shape(n) for n in ours.names] == [theirs.shape(n) for n in theirs.names]
    if not complete and same_shapes:
        return list(zip(ours.names, theirs.names, strict=True)), "order"
    return [(n, n) for n in by_name], "name"


@dataclass(frozen=True, kw_only=True)
class _TensorSums:
    difference: TensorDifference
    n_nonfinite_candidate: int
    n_nonfinite_baseline: int


def _sum_tensor(ours: _Side, theirs: _Side, c: str, b: str) -> _TensorSums:
    n = _n_elements(theirs.shape(b))
    squares = np.zeros(8)
    bad = np.zeros(2, dtype=np.int64)
    for first, last in _chunks(n):
        values = [
            side.values(name, role, first, last)
            for side, name in ((ours, c), (theirs, b))
            for role in ("before", "grad", "after")
        ]
        for i, v in enumerate(values):
            finite = np.isfinite(v)
            bad[i // 3] += int(v.size - np.count_nonzero(finite))
            v[~finite] = 0.0
        squares += _squares(*values)
    norms = [float(x) for x in np.sqrt(squares)]
    difference = TensorDifference(
        name=b,
        n_elements=n,
        grad_norm_candidate=norms[0],
        grad_norm_baseline=norms[1],
        grad_diff=norms[2],
        update_norm_candidate=norms[3],
        update_norm_baseline=norms[4],
        update_diff=norms[5],
        start_norm=norms[6],
        start_diff=norms[7],
    )
    return _TensorSums(
        difference=difference, n_nonfinite_candidate=int(bad[0]), n_nonfinite_baseline=int(bad[1])
    )


def _squares(
    before_c: NDArray[np.float64],
    grad_c: NDArray[np.float64],
    after_c: NDArray[np.float64],
    before_b: NDArray[np.float64],
    grad_b: NDArray[np.float64],
    after_b: NDArray[np.float64],
) -> NDArray[np.float64]:
    update_c, update_b = after_c - before_c, after_b - before_b
    vectors = (
        grad_c,
        grad_b,
        grad_c - grad_b,
        update_c,
        update_b,
        update_c - update_b,
        before_b,
        before_c - before_b,
    )
    return np.array([float(np.dot(v, v)) for v in vectors])


def _dtype_differences(ours: _Side, theirs: _Side, c: str, b: str) -> Iterator[DtypeDifference]:
    """Types that differ; a redo takes the candidate's state over, so that is set to the weight's.

    A 16-bit state beside a weight that is wider in the baseline counts as dropped.
    """
    weight = _plain(theirs.tensors[b]["before"].dtype)
    for role, tensor in ours.tensors[c].items():
        mine = _plain(tensor.dtype)
        other = theirs.tensors[b].get(role)
        baseline = _plain(other.dtype) if other else mine
        if role.startswith("state.") and mine in _NARROW and weight not in _NARROW:
            baseline = weight
        if baseline != mine:
            yield DtypeDifference(role=role, name=b, baseline=baseline, candidate=mine)


def _decode(raw: NDArray[np.uint8], dtype: str) -> NDArray[np.float64]:
    values = np.frombuffer(raw.tobytes(), dtype=_NUMPY_DTYPES[dtype])
    if dtype == "bfloat16":
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float64)


def _chunks(n: int) -> Iterator[tuple[int, int]]:
    return ((first, min(first + _CHUNK, n)) for first in range(0, n, _CHUNK))


def _n_elements(shape: tuple[int, ...]) -> int:
    n = 1
    for size in shape:
        n *= size
    return n


def _plain(dtype: str) -> str:
    return dtype.removeprefix("torch.")


def _bare(name: str) -> str:
    return ".".join(part for part in name.split(".") if part not in _WRAPPERS)
