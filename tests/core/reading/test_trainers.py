"""What is understood of the ways people write trainers; see `tests/fixtures/trainers`."""

from pathlib import Path

import pytest

from infrarsi.knobs import Knob
from infrarsi.launch import parse_launch
from infrarsi.reading import MappingSources, Reading, read

TRAINERS = Path(__file__).parents[2] / "fixtures" / "trainers"
TEXTS = {path.relative_to(TRAINERS).as_posix(): path.read_text() for path in TRAINERS.rglob("*.py")}


def _read(launch: str, n_cpus: int = 1, **texts: str) -> Reading:
    return read(MappingSources({**TEXTS, **texts}), parse_launch(launch), n_cpus)


def _knob(reading: Reading, name: str) -> Knob:
    return next(knob for knob in reading.knobs if knob.name == name)


def _lines(reading: Reading, role: str) -> list[str]:
    """First and last line of each span of a role."""
    spans = [span.place for span in reading.roles if span.role == role]
    return [
        " ... ".join(
            dict.fromkeys(
                TEXTS[place.file].splitlines()[line - 1].strip()
                for line in (place.line, place.end_line)
            )
        )
        for place in spans
    ]


WORK = ("micro_batch", "accumulation", "world_size", "global_batch", "seq_len")


@pytest.mark.parametrize(
    ("launch", "work"),
    [
        ("python constants.py", (12, 40, 1, 480, 1024)),
        ("torchrun --nproc-per-node 4 constants.py", (12, 10, 4, 480, 1024)),
        ("python constants.py --batch_size=6", (6, 40, 1, 240, 1024)),
        ("python arguments.py", (4, 4, 1, 16, 64)),
        ("torchrun --nproc-per-node 2 arguments.py", (4, 2, 2, 16, 64)),
        ("python arguments.py --batch-size 8 --seq=32", (8, 4, 1, 32, 32)),
        ("python arguments.py -b 2", (2, 8, 1, 16, 64)),
        ("WORLD_SIZE=2 python arguments.py", (4, 2, 1, 8, 64)),
        ("python dataclass_loader.py", (4, 8, 1, 32, 256)),
        ("python split_rows.py", (8, 4, 1, 32, 64)),
        ("python chunked.py", (8, 8, 1, 64, 32)),
        ("python package/train.py", (8, 2, 1, 16, 32)),
        ("python nested_config.py", (32, 1, 1, 32, None)),
        ("python accelerated.py --gradient_accumulation_steps 4", (8, 4, 1, 32, None)),
        ("torchrun --nproc-per-node 2 tokens.py", (32, 4, 2, 256, 2048)),
        ("torchrun --nproc-per-node 2 local_names.py", (32, 1, 2, 64, 64)),
    ],
)
def test_the_work_of_a_step(launch: str, work: tuple[int, ...]):
    reading = _read(launch)
    facts = [reading.fact(name) for name in WORK]
    assert tuple(fact.value if fact else None for fact in facts) == work


@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        (
            "python constants.py",
            {
                "optimizer": "AdamW",
                "lr": 6e-4,
                "weight_decay": 0.1,
                "betas": "(0.9, 0.95)",
                "clip": 1.0,
                "precision": "fp32",
                "loss": "cross_entropy",
                "seed": 1337,
                "updates": 600000,
            },
        ),
        (
            "python arguments.py --bf16 --lr 1e-4",
            {
                "optimizer": "SGD",
                "lr": 1e-4,
                "weight_decay": 0.0,
                "clip": 1.0,
                "precision": "bf16",
                "parameters": "bf16",
                "seed": 42,
                "updates": 11,
            },
        ),
        (
            "python dataclass_loader.py",
            {"optimizer": "Adam", "lr": 1e-3, "clip": 0.5, "loss": "CrossEntropyLoss", "seed": 0},
        ),
        ("python split_rows.py", {"clip": "none", "updates": 100, "precision": "fp32"}),
        (
            "python nested_config.py",
            {"optimizer": "AdamW", "lr": 3e-4, "betas": "(0.9, 0.95)", "clip": 1.0, "seed": None},
        ),
        (
            "python accelerated.py --seed 3",
            {"weight_decay": 0.0, "lr": 5e-5, "seed": 3, "precision": "bf16", "updates": 100},
        ),
        ("torchrun --nproc-per-node 2 tokens.py", {"optimizer": None, "updates": 1000}),
        (
            "python package/train.py",
            {"precision": "bf16", "parameters": "fp32", "loss": "mse_loss", "updates": 100},
        ),
    ],
)
def test_how_weights_are_updated(launch: str, expected: dict[str, object]):
    reading = _read(launch)
    assert {name: getattr(reading.fact(name), "value", None) for name in expected} == expected


def test_what_depends_on_the_machine_is_unknown_with_its_reason():
    fact = _read("torchrun --nproc-per-node 4 constants.py").fact("precision")
    assert fact is not None
    assert fact.value is None
    assert "condition" in (fact.unknown or "")


@pytest.mark.parametrize(
    ("launch", "choices", "bindings"),
    [
        ("python arguments.py", (1, 2, 4, 8, 16), [("argument_default", "--batch-size", None)]),
        ("python arguments.py -b 2", (1, 2, 4, 8, 16), [("argument", "--batch-size", None)]),
        (
            "python dataclass_loader.py",
            (1, 2, 4, 8, 16, 32),
            [("constant", "micro_batch", None), ("constant", "accum", 32)],
        ),
        (
            "torchrun --nproc-per-node 4 constants.py",
            (1, 2, 4, 8, 12),
            [
                ("constant", "batch_size", None),
                ("constant", "gradient_accumulation_steps", 480),
            ],
        ),
        ("python split_rows.py", (1, 2, 4, 8, 16, 32), [("constant", "MICRO", None)]),
        ("python chunked.py", (1, 2, 4, 8, 16, 32, 64), [("constant", "N_CHUNKS", 64)]),
        (
            "python package/train.py",
            (1, 2, 4, 8, 16),
            [("constant", "batch_size", None), ("constant", "accum", 16)],
        ),
    ],
)
def test_the_micro_batch_is_bound_so_that_the_rows_stay(
    launch: str, choices: tuple[int, ...], bindings: list[tuple[str, str, int | None]]
):
    knob = _knob(_read(launch), "micro_batch")
    assert knob.choices == choices
    assert [(b.carrier, b.name, b.quotient_of) for b in knob.bindings] == bindings


@pytest.mark.parametrize("launch", ["python dataclass_loader.py", "python chunked.py"])
def test_writing_any_choice_where_the_bindings_say_keeps_the_rows(launch: str):
    before = _read(launch)
    knob = _knob(before, "micro_batch")
    for choice in knob.choices:
        assert type(choice) is int
        texts = dict(TEXTS)
        for binding in sorted(knob.bindings, key=lambda b: str(b.place), reverse=True):
            assert binding.place is not None
            lines = texts[binding.place.file].splitlines()
            line = lines[binding.place.line - 1]
            value = binding.quotient_of // choice if binding.quotient_of else choice
            head = line[: binding.place.column - 1]
            lines[binding.place.line - 1] = f"{head}{value}{line[binding.place.end_column - 1 :]}"
            texts[binding.place.file] = "\n".join(lines)
        after = read(MappingSources(texts), parse_launch(launch))
        assert [getattr(after.fact(n), "value", None) for n in ("micro_batch", "global_batch")] == [
            choice,
            getattr(before.fact("global_batch"), "value", None),
        ]


def test_a_sequence_length_and_a_learning_rate_are_never_knobs():
    for launch in ("python constants.py", "python dataclass_loader.py"):
        roles = {knob.role for knob in _read(launch, n_cpus=8).knobs}
        assert roles <= {"micro_batch", "threads", "workers"}


def test_threads_are_a_knob_unless_they_are_pinned():
    assert _knob(_read("python arguments.py", 6), "threads").choices == (0, 1, 2, 4, 6)
    torchrun = _knob(_read("torchrun --nproc-per-node 2 arguments.py", 8), "threads")
    assert (torchrun.default, torchrun.choices) == (1, (1, 2, 4))
    pinned = [
        _read("OMP_NUM_THREADS=1 python arguments.py", 8),
        _read("python a.py", 8, **{"a.py": "import torch\ntorch.set_num_threads(2)\n"}),
        _read("python a.py", 8, **{"a.py": "import os\nos.environ['OMP_NUM_THREADS'] = '1'\n"}),
        _read("python arguments.py", 1),
    ]
    assert all(knob.name != "threads" for reading in pinned for knob in reading.knobs)


def test_workers_of_the_loader_are_a_knob_where_their_number_is_set_by_name():
    knob = _knob(_read("python dataclass_loader.py", 4), "num_workers")
    assert (knob.default, knob.choices) == (2, (0, 1, 2, 4))
    assert [binding.name for binding in knob.bindings] == ["workers"]


def test_fetching_is_the_statement_and_the_bodies_it_enters():
    assert _lines(_read("python split_rows.py"), "fetch") == [
        "for x, y in zip(xs.split(MICRO), ys.split(MICRO)):",
        "xs, ys = next(it)",
        "while True: ... )",
    ]
    assert _lines(_read("python arguments.py"), "fetch") == [
        "x, y = train_loader.next_batch()",
        'x, y = x.to("cpu"), y.to("cpu")',
        "B, T = self.B, self.T ... return x, y",
    ]
    assert _lines(_read("python dataclass_loader.py"), "fetch") == [
        "x, y = batch",
        "for i, batch in enumerate(self.loader):",
        "chunk = self.data[i * self.block : (i + 1) * self.block] ... return chunk[:-1], chunk[1:]",
    ]


def test_every_role_of_a_plain_loop_is_found_and_evaluation_is_left_out():
    reading = _read("python constants.py")
    assert _lines(reading, "forward") == ["logits, loss = model(X, Y)"]
    assert _lines(reading, "backward") == ["scaler.scale(loss).backward()"]
    assert _lines(reading, "clip") == [
        "torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)"
    ]
    assert _lines(reading, "step") == ["scaler.step(optimizer)"]
    assert _lines(reading, "zero_grad") == ["optimizer.zero_grad(set_to_none=True)"]
    assert _lines(reading, "sync") == ["lossf = loss.item() * gradient_accumulation_steps"]
    assert _lines(reading, "clock") == ["t1 = time.time()"]
    assert _lines(reading, "fetch")[0] == 'X, Y = get_batch("train")'


def test_files_are_followed_through_local_imports():
    assert _read("python package/train.py").files == (
        "package/train.py",
        "package/net.py",
        "package/settings.py",
    )
    assert _read("python constants.py").files == ("constants.py", "constants_model.py")


def test_a_configuration_file_of_the_launch_line_is_followed():
    texts = {"config/small.py": "batch_size = 3\ngrad_clip = 0.0\n"}
    reading = _read("python constants.py config/small.py --learning_rate=0.1", **texts)
    values = {name: getattr(reading.fact(name), "value", None) for name in ("micro_batch", "clip")}
    assert values == {"micro_batch": 3, "clip": "none"}
    place = reading.bindings["micro_batch"].place
    assert place is not None
    assert (place.file, place.line) == ("config/small.py", 1)
    assert reading.bindings["lr"].carrier == "argument"
