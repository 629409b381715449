"""A candidate's audited step written out again as the baseline would have laid it out.

What comes of it is a folder like the candidate's own, so that the baseline can redo the step and
the comparison needs to know nothing of layouts. Bytes are moved, never decoded.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infrarsi.judge.layout import Block, Layout, Piece, Shape
from infrarsi.wire.probe import Audit, AuditTensor, RankEvidence

Array = NDArray[np.unsignedinteger[Any]]
Opener = Callable[[str], NDArray[np.uint8]]
"""A path to the file's bytes, one-dimensional."""

_WIDTHS = {1: "<u1", 2: "<u2", 4: "<u4", 8: "<u8"}
_PARAMETER_ROLES = ("before", "grad", "after")


class LayoutRefused(Exception):
    """Why an audit cannot be laid out as the baseline's; one sentence without a full stop."""


def relayout(
    evidence: RankEvidence,
    folder: Path,
    into: Path,
    layout: Layout,
    shapes: Mapping[str, Shape],
    open_: Opener,
) -> RankEvidence:
    """Write one rank's audits into another folder, parameters named and shaped as `shapes` says.

    Raises:
        LayoutRefused: a tensor the layout needs is missing or of another size, or rows the
            baseline does not have received a gradient.
    """
    into.mkdir(parents=True, exist_ok=True)
    audits = tuple(
        _Translation(audit, open_(str(folder / Path(audit.file).name)), layout, shapes).write(into)
        for audit in evidence.audits
    )
    laid = evidence.model_copy(update={"audits": audits})
    (into / f"rank{evidence.rank}.json").write_text(laid.model_dump_json(), "utf-8")
    return laid


class _Translation:
    """One audited step on its way into the baseline's layout."""

    def __init__(
        self, audit: Audit, data: NDArray[np.uint8], layout: Layout, shapes: Mapping[str, Shape]
    ) -> None:
        self._audit = audit
        self._data = data
        self._layout = layout
        self._shapes = shapes
        self._index = {(t.name, t.role): t for t in audit.tensors}
        self._check_padding()

    def write(self, into: Path) -> Audit:
        """The new file and its index."""
        tensors: list[AuditTensor] = []
        offset = 0
        with (into / Path(self._audit.file).name).open("wb") as file:
            for name, role, dtype, array in self._translated():
                file.write(array.tobytes())
                shape = tuple(int(n) for n in array.shape)
                entry = AuditTensor(
                    role=role,
                    name=name,
                    shape=shape,
                    dtype=dtype,
                    offset=offset,
                    n_bytes=array.nbytes,
                )
                offset += array.nbytes
                tensors.append(entry)
        return self._audit.model_copy(
            update={"tensors": tuple(tensors), "scalars": dict(self._scalars())}
        )

    def _translated(self) -> Iterator[tuple[str, str, str, Array]]:
        for name, pieces in self._pieces().items():
            roles = {role for p in pieces for n, role in self._index if n == p.candidate.name}
            for role in sorted(roles):
                dtype, array = self._assembled(name, role, pieces)
                yield name, role, dtype, array

    def _pieces(self) -> dict[str, list[Piece]]:
        found: dict[str, list[Piece]] = {}
        audited = {name for name, role in self._index if role == "before"}
        for piece in self._layout.pieces:
            if piece.candidate.name in audited:
                found.setdefault(piece.baseline.name, []).append(piece)
        return found

    def _assembled(self, name: str, role: str, pieces: list[Piece]) -> tuple[str, Array]:
        first = next(
            t for p in pieces if (t := self._index.get((p.candidate.name, role))) is not None
        )
        if role not in _PARAMETER_ROLES and not self._like_parameter(first):
            return first.dtype, self._array(first)
        result = np.zeros(self._shapes[name], dtype=self._array(first).dtype)
        for piece in pieces:
            tensor = self._index.get((piece.candidate.name, role))
            if tensor is None:
                continue
            values = _taken(self._array(tensor), piece.candidate)
            values = np.swapaxes(values, -1, -2) if piece.transposed else values
            target = _taken(result, piece.baseline)
            if target.shape != values.shape or tensor.dtype != first.dtype:
                raise LayoutRefused(f"{piece.candidate.name} does not fit {name}")
            target[...] = values
        return first.dtype, result

    def _like_parameter(self, tensor: AuditTensor) -> bool:
        """Whether a state has a number for each of its parameter's."""
        before = self._index.get((tensor.name, "before"))
        return before is not None and before.shape == tensor.shape

    def _array(self, tensor: AuditTensor) -> Array:
        n = math.prod(tensor.shape)
        width = tensor.n_bytes // n if n else 4
        if width not in _WIDTHS or tensor.n_bytes != n * width or min((0, *tensor.shape)) < 0:
            raise LayoutRefused(f"the audit's index is wrong for {tensor.name}")
        raw = self._data[tensor.offset : tensor.offset + tensor.n_bytes]
        if tensor.offset < 0 or raw.size != tensor.n_bytes:
            raise LayoutRefused(f"the audit's file is too short for {tensor.name}")
        return np.frombuffer(raw.tobytes(), dtype=_WIDTHS[width]).reshape(tensor.shape)

    def _scalars(self) -> Iterator[tuple[str, float]]:
        for name, pieces in self._pieces().items():
            tail = f".{pieces[0].candidate.name}"
            for key, value in self._audit.scalars.items():
                if key.endswith(tail):
                    yield f"{key.removesuffix(tail)}.{name}", value

    def _check_padding(self) -> None:
        """Rows beyond the baseline's must never have received a gradient."""
        rows = {p.candidate.name: p.candidate.stop for p in self._layout.pieces}
        for name in self._layout.padded:
            gradient = self._index.get((name, "grad"))
            if gradient is not None and np.any(_magnitudes(self._array(gradient)[rows[name] :])):
                raise LayoutRefused(f"rows of {name} that the baseline does not have are trained")


def _taken(array: Array, block: Block) -> Array:
    """A view of the block."""
    if array.ndim == 0:
        return array
    region = [slice(None)] * array.ndim
    region[block.axis] = slice(block.start, block.stop)
    view = array[tuple(region)]
    view = view[(slice(None),) * block.axis + (0,)] if block.dropped else view
    if block.inner is None:
        return view
    axis, start, stop = block.inner
    return view[(slice(None),) * axis + (slice(start, stop),)]


def _magnitudes(values: Array) -> Array:
    """The bits without the sign: zero for plus and minus zero only."""
    width = values.dtype.itemsize
    return values & values.dtype.type((1 << (8 * width - 1)) - 1)
