"""What is read of jobs in the idioms of public trainers; see `tests/fixtures/trainers16`.

One table: for each idiom and launch line the micro-batch, accumulation, processes, effective batch
(rows of a step), sequence length, precision and clipping. `None` is an unknown with its reason.
"""

from pathlib import Path

import pytest

from infrarsi.contract import Fact
from infrarsi.launch import parse_launch
from infrarsi.reading import MappingSources, Reading, read
from infrarsi.reading.shell import read_launch_file

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


UPDATES = ("optimizer", "lr", "weight_decay", "betas", "parameters", "loss", "seed", "updates")


@pytest.mark.parametrize(
    ("name", "launch", "expected"),
    [
        (
            "constants_exec",
            "python train.py",
            ("AdamW", 1e-3, 0.1, "(0.9, 0.99)", "fp32", "cross_entropy", 1337, 4000),
        ),
        (
            "cfg_node",
            "python train.py",
            ("AdamW", 5e-4, 0.01, "(0.9, 0.95)", "fp32", "cross_entropy", 3407, None),
        ),
        (
            "token_total",
            "python train.py --num_iterations 20",
            ("AdamW", 1e-4, 0.0, "(0.9, 0.95)", "fp32", "cross_entropy", 42, 20),
        ),
        (
            "json_config",
            "torchrun --nproc-per-node 2 train.py --config job.json",
            ("AdamW", 3e-4, 0.01, "(0.9, 0.999)", "bf16", "cross_entropy", 42, 200),
        ),
        (
            "hf_arguments",
            "python run_clm.py job.json",
            ("AdamW", 2e-4, 0.0, "(0.9, 0.999)", "fp32", "outputs.loss", 5, 300),
        ),
        (
            "trainer_arguments",
            "python finetune.py",
            ("AdamW", 1e-4, 0.05, "(0.9, 0.95)", "fp32", "outputs.loss", 42, 1000),
        ),
        (
            "sft",
            "python sft.py",
            ("AdamW", 2e-5, 0.0, "(0.9, 0.999)", "bf16", "outputs.loss", 11, None),
        ),
        (
            "accelerate_modulo",
            "python train.py",
            ("AdamW", 5e-5, 0.0, "(0.9, 0.999)", "fp32", "model(...)", 42, 400),
        ),
        (
            "accelerate_context",
            "python train.py",
            ("Adam", 3e-4, 0.0, "(0.9, 0.999)", "fp32", "cross_entropy", 1, 180),
        ),
        (
            "titan_dataclasses",
            "torchrun --nproc-per-node 2 train.py",
            ("AdamW", 3e-3, 0.1, "(0.9, 0.999)", "fp32", "cross_entropy", 0, 50),
        ),
        (
            "titan_toml",
            "torchrun --nproc-per-node 2 train.py",
            ("AdamW", 8e-4, 0.1, "(0.9, 0.999)", "fp32", "cross_entropy", 3, 40),
        ),
        (
            "depth_derived",
            "python base_train.py --num-iterations 70",
            ("AdamW", 0.02, 0.2, "(0.8, 0.95)", "fp32", "cross_entropy", 42, 70),
        ),
        (
            "frozen_prepare",
            "python train.py",
            ("AdamW", 0.04, 0.2, "(0.8, 0.95)", "fp32", "cross_entropy", 42, None),
        ),
        (
            "lightning",
            "python train.py",
            ("AdamW", 3e-4, 0.1, "(0.9, 0.999)", "fp32", "cross_entropy", 7, 1200),
        ),
        (
            "deepspeed_json",
            "torchrun --nproc-per-node 2 train.py",
            ("AdamW", 2e-4, 0.1, "(0.9, 0.95)", "fp16", "cross_entropy", 17, 640),
        ),
        (
            "megatron_shell",
            f"torchrun --nproc-per-node 8 {MEGATRON}",
            ("adam", 6e-5, 0.01, "(0.9, 0.999)", "bf16", "loss_func", 1234, 5000),
        ),
    ],
)
def test_how_weights_are_updated(name: str, launch: str, expected: tuple[object, ...]):
    assert _values(_read(name, launch), *UPDATES) == expected


ARGS = "per_device_train_batch_size=micro,"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (ARGS, "", (8, 16, 128)),
        ("    max_steps=1_000,\n", "    max_steps=1_000, auto_find_batch_size=True,\n", None),
        (
            "trainer = Trainer(",
            "args.gradient_accumulation_steps = 2\ntrainer = Trainer(",
            (4, 2, 8),
        ),
        (ARGS, "**settings,", None),
        (
            ARGS,
            '**{"per_device_train_batch_size": 2},',
            (2, 16, 32),
        ),
        ("    args=args,\n", "", (8, 1, 8)),
        (
            "trainer = Trainer(",
            "class Mine(Trainer):\n    pass\ntrainer = Mine(",
            (4, 16, 64),
        ),
        (
            "trainer = Trainer(",
            "from torch.utils.data import DataLoader\n"
            "class Mine(Trainer):\n    def get_train_dataloader(self):\n"
            "        return DataLoader(self.train_dataset, batch_size=3)\ntrainer = Mine(",
            (3, 16, 48),
        ),
    ],
)
def test_a_trainers_batch_follows_its_arguments_and_overrides(
    old: str, new: str, expected: tuple[int, ...] | None
):
    reading = _read("trainer_arguments", "python finetune.py", finetune=(old, new))
    work = _values(reading, "micro_batch", "accumulation", "global_batch")
    assert work == expected if expected else work[::2] == (None, None)


def test_a_trainers_defaults_stand_at_the_call_that_leaves_them():
    reading = _read("trainer_arguments", "python finetune.py")
    place = _fact(reading, "clip").place
    assert place is not None
    lines = texts_of("trainer_arguments")["finetune.py"].splitlines()
    assert lines[place.line - 1] == "args = TrainingArguments("


def test_an_overridden_loss_of_a_trainer_is_named():
    own = (
        "trainer = Trainer(",
        "class Mine(Trainer):\n    def compute_loss(self, model, inputs, **kwargs):\n"
        '        logits = model(inputs["input_ids"]).logits\n'
        '        return torch.nn.functional.cross_entropy(logits, inputs["labels"])\n'
        "trainer = Mine(",
    )
    reading = _read("trainer_arguments", "python finetune.py", finetune=own)
    assert _values(reading, "loss") == ("cross_entropy",)
    assert {"forward", "loss", "fetch"} <= {span.role for span in reading.roles}


def test_rows_that_are_not_packed_have_no_length_of_their_own():
    reading = _read("sft", "python sft.py", sft=("packing=True", "packing=False"))
    assert _values(reading, "global_batch", "seq_len", "tokens_per_step") == (16, None, None)
    assert "not packed" in (_fact(reading, "seq_len").unknown or "")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('precision="bf16-mixed"', "precision=16", ("fp16", "fp32")),
        ('precision="bf16-mixed"', 'precision="16-true"', ("fp16", "fp16")),
        ('precision="bf16-mixed"', 'precision="bf16-true"', ("bf16", "bf16")),
        ('precision="bf16-mixed"', 'precision="32"', ("fp32", "fp32")),
        ('precision="bf16-mixed",', "", ("fp32", "fp32")),
        ('precision="bf16-mixed"', 'precision="transformer-engine"', ("fp8", "bf16")),
        ('precision="bf16-mixed"', "precision=chosen()", (None, None)),
    ],
)
def test_lightning_spells_precision_in_dialects(old: str, new: str, expected: tuple[object, ...]):
    reading = _read("lightning", "python train.py", train=(old, new))
    assert _values(reading, "precision", "parameters") == expected


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("devices=args.devices", 'devices="auto"', {"world_size", "global_batch"}),
        ("devices=args.devices", "devices=-1", {"world_size", "global_batch"}),
        ("devices=args.devices,", "", {"world_size", "global_batch"}),
        (
            "        self.lr = lr\n",
            "        self.lr = lr\n        self.automatic_optimization = False\n",
            {"accumulation", "global_batch", "clip"},
        ),
        (
            "accumulate_grad_batches=args.accumulate",
            "accumulate_grad_batches={0: 1, 4: 8}",
            {"accumulation", "global_batch"},
        ),
        ("max_steps=1200", "max_epochs=3", {"updates"}),
        ("max_steps=1200", "max_steps=1200, fast_dev_run=True", {"updates"}),
    ],
)
def test_what_lightning_leaves_to_the_machine_or_to_the_run_is_unknown(
    old: str, new: str, names: set[str]
):
    reading = _read("lightning", "python train.py", train=(old, new))
    told = ("micro_batch", "accumulation", "world_size", "global_batch", "clip", "updates")
    assert {name for name in told if _fact(reading, name).value is None} == names


def test_lightnings_processes_on_one_cpu_are_one():
    edit = ('accelerator="gpu",\n        devices=args.devices', 'accelerator="cpu", devices="auto"')
    assert _values(_read("lightning", "python train.py", train=edit), "world_size") == (1,)


ROWS, MICRO = '"train_batch_size": 48,', '"train_micro_batch_size_per_gpu": 4,'


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (ROWS, '"gradient_accumulation_steps": 3,', (4, 3, 24)),
        (MICRO, '"gradient_accumulation_steps": 3,', (8, 3, 48)),
        (MICRO, "", (24, 1, 48)),
        (ROWS, "", (4, 1, 8)),
        (ROWS, ROWS + ' "gradient_accumulation_steps": 5,', (None, None, None)),
        (ROWS, '"train_batch_size": "auto",', (4, None, None)),
        (ROWS, '"train_batch_size": 47,', (None, None, None)),
    ],
)
def test_two_of_deepspeeds_batch_sizes_give_the_third(
    old: str, new: str, expected: tuple[object, ...]
):
    launch = "torchrun --nproc-per-node 2 train.py"
    reading = _read("deepspeed_json", launch, ds_config=(old, new))
    assert _values(reading, "micro_batch", "accumulation", "global_batch") == expected


def test_a_loader_of_the_jobs_own_sets_the_rows_of_deepspeed():
    edit = ("batch_size=batch_size, shuffle", "batch_size=2, shuffle")
    reading = _read("deepspeed_dict", "python pretrain.py", pretrain=edit)
    assert _values(reading, "micro_batch", "accumulation", "global_batch") == (2, 4, 8)


@pytest.mark.parametrize(
    ("launch", "old", "new", "expected"),
    [
        ("python train.py", "num_steps=5", "num_steps=2", (6, 2, 12)),
        (
            "ACCELERATE_GRADIENT_ACCUMULATION_STEPS=7 python train.py",
            ", gradient_accumulation_plugin=plugin",
            ", gradient_accumulation_steps=3",
            (6, 7, 42),
        ),
        (
            "python train.py",
            ", gradient_accumulation_plugin=plugin",
            ", gradient_accumulation_steps=3",
            (6, 3, 18),
        ),
        ("python train.py", ", gradient_accumulation_plugin=plugin", "", (6, 1, 6)),
        (
            "torchrun --nproc-per-node 2 train.py",
            ", gradient_accumulation_plugin=plugin",
            ", split_batches=True",
            (3, 1, 6),
        ),
        (
            "python train.py",
            "gradient_accumulation_plugin=plugin",
            "gradient_accumulation_plugin=make()",
            (6, None, None),
        ),
    ],
)
def test_accelerate_takes_its_accumulation_from_several_places(
    launch: str, old: str, new: str, expected: tuple[object, ...]
):
    reading = _read("accelerate_context", launch, train=(old, new))
    assert _values(reading, "micro_batch", "accumulation", "global_batch") == expected


@pytest.mark.parametrize(
    ("name", "launch", "expected"),
    [
        (
            "accelerate_modulo",
            "accelerate launch --num_processes 4 train.py",
            (8, 4, 4, 128, 128, "fp32", 1.0),
        ),
        (
            "deepspeed_json",
            "deepspeed --num_gpus 3 train.py",
            (4, 4, 3, 48, 128, "fp16", 0.7),
        ),
    ],
)
def test_other_launchers_set_the_processes(name: str, launch: str, expected: tuple[object, ...]):
    assert _values(_read(name, launch), *COLUMNS) == expected


def test_flags_of_a_launch_file_are_read():
    texts = texts_of("megatron_shell")
    launch = read_launch_file("launch.sh", texts["launch.sh"])
    reading = read(MappingSources(texts), launch)
    assert _values(reading, *COLUMNS) == (4, 8, 8, 128, 1024, "bf16", 1.0)
    assert _values(reading, "lr", "weight_decay", "betas") == (6e-5, 0.1, "(0.9, 0.95)")


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("--clip-grad 0.0", (8, 128, "none", "bf16")),
        ("--rampup-batch-size 16 16 1000", (None, None, 1.0, "bf16")),
        ("--pipeline-model-parallel-size=2", (16, 128, 1.0, "bf16")),
    ],
)
def test_megatrons_flags_decide_with_its_defaults(flags: str, expected: tuple[object, ...]):
    reading = _read("megatron_shell", f"torchrun --nproc-per-node 8 {MEGATRON} {flags}")
    assert _values(reading, "accumulation", "global_batch", "clip", "precision") == expected


def test_a_global_batch_that_is_left_out_is_one_micro_batch_a_replica():
    launch = f"torchrun --nproc-per-node 8 {MEGATRON}".replace("--global-batch-size 128 ", "")
    reading = _read("megatron_shell", launch)
    assert _values(reading, "accumulation", "global_batch") == (1, 16)


def test_a_derived_global_batch_of_minus_one_is_followed():
    edit = ("local_batch_size=4, global_batch_size=32, ", "local_batch_size=4, ")
    reading = _read("titan_dataclasses", "torchrun --nproc-per-node 2 train.py", registry=edit)
    assert _values(reading, "micro_batch", "accumulation", "global_batch") == (4, 1, 8)


def test_a_remainder_on_the_last_update_makes_the_micro_steps_unknown():
    counted = "range(accelerator.gradient_accumulation_steps)"
    edit = (counted, "range(args.accum if update < args.updates - 1 else 2)")
    reading = _read("accelerate_no_sync", "python train.py", train=edit)
    assert _values(reading, "micro_batch", "accumulation", "global_batch") == (4, None, None)
