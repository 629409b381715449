"""W1xx: honest look-alikes give nothing, and what only a run can tell is a warning."""

import pytest
from rule_pairs import CONSTANTS, DISTRIBUTED, ONE, TRAINER, TWO, edited, found_in

from infrarsi.contract import Violation

LAUNCH = {CONSTANTS: ONE, DISTRIBUTED: TWO, TRAINER: ONE}
FETCH = "x, y = get_batch(train_ids, MICRO, SEQ, generator)\n"
STEP = "        optimizer.step()\n        if"


def only(code: str, found: tuple[Violation, ...]) -> list[Violation]:
    return [violation for violation in found if violation.code == code]


NOTHING = {
    "constants renamed": (
        CONSTANTS,
        ("MICRO = 4\nACCUM = 4\n", "ROWS = 2 * 2\nMICRO = ROWS\nACCUM = 16 // ROWS\n"),
    ),
    "rows regrouped": (
        CONSTANTS,
        ("MICRO = 4\nACCUM = 4\n", "MICRO = 8\nACCUM = 2\n"),
        ("EVAL_BATCHES = 8", "EVAL_BATCHES = 4"),
    ),
    "rows fetched for a whole step and split": (
        CONSTANTS,
        (
            "        for micro in range(ACCUM):\n            " + FETCH,
            "        xs, ys = get_batch(train_ids, MICRO * ACCUM, SEQ, generator)\n"
            "        for micro in range(ACCUM):\n"
            "            x = xs[micro * MICRO : (micro + 1) * MICRO]\n"
            "            y = ys[micro * MICRO : (micro + 1) * MICRO]\n",
        ),
    ),
    "local names changed": (
        CONSTANTS,
        (
            "    starts = torch.randint(0, len(ids) - length - 1, (size,), generator=generator)\n",
            "    first = torch.randint(0, len(ids) - length - 1, (size,), generator=generator)\n",
        ),
        (
            "    x = torch.stack([ids[i : i + length] for i in starts])\n",
            "    x = torch.stack([ids[k : k + length] for k in first])\n",
        ),
        (
            "    y = torch.stack([ids[i + 1 : i + 1 + length] for i in starts])\n",
            "    y = torch.stack([ids[k + 1 : k + 1 + length] for k in first])\n",
        ),
    ),
    "rows gathered at once": (
        CONSTANTS,
        (
            "    x = torch.stack([ids[i : i + length] for i in starts])\n"
            "    y = torch.stack([ids[i + 1 : i + 1 + length] for i in starts])\n",
            "    at = starts[:, None] + torch.arange(length)\n    x, y = ids[at], ids[at + 1]\n",
        ),
    ),
    "fused attention": (
        CONSTANTS,
        (
            "        scores = q @ k.transpose(-2, -1)\n"
            "        mask = torch.tril(torch.ones(t, t)) == 0\n"
            '        scores = scores.masked_fill(mask, float("-inf"))\n'
            "        return F.softmax(scores, dim=-1) @ v\n",
            "        return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)\n",
        ),
    ),
    "a mask made once": (
        CONSTANTS,
        (
            "        self.q = nn.Linear(WIDTH, WIDTH)\n",
            "        self.q = nn.Linear(WIDTH, WIDTH)\n"
            '        self.register_buffer("mask", torch.tril(torch.ones(SEQ, SEQ)) == 0)\n',
        ),
        (
            "        mask = torch.tril(torch.ones(t, t)) == 0\n",
            "        mask = self.mask[:t, :t]\n",
        ),
    ),
    "activations recomputed": (
        CONSTANTS,
        (
            "            x = x + block(x)\n",
            "            x = x + torch.utils.checkpoint.checkpoint(block, x)\n",
        ),
    ),
    "gradients cleared at the end": (
        CONSTANTS,
        ("        optimizer.zero_grad()\n", ""),
        (
            STEP,
            "        optimizer.step()\n        optimizer.zero_grad(set_to_none=True)\n        if",
        ),
    ),
    "exchange held back on all but the last micro-step": (
        DISTRIBUTED,
        (
            "            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten()) / args.accum\n"
            "            loss.backward()\n",
            "            last = micro == args.accum - 1\n"
            "            with contextlib.nullcontext() if last else model.no_sync():\n"
            "                loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten()) / 2\n"
            "                loss.backward()\n",
        ),
    ),
    "more workers and pinned memory": (
        DISTRIBUTED,
        (
            "sampler=sampler, drop_last=True)",
            "sampler=sampler, drop_last=True, num_workers=2, pin_memory=True)",
        ),
    ),
    "experts without rows are left out": (
        TRAINER,
        (
            "            if rows.any():\n                out[rows] = expert(x[rows])\n",
            "            if not rows.any():\n                continue\n"
            "            out[rows] = expert(x[rows])\n",
        ),
    ),
    "both halves of the rows": (
        TRAINER,
        (
            "        loss = F.mse_loss(self.model(batch), batch)\n        loss.backward()\n",
            "        first, second = batch[:4], batch[4:]\n"
            "        (F.mse_loss(self.model(first), first) / 2).backward()\n"
            "        (F.mse_loss(self.model(second), second) / 2).backward()\n",
        ),
    ),
    "compiled": (CONSTANTS, ("    model = Net()\n", "    model = torch.compile(Net())\n")),
}


@pytest.mark.parametrize("name", NOTHING)
def test_an_honest_change_gives_nothing(name: str):
    before, *edits = NOTHING[name]
    after, _ = edited(before, *edits)
    found = found_in(before, after, LAUNCH[before])
    assert [v.message for v in found if v.code.startswith(("W", "E"))] == []


@pytest.mark.parametrize("before", [CONSTANTS, DISTRIBUTED, TRAINER])
def test_an_untouched_trainer_gives_nothing(before: str):
    assert found_in(before, before, LAUNCH[before]) == ()


def test_a_vocabulary_padded_upwards_is_left_to_a_run():
    after, _ = edited(TRAINER, ("vocab_size: int = 256", "vocab_size: int = 320"))
    assert [v.severity for v in only("W104", found_in(TRAINER, after))] == ["warning"]


def test_a_restored_snapshot_is_left_to_a_run():
    warm = (
        "    model = Net()\n    start = {k: v.clone() for k, v in model.state_dict().items()}\n"
        "    model(torch.zeros(1, SEQ, dtype=torch.long))\n    model.load_state_dict(start)\n"
    )
    after, _ = edited(CONSTANTS, ("    model = Net()\n", warm))
    assert {v.severity for v in only("W107", found_in(CONSTANTS, after))} == {"warning"}


def test_a_warm_up_before_the_training_is_not_taken_for_it():
    warm = (
        "    model(torch.zeros(1, SEQ, dtype=torch.long))\n"
        "    start = {k: v.clone() for k, v in model.state_dict().items()}\n"
        "    for _ in range(3):\n        loss = model(train_ids[None, :SEQ]).sum()\n"
        "        loss.backward()\n        optimizer.step()\n        optimizer.zero_grad()\n"
        "    model.load_state_dict(start)\n    for step in range(STEPS):\n"
    )
    after, _ = edited(CONSTANTS, ("    for step in range(STEPS):\n", warm))
    found = [v for v in found_in(CONSTANTS, after) if v.code.startswith("W")]
    assert {v.severity for v in found} == {"warning"}
    assert "W109" not in {v.code for v in found}


def test_a_size_that_no_literal_changed_is_left_to_a_run():
    after, _ = edited(CONSTANTS, ("(size,), generator", "(size * 2,), generator"))
    found = only("W101", found_in(CONSTANTS, after))
    assert [v.severity for v in found] == ["warning"]


def test_numbers_in_configuration_files_are_compared():
    reading = 'import json\ncfg = json.load(open("small.json"))\nimport torch\n'
    before = CONSTANTS.replace("import torch\n", reading, 1)
    files = {"small.json": '{"model": {"n_layer": 4}}'}
    now = {"small.json": '{"model": {"n_layer": 2}}'}
    (found,) = found_in(before, before, files=files, after_files=now)
    assert (found.code, found.severity, str(found.place)) == ("W104", "error", "small.json:1:23")


def test_the_launch_line_can_cut_the_batch():
    found = found_in(DISTRIBUTED, DISTRIBUTED, TWO, f"{TWO} --batch-size 2")
    assert "W101" in {v.code for v in found}


def test_a_model_is_restored_by_its_fix():
    after, _ = edited(CONSTANTS, ("LAYERS = 3", "LAYERS = 2"))
    (found,) = only("W104", found_in(CONSTANTS, after))
    assert found.message == (
        "`LAYERS` shapes the model and is 2 instead of 3; the contract holds the baseline's model."
    )
    assert [edit.new for edit in found.fixes[0].edits] == ["3"]
