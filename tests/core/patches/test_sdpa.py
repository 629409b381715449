"""The SDPA recipe: every spelling rewritten to the same numbers, every look-alike refused."""

import functools
import inspect
from types import SimpleNamespace

import pytest
import torch
from attention_spellings import CAUSAL, DROPOUT, LOOKALIKES, UNMASKED

from infrarsi.launch import Launch
from infrarsi.patches import Declined, Rewritten
from infrarsi.patches.recipes.sdpa import Sdpa
from infrarsi.reading.sources import MappingSources

WIDTH, HEADS, LENGTH = 24, 3, 10
torch.set_num_threads(1)


@functools.cache
def rewrite(text: str) -> str:
    outcome = Sdpa().rewrite(MappingSources({"train.py": text}), Launch(script="train.py"))
    assert isinstance(outcome, Rewritten), outcome
    return outcome.texts["train.py"]


def built(text: str) -> torch.nn.Module:
    scope: dict[str, type] = {"__name__": "spelling"}
    exec(compile(text, "spelling", "exec"), scope)
    torch.manual_seed(0)
    return scope["Attention"](WIDTH, HEADS, LENGTH)


def outputs(text: str, length: int = LENGTH) -> list[torch.Tensor]:
    """Output and all gradients on fixed input."""
    module = built(text)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(2, length, WIDTH, generator=generator, requires_grad=True)
    y = module(x)
    y.square().sum().backward()
    return [y.detach(), x.grad, *(p.grad for p in module.parameters())]


@pytest.mark.parametrize("name", CAUSAL)
@pytest.mark.parametrize("length", [LENGTH, 1, 7])
def test_causal_attention_gives_the_same_output_and_gradients(name: str, length: int):
    after = rewrite(CAUSAL[name])
    assert "scaled_dot_product_attention" in after
    assert "is_causal=True" in after
    assert "softmax(" not in after
    for new, old in zip(outputs(after, length), outputs(CAUSAL[name], length), strict=True):
        torch.testing.assert_close(new, old, rtol=2e-4, atol=2e-5)


def test_unmasked_attention_stays_unmasked():
    after = rewrite(UNMASKED)
    assert "is_causal" not in after
    for new, old in zip(outputs(after), outputs(UNMASKED), strict=True):
        torch.testing.assert_close(new, old, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", CAUSAL)
def test_a_second_application_declines(name: str):
    outcome = Sdpa().rewrite(
        MappingSources({"train.py": rewrite(CAUSAL[name])}), Launch(script="train.py")
    )
    assert isinstance(outcome, Declined)


@pytest.mark.parametrize("name", LOOKALIKES)
def test_a_look_alike_is_refused_with_its_reason(name: str):
    text, word = LOOKALIKES[name]
    compile(text, name, "exec")
    outcome = Sdpa().rewrite(MappingSources({"train.py": text}), Launch(script="train.py"))
    assert isinstance(outcome, Declined), outcome
    assert word in outcome.reason


@pytest.mark.parametrize("name", DROPOUT)
def test_dropout_is_passed_on_in_training_only(name: str):
    after = rewrite(DROPOUT[name])
    assert " if self.training else 0.0" in after
    before, changed = built(DROPOUT[name]).eval(), built(after).eval()
    x = torch.randn(2, LENGTH, WIDTH)
    torch.testing.assert_close(changed(x), before(x), rtol=2e-4, atol=2e-5)
    given = spied_dropout(changed.train(), x)
    assert given == 0.25


def spied_dropout(module: torch.nn.Module, x: torch.Tensor) -> float:
    """The rate that reaches the kernel: dropped weights change the output, so look at the call."""
    seen = SimpleNamespace(rate=None)
    real = torch.nn.functional.scaled_dot_product_attention
    scope = inspect.unwrap(type(module).forward).__globals__

    class Functional:
        def __getattr__(self, name: str):
            return getattr(torch.nn.functional, name)

        def scaled_dot_product_attention(self, *args, dropout_p=0.0, **kwargs):
            seen.rate = dropout_p
            return real(*args, dropout_p=dropout_p, **kwargs)

    scope["F"] = Functional()
    module(x)
    return seen.rate


def test_zero_dropout_is_left_out():
    text = DROPOUT["module"].replace("nn.Dropout(0.25)", "nn.Dropout(0.0)")
    assert "dropout_p" not in rewrite(text)


def test_comments_and_unrelated_lines_stay():
    after = rewrite(CAUSAL["statements"])
    assert "# scores\n" in after
    assert "# no peeking\n" in after
    assert "# (B, heads, T, size)\n" in after
    assert "y = F.scaled_dot_product_attention(q, k, v, is_causal=True)" in after
    kept = [line for line in CAUSAL["statements"].splitlines() if "att" not in line]
    kept = [line for line in kept if "mask = " not in line]
    assert set(kept) <= set(after.splitlines())


def test_a_buffer_stays_for_old_checkpoints():
    module, changed = built(CAUSAL["buffer"]), built(rewrite(CAUSAL["buffer"]))
    assert module.state_dict().keys() == changed.state_dict().keys()


def test_the_default_scale_is_left_out_and_another_passed_on():
    assert "scale=" not in rewrite(CAUSAL["buffer"])
    assert "scale=self.scale" in rewrite(CAUSAL["one_expression"])
    assert "scale=1.0" in rewrite(CAUSAL["unscaled"])


def test_a_mask_another_line_needs_stays():
    text = CAUSAL["statements"].replace(
        "        y = att @ v", "        self.m = mask\n        y = att @ v"
    )
    after = rewrite(text)
    assert "mask = torch.tril(torch.ones(T, T, device=x.device))" in after


def test_attention_in_an_imported_file_is_found():
    sources = MappingSources(
        {
            "jobs/train.py": "from net.model import Attention\n",
            "jobs/net/__init__.py": "",
            "jobs/net/model.py": "from .attention import Attention\n",
            "jobs/net/attention.py": CAUSAL["buffer"],
            "jobs/other.py": CAUSAL["statements"],
        }
    )
    outcome = Sdpa().rewrite(sources, Launch(script="jobs/train.py"))
    assert isinstance(outcome, Rewritten)
    assert list(outcome.texts) == ["jobs/net/attention.py"]
