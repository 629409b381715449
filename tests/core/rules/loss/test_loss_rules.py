"""Rules on loss and optimisation: breaches of small trainers, and honest look-alikes of each."""

import pytest
from carets import marks_of, split_carets

from infrarsi.contract import Violation, make_lock
from infrarsi.launch import parse_launch
from infrarsi.reading import MappingSources, Program, default_job, follow, propose_contract
from infrarsi.rules import check_change

TRAINER = """\
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 4
ACCUM = 2
CLIP = 1.0
LR = 1e-3
DECAY = 0.1
WARMUP = 10
AUX = 0.01

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)
        self.act = nn.GELU()
        self.drop = nn.Dropout(0.1)
    def forward(self, x):
        att = F.softmax(x @ x.transpose(1, 2), dim=-1)
        return x + self.drop(self.act(self.inner(att @ x)))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 8)
        self.blocks = nn.ModuleList([Block() for _ in range(2)])
        self.head = nn.Linear(8, 16)
        nn.init.normal_(self.embed.weight, std=0.02)
        self.head.weight = self.embed.weight
    def forward(self, x):
        h = self.embed(x)
        for block in self.blocks:
            h = block(h)
        return self.head(h), h.pow(2).mean()

def rate(step):
    return LR * min(1.0, (step + 1) / WARMUP)

def get_batch(data):
    starts = torch.randint(len(data) - 9, (ROWS,))
    rows = torch.stack([data[i : i + 9] for i in starts])
    return rows[:, :-1], rows[:, 1:]

torch.manual_seed(0)
train_ids, val_ids = torch.arange(1000) % 16, torch.arange(100) % 16
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=LR, betas=(0.9, 0.95), weight_decay=DECAY)
model.train()
for step in range(100):
    for group in optimizer.param_groups:
        group["lr"] = rate(step)
    total = 0.0
    for _ in range(ACCUM):
        x, y = get_batch(train_ids)
        logits, aux = model(x)
        loss = F.cross_entropy(logits.view(-1, 16), y.view(-1)) + AUX * aux
        (loss / ACCUM).backward()
        total += loss.item() / ACCUM
    torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
    optimizer.step()
    optimizer.zero_grad()
    print(step, total)
"""
LOSS = "F.cross_entropy(logits.view(-1, 16), y.view(-1))"
FORWARD = "        logits, aux = model(x)\n"
AUTOCAST = (
    "        with torch.autocast('cpu', dtype=torch.{}):\n            logits, aux = model(x)\n"
)


def _program(text: str) -> Program:
    return follow(MappingSources({"train.py": text}), parse_launch("python train.py"))


def _check(before: str, after: str) -> list[Violation]:
    was, launch = _program(before), parse_launch("python train.py")
    job = default_job("job", launch, was.reading, "python")
    lock = make_lock(propose_contract(job, launch, was.reading), {}, "c0ffee")
    found = check_change(lock, _program(after), was)
    return [violation for violation in found if violation.code.startswith("L")]


def _edited(old: str, new: str, before: str = TRAINER) -> str:
    assert before.count(old) == 1
    return before.replace(old, new)


def test_an_untouched_baseline_has_no_findings() -> None:
    assert _check(TRAINER, TRAINER) == []


@pytest.mark.parametrize(
    ("code", "old", "new"),
    [
        ("L201", "y.view(-1)) +", "y.view(-1), label_smoothing=0.1) +"),
        ("L201", "logits.view(-1, 16), y", "logits.view(-1, 16) * 0.5, y"),
        ("L201", LOSS, "F.mse_loss(logits, F.one_hot(y, 16).float())"),
        ("L202", FORWARD, AUTOCAST.format("bfloat16")),
        ("L202", "logits.view(-1, 16), y", "logits.bfloat16().view(-1, 16), y"),
        ("L204", "logits.view(-1, 16), y.view", "logits[:, ::2].view(-1, 16), y[:, ::2].view"),
        ("L205", "CLIP = 1.0", "CLIP = 100.0"),
        ("L205", "    torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)\n", ""),
        ("L205", "    torch.nn.utils.clip", "    if step % 2 == 0:\n        torch.nn.utils.clip"),
        ("L205", "_(model.parameters(), CLIP)", "_(model.head.parameters(), CLIP)"),
        ("L206", " + AUX * aux", ""),
        ("L206", "AUX = 0.01", "AUX = 0.0"),
        ("L206", "DECAY = 0.1", "DECAY = 0.0"),
        ("L206", "nn.Dropout(0.1)", "nn.Dropout(0.0)"),
        ("L207", "model = Net()\n", "model = Net()\nmodel.embed.requires_grad_(False)\n"),
        ("L207", "h = block(h)", "h = block(h.detach())"),
        ("L207", "AdamW(model.parameters()", "AdamW(model.blocks.parameters()"),
        ("L208", "(loss / ACCUM).backward()", "loss.backward()"),
        ("L210", "torch.optim.AdamW(", "torch.optim.Adam("),
        ("L210", "(0.9, 0.95)", "(0.9, 0.999)"),
        ("L210", "weight_decay=DECAY)", "weight_decay=DECAY, eps=1e-4)"),
        ("L211", "LR = 1e-3", "LR = 2e-3"),
        ("L211", "WARMUP = 10", "WARMUP = 1"),
        (
            "L213",
            "        return self.head(h), ",
            "        h = h.to(torch.float8_e4m3fn).float()\n        return self.head(h), ",
        ),
        ("L214", FORWARD, AUTOCAST.format("float16")),
        (
            "L215",
            "        (loss / ACCUM).backward()",
            "        with torch.autocast('cpu', dtype=torch.bfloat16):\n"
            "            (loss / ACCUM).backward()",
        ),
        (
            "L216",
            "torch.manual_seed(0)",
            "torch.manual_seed(0)\ntorch.set_float32_matmul_precision('medium')",
        ),
        (
            "L217",
            "F.softmax(x @ x.transpose(1, 2), dim=-1)",
            "torch.exp(x @ x.transpose(1, 2))\n        att = att / att.sum(-1, keepdim=True)",
        ),
        ("L218", "nn.GELU()", "nn.ReLU()"),
        ("L218", "nn.GELU()", "nn.GELU(approximate='tanh')"),
        ("L220", "model.train()", "model.eval()"),
        ("L222", "get_batch(train_ids)", "get_batch(val_ids)"),
        ("L223", "std=0.02", "std=0.2"),
        ("L223", "        self.head.weight = self.embed.weight\n", ""),
    ],
)
def test_a_certain_breach_is_an_error(code: str, old: str, new: str) -> None:
    found = _check(TRAINER, _edited(old, new))
    assert code in {violation.code for violation in found if violation.severity == "error"}
    assert all(violation.place is not None for violation in found)


@pytest.mark.parametrize(
    ("code", "old", "new"),
    [
        (
            "L208",
            "    torch.nn.utils.clip",
            "    model.head.weight.grad.mul_(2)\n    torch.nn.utils.clip",
        ),
        (
            "L209",
            "    optimizer.step()",
            "    for p in model.parameters():\n        p.grad = earlier[p]\n    optimizer.step()",
        ),
        (
            "L212",
            "model = Net()\n",
            "model = Net()\nmodel.register_comm_hook(None, hook)\n",
        ),
        ("L216", "att @ x)", "att.bfloat16() @ x.bfloat16())"),
        ("L211", "min(1.0, (step + 1) / WARMUP)", "1.0"),
        ("L219", "h = self.embed(x)", "h = torch.empty_like(self.embed(x))"),
        ("L221", "print(step, total)", "print(step, min(total, loss.item()))"),
    ],
)
def test_what_only_a_run_can_tell_is_a_warning(code: str, old: str, new: str) -> None:
    found = _check(TRAINER, _edited(old, new))
    assert code in {violation.code for violation in found if violation.severity == "warning"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ROWS = 4\nACCUM = 2", "ROWS = 8\nACCUM = 1"),
        ("(loss / ACCUM).backward()", "(loss * (1 / ACCUM)).backward()"),
        (LOSS, "nn.CrossEntropyLoss()(logits.flatten(0, 1), y.flatten())"),
        (
            FORWARD + "        loss = F.cross_entropy(logits.view",
            AUTOCAST.format("bfloat16") + "        loss = F.cross_entropy(logits.float().view",
        ),
        ("weight_decay=DECAY)", "weight_decay=DECAY, fused=True)"),
        ("_(model.parameters(), CLIP)", "_(model.parameters(), CLIP, foreach=True)"),
        ("model = Net()\n", "model = torch.compile(Net())\n"),
        ("h = block(h)", "h = torch.utils.checkpoint.checkpoint(block, h)"),
        ("total += loss.item() / ACCUM", "total += loss.detach() / ACCUM"),
        ('group["lr"] = rate(step)', 'lr_now = rate(step)\n        group["lr"] = lr_now'),
        (
            "        att = F.softmax(x @ x.transpose(1, 2), dim=-1)\n",
            "        seen = F.scaled_dot_product_attention(x, x, x, scale=1.0)\n"
            "        return x + self.drop(self.act(self.inner(seen)))\n",
        ),
        ("AdamW(model.parameters()", "AdamW([p for p in model.parameters() if p.requires_grad]"),
        ("WARMUP = 10", "WARMUP = 5 * 2"),
    ],
)
def test_an_honest_change_gives_no_error(old: str, new: str) -> None:
    found = _check(TRAINER, _edited(old, new))
    assert [violation for violation in found if violation.severity == "error"] == []


def test_renamed_names_and_moved_code_give_nothing() -> None:
    after = TRAINER.replace("ACCUM", "MICRO_STEPS").replace("loss", "objective_value")
    after = after.replace("logits", "scores").replace("aux", "extra").replace("AUX", "WEIGHT")
    assert _check(TRAINER, after) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("CLIP = 1.0", "CLIP = 10.0\n       ^^^^ L205"),
        ("DECAY = 0.1", "DECAY = 0.0\n        ^^^ L206"),
    ],
)
def test_a_number_is_marked_where_it_stands(old: str, new: str) -> None:
    after, marks = split_carets(_edited(old, new))
    assert marks_of(_check(TRAINER, after), "train.py") == marks


def test_a_half_typed_line_is_no_breach() -> None:
    assert _check(TRAINER, _edited("loss = F.cross_entropy(", "loss = F.cross_")) == []
