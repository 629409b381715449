"""W1xx on three trainers: each breach is marked where it is written, honest look-alikes are not."""

import pytest
from carets import marks_of
from rule_pairs import CONSTANTS, DISTRIBUTED, ONE, TRAINER, TWO, edited, found_in

from infrarsi.contract import Violation

LAUNCH = {CONSTANTS: ONE, DISTRIBUTED: TWO, TRAINER: ONE}
FETCH = "x, y = get_batch(train_ids, MICRO, SEQ, generator)\n"
LAYERS = "        for block in self.blocks:\n            x = x + block(x)\n"
STEP = "        optimizer.step()\n        if"


def only(code: str, found: tuple[Violation, ...]) -> list[Violation]:
    return [violation for violation in found if violation.code == code]


BREACHES = {
    "rows are cut after fetching": (
        CONSTANTS,
        "W101",
        "error",
        (
            FETCH,
            f"{FETCH}            x, y = x[: MICRO // 2], y[: MICRO // 2]\n"
            "                   ^^^^^^^^^^^^^^^ W101\n"
            "                                    ^^^^^^^^^^^^^^^ W101\n",
        ),
    ),
    "every second row is taken where rows are fetched": (
        CONSTANTS,
        "W101",
        "warning",
        (
            "    return x, y\n",
            "    return x[::2], y[::2]\n           ^^^^^^ W101\n                   ^^^^^^ W101\n",
        ),
    ),
    "rows are shortened after fetching": (
        CONSTANTS,
        "W102",
        "error",
        (
            FETCH,
            f"{FETCH}            x, y = x[:, :48], y[:, :48]\n"
            "                   ^^^^^^^^^ W102\n                              ^^^^^^^^^ W102\n",
        ),
    ),
    "the update depends on the norm": (
        CONSTANTS,
        "W103",
        "error",
        (
            STEP,
            "        if norm > 0.5:\n            optimizer.step()\n"
            "            ^^^^^^^^^^^^^^^^ W103\n        if",
        ),
    ),
    "the rest of a micro-step is skipped": (
        CONSTANTS,
        "W103",
        "warning",
        (
            "            loss.backward()\n",
            "            if loss.item() < 1.0:\n               ^^^^^^^^^^^^^^^^^ W103\n"
            "                continue\n            loss.backward()\n",
        ),
    ),
    "gradients are cleared no more": (
        CONSTANTS,
        "W103",
        "warning",
        ("        optimizer.zero_grad()\n", ""),
    ),
    "a layer less": (
        CONSTANTS,
        "W104",
        "error",
        ("LAYERS = 3", "LAYERS = 2\n         ^ W104"),
    ),
    "a model field is overridden where it is made": (
        TRAINER,
        "W104",
        "error",
        ("Experts(Config())", "Experts(Config(top_k=1))"),
    ),
    "a layer is built smaller": (
        CONSTANTS,
        "W104",
        "error",
        (
            "        self.q = nn.Linear(WIDTH, WIDTH)",
            "        self.q = nn.Linear(WIDTH, WIDTH // 2)\n"
            "                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ W104",
        ),
    ),
    "every second layer": (
        CONSTANTS,
        "W105",
        "error",
        ("in self.blocks:", "in self.blocks[::2]:\n                     ^^^^^^^^^^^^^^^^ W105"),
    ),
    "layers are skipped in training": (
        CONSTANTS,
        "W105",
        "error",
        (
            LAYERS,
            "        for number, block in enumerate(self.blocks):\n"
            "            if self.training and number % 2:\n"
            "               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ W105\n"
            "                continue\n            x = x + block(x)\n",
        ),
    ),
    "experts with few rows are left out": (
        TRAINER,
        "W105",
        "warning",
        ("if rows.any():", "if rows.sum() > 4:\n               ^^^^^^^^^^^^^^ W105"),
    ),
    "half of the positions": (
        CONSTANTS,
        "W105",
        "warning",
        (
            "x = x + block(x)",
            "x = x + block(x[:, ::2]).repeat(1, 2, 1)\n                          ^^^^^^^^^ W105",
        ),
    ),
    "a module is called no more": (
        CONSTANTS,
        "W105",
        "warning",
        ("self.head(self.norm(x))", "self.head(x)"),
    ),
    "rows are fetched once": (
        CONSTANTS,
        "W106",
        "warning",
        (
            "    for step in range(STEPS):\n",
            f"    {FETCH}"
            "           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ W106\n"
            "    for step in range(STEPS):\n",
        ),
        (
            f"        for micro in range(ACCUM):\n            {FETCH}",
            "        for micro in range(ACCUM):\n",
        ),
    ),
    "the generator starts over in every step": (
        CONSTANTS,
        "W106",
        "error",
        (
            "        optimizer.zero_grad()\n",
            "        optimizer.zero_grad()\n"
            "        generator.manual_seed(1337)\n        ^^^^^^^^^^^^^^^^^^^^^^^^^^^ W106\n",
        ),
    ),
    "rows are doubled": (
        CONSTANTS,
        "W106",
        "warning",
        (
            FETCH,
            f"{FETCH}            x, y = x.repeat(2, 1), y.repeat(2, 1)\n"
            "                   ^^^^^^^^^^^^^^ W106\n"
            "                                   ^^^^^^^^^^^^^^ W106\n",
        ),
    ),
    "weights are loaded": (
        CONSTANTS,
        "W107",
        "error",
        (
            "    model = Net()\n",
            '    model = Net()\n    model.load_state_dict(torch.load("end.pt"))\n'
            "                          ^^^^^^^^^^^^^^^^^^^^ W107\n",
        ),
    ),
    "a checkpoint is resumed by default": (
        DISTRIBUTED,
        "W107",
        "error",
        ('"--resume", default=""', '"--resume", default="end.pt"'),
    ),
    "the text is shorter": (
        CONSTANTS,
        "W108",
        "warning",
        ("    return ids[:cut], ids[cut:]", "    return ids[: cut // 8], ids[cut:]"),
        (
            "starts = torch.randint(0, len(ids) - length - 1, (size,), generator=generator)",
            "starts = torch.randint(0, 500, (size,), generator=generator)\n"
            "             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ W108",
        ),
    ),
    "only some windows": (
        DISTRIBUTED,
        "W108",
        "warning",
        (
            "    rows = Rows(args.seq_len)\n",
            "    rows = torch.utils.data.Subset(Rows(args.seq_len), range(100))\n"
            "           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ W108\n",
        ),
    ),
    "fewer updates": (
        CONSTANTS,
        "W109",
        "error",
        ("STEPS = 1000", "STEPS = 400\n        ^^^ W109"),
    ),
    "an early stop": (
        CONSTANTS,
        "W109",
        "error",
        (
            STEP,
            "        optimizer.step()\n        if loss.item() < 2.0:\n"
            "           ^^^^^^^^^^^^^^^^^ W109\n            break\n        if",
        ),
    ),
    "another tokenizer": (
        TRAINER,
        "W110",
        "error",
        ('tokenizer: str = "bytes"', 'tokenizer: str = "pairs"\n                     ^^^^^^^ W110'),
    ),
    "another collate function": (
        TRAINER,
        "W111",
        "warning",
        ("collate_fn=collate\n", "collate_fn=collate_some\n"),
        (
            "def collate(rows):\n    return torch.stack(rows)\n",
            "def collate_some(rows):\n    return torch.stack(rows[:6])\n",
        ),
    ),
    "the last batch is kept": (
        DISTRIBUTED,
        "W111",
        "error",
        ("drop_last=True", "drop_last=False"),
    ),
    "evaluation is rarer": (
        CONSTANTS,
        "W112",
        "error",
        ("EVAL_EVERY = 100", "EVAL_EVERY = 500\n             ^^^ W112"),
    ),
    "evaluation is gone": (
        CONSTANTS,
        "W112",
        "warning",
        ("            print(evaluate(model, val_ids, generator))", "            print(step)"),
    ),
    "rows grow": (
        CONSTANTS,
        "W113",
        "error",
        (
            FETCH,
            f"{FETCH}            width = min(SEQ, 16 + step)\n"
            "            x, y = x[:, :width], y[:, :width]\n"
            "                   ^^^^^^^^^^^^ W113\n"
            "                                 ^^^^^^^^^^^^ W113\n",
        ),
    ),
    "every rank reads rank 0's rows": (
        DISTRIBUTED,
        "W114",
        "warning",
        ("num_replicas=world, rank=rank, seed", "num_replicas=1, rank=0, seed"),
    ),
    "accumulation is divided by the processes": (
        DISTRIBUTED,
        "W114",
        "warning",
        (
            '    dist.init_process_group("gloo")\n',
            '    dist.init_process_group("gloo")\n'
            "    args.accum //= world\n    ^^^^^^^^^^^^^^^^^^^^ W114\n",
        ),
    ),
    "the wrapper is gone": (
        DISTRIBUTED,
        "W115",
        "error",
        ("    model = DDP(model)\n", ""),
    ),
    "gradients are never exchanged": (
        DISTRIBUTED,
        "W115",
        "error",
        (
            "            x, y = next(stream)\n"
            "            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten()) / args.accum\n"
            "            loss.backward()\n",
            "            x, y = next(stream)\n            with model.no_sync():\n"
            "                 ^^^^^^^^^^^^^^^ W115\n"
            "                loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten()) / 2\n"
            "                loss.backward()\n",
        ),
    ),
    "rows are made up": (
        CONSTANTS,
        "W116",
        "error",
        (
            FETCH,
            "x = torch.randint(0, 256, (MICRO, SEQ))\n"
            "                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ W116\n            y = x\n",
        ),
    ),
    "a band in the mask": (
        CONSTANTS,
        "W117",
        "error",
        (
            "torch.tril(torch.ones(t, t)) == 0",
            "torch.tril(torch.ones(t, t)).triu(-15) == 0\n"
            "               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ W117",
        ),
    ),
    "a smaller window": (
        TRAINER,
        "W117",
        "error",
        ("window: int = 32", "window: int = 8\n                  ^ W117"),
    ),
    "thinned keys": (
        CONSTANTS,
        "W117",
        "warning",
        (
            "        scores = q @ k.transpose(-2, -1)",
            "        scores = q @ k[:, ::2].transpose(-2, -1)\n                     ^^^^^^^^^ W117",
        ),
    ),
    "a helper process": (
        CONSTANTS,
        "W118",
        "warning",
        (
            "    model = Net()\n",
            "    model = Net()\n    helper = torch.multiprocessing.Process(target=load)\n"
            "             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ W118\n",
        ),
    ),
}


@pytest.mark.parametrize("name", BREACHES)
def test_a_breach_is_found(name: str):
    before, code, severity, *edits = BREACHES[name]
    after, marks = edited(before, *edits)
    found = only(code, found_in(before, after, LAUNCH[before]))
    assert found
    assert {violation.severity for violation in found} == {severity}
    if marks:
        assert marks_of(found, "train.py") == marks


@pytest.mark.parametrize("name", BREACHES)
def test_comparisons_are_silent_while_a_line_is_being_typed(name: str):
    before, _code, _, *edits = BREACHES[name]
    after, _ = edited(before, *edits)
    half = after.replace("import torch\n", "import torch\nhalf = (\n", 1)
    literals = {"W101", "W102"}
    found = found_in(before, half, LAUNCH[before])
    assert [v.code for v in found if v.code.startswith("W") and v.code not in literals] == []
