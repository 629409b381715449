"""What is read of jobs in the idioms of public trainers; see `tests/fixtures/trainers16`.

One table: for each idiom and launch line the micro-batch, accumulation, processes, effective batch
(rows of a step), sequence length, precision and clipping. `None` is an unknown with its reason.
"""

from pathlib import Path

import pytest

from infrarsi.contract import Fact
from infrarsi.launch import parse_launch
from infrarsi.reading import MappingSources, Reading, read

TRAINERS = Path(__file__).parents[2] / "fixtures" / "trainers16"
NAMES = ("micro_batch", "accumulation", "world_size", "global_batch", "seq_len")
COLUMNS = (*NAMES, "precision", "clip")
MEGATRON = (
    "pretrain_gpt.py --seq-length 1024 --micro-batch-size 4 --global-batch-size 128 "
    "--train-iters 5000 --lr 6.0e-5 --clip-grad 1.0 --bf16 --tensor-model-parallel-size 2"
)

TABLE = [
    ("constants_exec", "python train.py", (16, 24, 1, 384, 512, None, 1.0)),
    ("constants_exec", "torchrun --nproc-per-node 4 train.py", (16, 6, 4, 384, 512, None, 1.0)),
    ("constants_exec", "python train.py small.py", (8, 4, 1, 32, 128, None, "none")),
    ("constants_exec", "python train.py --batch_size=2", (2, 24, 1, 48, 512, None, 1.0)),
    ("cfg_node", "python train.py", (48, 1, 1, 48, 96, "fp32", 0.5)),
    ("token_total", "python train.py", (4, 4, 1, 16, 64, "fp32", 1.0)),
    (
        "token_total",
        "torchrun --nproc-per-node 2 train.py --dtype bfloat16 --total_batch_size 2048",
        (4, 4, 2, 32, 64, "bf16", 1.0),
    ),
    (
        "json_config",
        "torchrun --nproc-per-node 2 train.py --config job.json",
        (4, 8, 2, 64, 256, "bf16", "none"),
    ),
    ("fabric_yaml", "python pretrain.py", (4, 8, 2, 64, 256, "bf16", 1.0)),
    ("fabric_yaml", "torchrun --nproc-per-node 2 pretrain.py", (4, 8, 2, 64, 256, "bf16", 1.0)),
    ("fabric_yaml", "python pretrain.py --config config.yaml", (8, 4, 4, 128, 512, "bf16", 0.5)),
    (
        "fabric_yaml",
        "python pretrain.py --train.micro_batch_size 8 --devices 1",
        (8, 8, 1, 64, 256, "bf16", 1.0),
    ),
    (
        "hf_arguments",
        "python run_clm.py --output_dir out --per_device_train_batch_size 4 "
        "--gradient_accumulation_steps 8 --bf16 --block_size 128",
        (4, 8, 1, 32, 128, "bf16", 1.0),
    ),
    ("hf_arguments", "python run_clm.py job.json", (2, 16, 1, 32, 256, "fp16", 0.3)),
    (
        "hf_arguments",
        "torchrun --nproc-per-node 2 run_clm.py --output_dir out --max_grad_norm 0",
        (8, 1, 2, 16, 512, "fp32", "none"),
    ),
    ("trainer_arguments", "python finetune.py", (4, 16, 1, 64, 384, "bf16", 1.0)),
    (
        "trainer_arguments",
        "torchrun --nproc-per-node 4 finetune.py",
        (4, 16, 4, 256, 384, "bf16", 1.0),
    ),
    ("sft", "python sft.py", (2, 8, 1, 16, 1024, "bf16", 0.3)),
    (
        "sft",
        "torchrun --nproc-per-node 2 sft.py --bs 4 --length 512",
        (4, 8, 2, 64, 512, "bf16", 0.3),
    ),
    ("accelerate_modulo", "python train.py", (8, 4, 1, 32, 128, "fp32", 1.0)),
    (
        "accelerate_modulo",
        "torchrun --nproc-per-node 2 train.py --mixed_precision fp16",
        (8, 4, 2, 64, 128, "fp16", 1.0),
    ),
    ("accelerate_context", "python train.py", (6, 5, 1, 30, 200, "fp16", 0.5)),
    (
        "accelerate_context",
        "torchrun --nproc-per-node 2 train.py",
        (6, 5, 2, 60, 200, "fp16", 0.5),
    ),
    ("accelerate_no_sync", "python train.py", (4, 6, 1, 24, 160, "bf16", "none")),
    (
        "accelerate_no_sync",
        "torchrun --nproc-per-node 2 train.py --accum 3",
        (4, 3, 2, 24, 160, "bf16", "none"),
    ),
    (
        "titan_dataclasses",
        "torchrun --nproc-per-node 2 train.py",
        (4, 4, 2, 32, 512, "bf16", 1.0),
    ),
    (
        "titan_dataclasses",
        "torchrun --nproc-per-node 8 train.py",
        (4, 1, 8, 32, 512, "bf16", 1.0),
    ),
    ("titan_toml", "torchrun --nproc-per-node 2 train.py", (8, 1, 2, 16, 1024, "bf16", 1.0)),
    (
        "staged_tokens",
        "torchrun --nproc-per-node 2 train_gpt.py",
        (None, 4, 2, None, None, "bf16", "none"),
    ),
    ("depth_derived", "python base_train.py", (16, 16, 1, 256, 1024, "bf16", "none")),
    (
        "depth_derived",
        "torchrun --nproc-per-node 2 base_train.py --device-batch-size=8",
        (8, 16, 2, 256, 1024, "bf16", "none"),
    ),
    (
        "depth_derived",
        "python base_train.py --total-batch-size -1",
        (16, None, 1, None, 1024, "bf16", "none"),
    ),
    ("frozen_prepare", "python train.py", (16, 4, 1, 64, 256, "bf16", "none")),
    ("fsdp_literals", "torchrun --nproc-per-node 2 train.py", (24, 1, 2, 48, 80, "fp32", 1.0)),
    (
        "fsdp_literals",
        "torchrun --nproc-per-node 2 train.py --mixed-precision",
        (24, 1, 2, 48, 80, "bf16", 1.0),
    ),
    ("hydra_snapshot", "torchrun --nproc-per-node 2 main.py", (20, 1, 2, 40, 96, "fp16", 1.0)),
    (
        "hydra_snapshot",
        "torchrun --nproc-per-node 2 main.py trainer_config.batch_size=10",
        (10, 1, 2, 20, 96, "fp16", 1.0),
    ),
    ("lightning", "python train.py", (12, 4, 1, 48, 320, "bf16", 0.8)),
    ("lightning", "python train.py --devices 2", (12, 4, 2, 96, 320, "bf16", 0.8)),
    (
        "lightning",
        "torchrun --nproc-per-node 2 train.py --devices 2 --accumulate 1",
        (12, 1, 2, 24, 320, "bf16", 0.8),
    ),
    ("fabric", "python train.py", (10, 3, 2, 60, 144, "bf16", 0.25)),
    ("deepspeed_dict", "python pretrain.py", (8, 4, 1, 32, 192, "bf16", 1.0)),
    (
        "deepspeed_dict",
        "torchrun --nproc-per-node 2 pretrain.py",
        (8, 4, 2, 64, 192, "bf16", 1.0),
    ),
    ("deepspeed_json", "python train.py", (4, 12, 1, 48, 128, "fp16", 0.7)),
    (
        "deepspeed_json",
        "torchrun --nproc-per-node 2 train.py",
        (4, 6, 2, 48, 128, "fp16", 0.7),
    ),
    (
        "megatron_shell",
        f"torchrun --nproc-per-node 8 {MEGATRON}",
        (4, 8, 8, 128, 1024, "bf16", 1.0),
    ),
    (
        "megatron_shell",
        f"torchrun --nproc-per-node 2 {MEGATRON}",
        (4, 32, 2, 128, 1024, "bf16", 1.0),
    ),
]


def texts_of(name: str) -> dict[str, str]:
    folder = TRAINERS / name
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


def _read(name: str, launch: str, **edits: tuple[str, str]) -> Reading:
    texts = texts_of(name)
    for stem, (old, new) in edits.items():
        (file,) = [path for path in texts if path.rpartition(".")[0] == stem]
        assert texts[file].count(old) == 1, (file, old)
        texts[file] = texts[file].replace(old, new)
    return read(MappingSources(texts), parse_launch(launch))


def _fact(reading: Reading, name: str) -> Fact:
    fact = reading.fact(name)
    assert fact is not None, name
    assert (fact.value is None) == bool(fact.unknown), fact
    return fact


def _values(reading: Reading, *names: str) -> tuple[object, ...]:
    return tuple(_fact(reading, name).value for name in names)


@pytest.mark.parametrize(("name", "launch", "expected"), TABLE)
def test_the_work_of_a_step_is_told_or_said_to_be_unknown(
    name: str, launch: str, expected: tuple[object, ...]
):
    reading = _read(name, launch)
    assert _values(reading, *COLUMNS) == expected
    assert not reading.problems


def test_at_least_sixteen_idioms_are_in_the_table_and_every_fixture_is():
    names = {name for name, _, _ in TABLE}
    assert names == {path.name for path in TRAINERS.iterdir()}
    assert len(names) >= 16
