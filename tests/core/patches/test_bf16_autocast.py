"""The bf16 recipe: forward and loss under autocast, loss and weights in fp32, the rest outside."""

import pytest
import torch
from trained import printed
from training_spellings import EXPERTS, JOBS, LOSS_IN_MODEL, PLAIN, TRAINER

from infrarsi.launch import Launch
from infrarsi.patches import Declined, Rewritten
from infrarsi.patches.recipes.bf16_autocast import Bf16Autocast
from infrarsi.reading.sources import MappingSources

LAUNCH = Launch(script="train.py")


def outcome_of(texts: dict[str, str]) -> Rewritten | Declined:
    return Bf16Autocast().rewrite(MappingSources(texts), LAUNCH)


def rewrite(texts: dict[str, str]) -> dict[str, str]:
    outcome = outcome_of(texts)
    assert isinstance(outcome, Rewritten), outcome
    return {**texts, **outcome.texts}


@pytest.mark.parametrize("name", JOBS)
def test_the_job_trains_to_nearly_the_same_loss(name: str):
    before, after = printed(JOBS[name]), printed(rewrite(JOBS[name]))
    assert before != after
    for old, new in zip(before, after, strict=True):
        assert new == pytest.approx(old, rel=1e-2)


@pytest.mark.parametrize("name", JOBS)
def test_products_are_bf16_and_the_loss_is_fp32(name: str, monkeypatch: pytest.MonkeyPatch):
    losses: list[tuple[torch.dtype, bool]] = []
    products: set[torch.dtype] = set()
    backward, linear = torch.Tensor.backward, torch.nn.functional.linear

    def watched_backward(self: torch.Tensor, *args: object, **kwargs: object) -> None:
        losses.append((self.dtype, torch.is_autocast_enabled("cpu")))
        backward(self, *args, **kwargs)

    def watched_linear(*args: torch.Tensor) -> torch.Tensor:
        out = linear(*args)
        products.add(out.dtype)
        return out

    texts = rewrite(JOBS[name])
    monkeypatch.setattr(torch.Tensor, "backward", watched_backward)
    monkeypatch.setattr(torch.nn.functional, "linear", watched_linear)
    printed(texts)
    assert set(losses) == {(torch.float32, False)}
    assert products == ({torch.bfloat16} if name != "experts" else {torch.bfloat16, torch.float32})


@pytest.mark.parametrize("name", JOBS)
def test_a_second_application_declines(name: str):
    second = outcome_of(rewrite(JOBS[name]))
    assert isinstance(second, Declined)
    assert "already" in second.reason


def test_only_the_micro_step_is_indented_and_comments_stay():
    after = rewrite(PLAIN)["train.py"]
    assert (
        """\
            x, y = get_batch(MICRO_BATCH)
            # forward
            with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
                logits = model(x)  # (B, T, V)
                loss = F.cross_entropy(logits.view(-1, 17).float(), y.view(-1)) / ACCUM
            loss.backward()
"""
        in after
    )
    untouched = set(PLAIN["train.py"].splitlines()) - set(after.splitlines())
    assert len(untouched) == 2


def test_a_loss_inside_the_model_is_cast_there():
    after = rewrite(LOSS_IN_MODEL)
    assert "logits.view(-1, logits.size(-1)).float()" in after["nets/model.py"]
    assert ".float()" not in after["train.py"]


def test_the_router_stays_fp32_and_results_take_their_tensors_dtype():
    after = rewrite(EXPERTS)["train.py"]
    assert "with torch.autocast(device_type=flat.device.type, enabled=False):" in after
    assert "scores = self.gate(flat.float())" in after
    assert ".to(out.dtype))" in after
    assert "self.experts[0](flat).to(mixed.dtype)" in after


@pytest.mark.parametrize(
    ("choice", "routed"),
    [
        ("weights, chosen = torch.topk(self.gate(flat).softmax(-1), self.k)", True),
        ("weights, chosen = torch.max(self.gate(flat).softmax(-1), -1)", True),
        ("chosen = F.softmax(self.gate(flat), -1).argmax(-1)", True),
        ("chosen = self.gate(flat).argmax(-1)", False),
        ("chosen = flat.max(-1)", False),
    ],
)
def test_a_router_is_what_experts_are_chosen_by(choice: str, routed: bool):
    text = EXPERTS["train.py"].replace("        scores = self.gate(flat)\n", "")
    text = text.replace("weights, chosen = F.softmax(scores, dim=-1).topk(self.k, dim=-1)", choice)
    assert choice in text
    after = rewrite({"train.py": text})["train.py"]
    assert ("self.gate(flat.float())" in after) == routed
    assert ("enabled=False" in after) == routed


@pytest.mark.parametrize(
    ("old", "new", "device"),
    [
        ("", "", '"cpu"'),
        ("model = Net()", "model = Net().cuda()", '"cuda"'),
        ("model = Net()", 'model = Net().to("cuda:0")', '"cuda"'),
        (
            "    model = Net()",
            '    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n'
            "    model = Net().to(device)",
            "torch.device(device).type",
        ),
        (
            "def main():\n    model = Net()",
            "def main(local_rank=0):\n    model = Net().to(local_rank)",
            "torch.device(local_rank).type",
        ),
    ],
)
def test_the_device_type_comes_from_the_code(old: str, new: str, device: str):
    after = rewrite({"train.py": PLAIN["train.py"].replace(old, new, 1)})["train.py"]
    assert f"torch.autocast(device_type={device}, dtype=torch.bfloat16)" in after


def test_a_device_kept_on_the_trainer_is_used():
    after = rewrite(TRAINER)["train.py"]
    assert "device_type=torch.device(self.device).type" in after


_BACKWARD = "            loss.backward()\n"


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        (
            _BACKWARD,
            _BACKWARD + "            with torch.autocast('cpu'):\n                pass\n",
            "already",
        ),
        ("model = Net()", "model = Net().bfloat16()", "already"),
        ("model = Net()", "model = Net().to(torch.float16)", "already"),
        ("model = Net()", "model = Net().half()", "already"),
        (_BACKWARD, "            torch.amp.GradScaler('cpu').scale(loss).backward()\n", "already"),
        ("logits = model(x)", "logits = x.float()", "No call of a model"),
        (_BACKWARD, "            pass\n", "No backward"),
        (
            "F.cross_entropy(logits.view(-1, 17), y.view(-1))",
            "logits.square().mean()",
            "No loss function",
        ),
        (
            "            loss = F",
            "            optimizer.zero_grad()\n            loss = F",
            "between forward and loss",
        ),
        (
            "            loss = F.cross_entropy(logits.view(-1, 17), y.view(-1)) / ACCUM\n"
            + _BACKWARD,
            "            if step >= 0:\n"
            "                loss = F.cross_entropy(logits.view(-1, 17), y.view(-1)) / ACCUM\n"
            "                loss.backward()\n",
            "different blocks",
        ),
        ("def main():", "def main(:", "does not parse"),
    ],
)
def test_it_declines_with_the_reason(old: str, new: str, word: str):
    text = PLAIN["train.py"]
    assert old in text
    outcome = outcome_of({"train.py": text.replace(old, new, 1)})
    assert isinstance(outcome, Declined), outcome.texts
    assert word in outcome.reason


def test_a_loss_computed_elsewhere_declines():
    texts = {
        "train.py": LOSS_IN_MODEL["train.py"].replace(
            "from nets.model import build", "from transformers import build"
        )
    }
    assert isinstance(outcome_of(texts), Declined)
