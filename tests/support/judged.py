"""Evidence of an honest candidate, to be spoilt one field at a time; and real audit files."""

from pathlib import Path

import numpy as np

from infrarsi.contract.contract import Lock, Scope, TaskContract, Workload
from infrarsi.judge.audit_comparison import AuditComparison, TensorDifference
from infrarsi.judge.evidence import EnduranceRun, JudgedEvidence
from infrarsi.launch import Launch
from infrarsi.pair import Turn
from infrarsi.run import OutsideStep, RunObservation
from infrarsi.wire.probe import Audit, AuditTensor, OptimizerRecord, RankEvidence, StepRecord
from infrarsi.wire.results import Calibration, Interval, Roof

WIDTH = 8
"""Rows of a step."""


def lock(**changes):
    contract = TaskContract(
        job="main",
        launch=Launch(script="train.py"),
        workload=Workload(global_batch_rows=WIDTH, seq_len_tokens=64, world_size=1),
        scope=Scope(editable=("train.py",), locked=("data.py",)),
    ).model_copy(update=changes)
    return Lock(
        contract=contract,
        locked_files={"data.py": "aa"},
        baseline_commit="c0ffee",
        digest="d1",
    )


def step(index, micro_steps=4, **changes):
    loss = 5.0 * 0.97**index
    fields = {
        "index": index,
        "end_s": float(index),
        "cpu_s": 1.0,
        "micro_steps": micro_steps,
        "rows": WIDTH,
        "tokens": WIDTH * 64,
        "seq_len": 64,
        "inputs_hash": f"{1000 + index:x}",
        "targets_hash": f"{2000 + index:x}",
        "positions_in_loss": WIDTH * 64,
        "losses": (loss / micro_steps,) * micro_steps,
        "learning_rates": (1e-3,),
        "loss_dtype": "torch.float32",
    }
    return StepRecord(**{**fields, **changes})


def rank(steps=None, **changes):
    fields = {
        "mode": "timed",
        "rank": 0,
        "world_size": 1,
        "pid": 1,
        "torch_version": "2.13.0",
        "python_version": "3.11.2",
        "n_threads": 1,
        "parameter_dtypes": {"torch.float32": 10},
        "optimizers": (
            OptimizerRecord(name="torch.optim.AdamW", groups=({"eps": "1e-08"},), n_parameters=3),
        ),
        "steps": tuple(step(i) for i in range(12)) if steps is None else tuple(steps),
    }
    return RankEvidence(**{**fields, **changes})


def tensor(name="w", grad_error=1e-7, update_error=1e-6, grad=1.0, **changes):
    fields = {
        "name": name,
        "n_elements": 100,
        "grad_norm_baseline": grad,
        "grad_norm_candidate": grad,
        "grad_diff": grad * grad_error,
        "update_norm_baseline": 0.1,
        "update_norm_candidate": 0.1,
        "update_diff": 0.1 * update_error,
        "start_norm": 10.0,
    }
    return TensorDifference(**{**fields, **changes})


def audit(*tensors, **changes):
    fields = {"step": 5, "rank": 0, "tensors": tensors or (tensor("a"), tensor("b"), tensor("c"))}
    return AuditComparison(**{**fields, **changes})


def calibration(**changes):
    fields = {
        "contract_digest": "d1",
        "machine": "m",
        "step_time_s": Interval(value=1.0, low=0.9, high=1.1),
        "step_cv_frac": 0.05,
        "tokens_per_step": WIDTH * 64,
        "flops_per_token": 1e6,
        "flops_convention": "counted-causal-1",
        "roof": Roof(flops_per_s=1e12, dtype="bfloat16", fp32_flops_per_s=1e11, how="matmul"),
        "mfu_frac": 0.2,
        "peak_mem_bytes": (10**9,),
        "pair_log_sd": 0.02,
        "aa_log_ratios": (0.01, -0.01),
        "resolvable": (),
        "sandbox_level": "bubblewrap",
    }
    return Calibration(**{**fields, **changes})


def turns(cpu_outside_turn_s=0.0):
    return (
        Turn(side="baseline", steps_s=(1.0,) * 9),
        Turn(side="candidate", steps_s=(0.5,) * 9, cpu_outside_turn_s=cpu_outside_turn_s),
    )


def endurance(wall_s=30.0, cpu_s=30.0, n_done=40, n_ranks=1, end="finished", **changes):
    fields = {
        "n_steps": 40,
        "observation": RunObservation(
            end=end,
            exit_code=0,
            wall_s=wall_s,
            cpu_s=cpu_s,
            steps=tuple(
                OutsideStep(rank=rank, index=index, at_s=float(index))
                for index in range(n_done)
                for rank in range(n_ranks)
            ),
        ),
        "claimed_step_time_s": 0.5,
        "claimed_cpu_s_per_step": 0.5,
        "startup_wall_s": 10.0,
        "startup_cpu_s": 10.0,
    }
    return EnduranceRun(**{**fields, **changes})


def honest(**changes):
    fields = {
        "lock": lock(),
        "candidate": (rank(steps=[step(i, micro_steps=1) for i in range(12)]),),
        "baseline": (rank(),),
        "candidate_step_time_s": 0.5,
        "audits": (audit(),),
        "turns": turns(),
        "locked_before": {"data.py": "aa"},
        "locked_after": {"data.py": "aa"},
        "endurance": endurance(),
        "calibration": calibration(),
    }
    return JudgedEvidence(**{**fields, **changes})


def with_steps(**changes):
    """An honest candidate but for these fields of every step."""
    return honest(candidate=(rank(steps=[step(i, **changes) for i in range(12)]),))


def write_audit(folder: Path, parameters, at_step=5, at_rank=0, dtypes=None):
    """Write raw tensors as the probe does; parameters: name → role → array."""
    tensors, raw = [], bytearray()
    for name, roles in parameters.items():
        for role, array in roles.items():
            dtype = (dtypes or {}).get((name, role), "float32")
            data = encode(np.asarray(array), dtype)
            shape = tuple(np.asarray(array).shape)
            tensors.append(
                AuditTensor(
                    role=role,
                    name=name,
                    shape=shape,
                    dtype=f"torch.{dtype}",
                    offset=len(raw),
                    n_bytes=len(data),
                )
            )
            raw += data
    file = f"step{at_step}.rank{at_rank}.bin"
    folder.mkdir(exist_ok=True)
    (folder / file).write_bytes(bytes(raw))
    record = Audit(step=at_step, file=file, tensors=tuple(tensors))
    return rank(steps=(), rank=at_rank, world_size=at_rank + 1, audits=(record,))


def encode(array, dtype):
    if dtype == "bfloat16":
        bits = np.asarray(array, dtype="<f4").view(np.uint32)
        return (bits >> 16).astype("<u2").tobytes()
    return np.asarray(array, dtype=np.dtype(dtype).newbyteorder("<")).tobytes()


def open_bytes(path):
    return np.fromfile(path, dtype=np.uint8)
