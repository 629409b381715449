"""Audits brought from one layout into another and back lose and invent nothing."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from infrarsi.judge.layout import Shape, infer_layouts
from infrarsi.wire.probe import Audit, AuditTensor, RankEvidence
from infrarsi_runner.relayout import LayoutRefused, relayout

LINEARS: dict[str, Shape] = {
    "tok": (7, 4),
    **{f"experts.{e}.{w}": s for e in range(3) for w, s in (("w1", (6, 4)), ("w2", (4, 6)))},
    "step": (),
}


def written(folder: Path, values: dict[str, dict[str, NDArray[np.float32]]]) -> RankEvidence:
    """Evidence of one audited step with those arrays by name and role."""
    folder.mkdir()
    tensors: list[AuditTensor] = []
    offset = 0
    with (folder / "step5.rank0.bin").open("wb") as file:
        for name, roles in values.items():
            for role, array in roles.items():
                file.write(array.tobytes())
                entry = {"role": role, "name": name, "shape": array.shape, "dtype": "float32"}
                tensors.append(AuditTensor(**entry, offset=offset, n_bytes=array.nbytes))
                offset += array.nbytes
    scalars = {f"state.step.{name}": 5.0 for name in values}
    audit = Audit(step=5, file="step5.rank0.bin", tensors=tuple(tensors), scalars=scalars)
    return RankEvidence(
        mode="timed",
        rank=0,
        world_size=1,
        pid=1,
        torch_version="2",
        python_version="3",
        n_threads=1,
        parameter_shapes=tuple((n, r["before"].shape) for n, r in values.items()),
        audits=(audit,),
    )


def arrays_of(folder: Path, evidence: RankEvidence) -> dict[tuple[str, str], NDArray[np.float32]]:
    """What the files hold, by name and role."""
    (audit,) = evidence.audits
    raw = (folder / audit.file).read_bytes()
    return {
        (t.name, t.role): np.frombuffer(raw[t.offset : t.offset + t.n_bytes], "<f4").reshape(
            t.shape
        )
        for t in audit.tensors
    }


def opened(path: str) -> NDArray[np.uint8]:
    return np.fromfile(path, dtype=np.uint8)


def random_roles(shape: Shape, seed: int) -> dict[str, NDArray[np.float32]]:
    rng = np.random.default_rng(seed)
    roles = ("before", "grad", "after", "state.exp_avg")
    made = {role: rng.normal(size=shape).astype(np.float32) for role in roles}
    return {**made, "state.count": np.float32(5).reshape(())}


def stacked(
    values: dict[str, dict[str, NDArray[np.float32]]],
) -> dict[str, dict[str, NDArray[np.float32]]]:
    """The same numbers with experts stacked and transposed."""
    ours: dict[str, dict[str, NDArray[np.float32]]] = {"tok": values["tok"]}
    for w in ("w1", "w2"):
        parts = [values[f"experts.{e}.{w}"] for e in range(3)]
        ours[f"experts.{w}"] = {
            role: np.stack([p[role].T for p in parts]) if parts[0][role].ndim else parts[0][role]
            for role in parts[0]
        }
    return {**ours, "step": values["step"]}


def test_stacked_experts_come_out_as_the_linears_they_were(tmp_path: Path) -> None:
    theirs = {name: random_roles(shape, i) for i, (name, shape) in enumerate(LINEARS.items())}
    ours = written(tmp_path / "ours", stacked(theirs))
    (layout, *_) = infer_layouts(ours.parameter_shapes, tuple(LINEARS.items()))
    laid = relayout(ours, tmp_path / "ours", tmp_path / "laid", layout, LINEARS, opened)
    found = arrays_of(tmp_path / "laid", laid)
    assert {name for name, _ in found} == set(LINEARS)
    for (name, role), array in found.items():
        assert np.array_equal(array, theirs[name][role]), (name, role)
    assert laid.audits[0].scalars == {f"state.step.{name}": 5.0 for name in LINEARS}
    assert RankEvidence.model_validate_json((tmp_path / "laid/rank0.json").read_bytes()) == laid


def test_padded_rows_may_not_be_trained(tmp_path: Path) -> None:
    shapes: dict[str, Shape] = {"head": (5, 4)}
    roles = random_roles((8, 4), 1)
    quiet = {**roles, "grad": roles["grad"].copy()}
    quiet["grad"][5:] = 0
    evidence = written(tmp_path / "a", {"head": quiet})
    (layout,) = set(infer_layouts(evidence.parameter_shapes, tuple(shapes.items())))
    laid = relayout(evidence, tmp_path / "a", tmp_path / "b", layout, shapes, opened)
    assert np.array_equal(arrays_of(tmp_path / "b", laid)["head", "after"], quiet["after"][:5])
    trained = written(tmp_path / "c", {"head": roles})
    with pytest.raises(LayoutRefused, match="head"):
        relayout(trained, tmp_path / "c", tmp_path / "d", layout, shapes, opened)


def test_a_file_that_is_too_short_is_refused(tmp_path: Path) -> None:
    evidence = written(tmp_path / "a", {"w": random_roles((4, 2), 1)})
    (tmp_path / "a/step5.rank0.bin").write_bytes(b"\0" * 8)
    (layout,) = set(infer_layouts((("w", (4, 2)),), (("v", (4, 2)),)))
    with pytest.raises(LayoutRefused, match="too short"):
        relayout(evidence, tmp_path / "a", tmp_path / "b", layout, {"v": (4, 2)}, opened)
