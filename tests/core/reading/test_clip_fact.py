"""What gradients are clipped to, where the clip is no single library call."""

import pytest

from infrarsi.launch import Launch
from infrarsi.reading import MappingSources, read

TRAIN = """
import torch

GRAD_CLIP = 0.5
net = torch.nn.Linear(4, 4)
opt = torch.optim.AdamW(net.parameters())
for step in range(100):
    opt.zero_grad()
    net(torch.randn(8, 4)).mean().backward()
    {}
    opt.step()
"""
GIVEN = """grads = [p.grad for p in net.parameters()]
    norm = torch.nn.utils.get_total_norm(grads)
    torch.nn.utils.clip_grads_with_norm_(net.parameters(), GRAD_CLIP, norm)"""
SCALED = """grads = [p.grad for p in net.parameters()]
    norm = torch.nn.utils.get_total_norm(grads)
    torch._foreach_mul_(grads, min(1.0, GRAD_CLIP / float(norm)))"""
CLAMPED = "[p.grad.clamp_(-GRAD_CLIP, GRAD_CLIP) for p in net.parameters()]"
AVERAGED = "[p.grad.div_(2) for p in net.parameters()]"
PRINTED = "print(max(p.grad.norm() for p in net.parameters()))"


def clip(text: str) -> object:
    reading = read(MappingSources({"train.py": text}), Launch(script="train.py"))
    fact = next(fact for fact in reading.facts if fact.name == "clip")
    return fact.unknown if fact.value is None else fact.value


def test_a_clip_that_is_given_the_norm_has_its_threshold():
    assert clip(TRAIN.format(GIVEN)) == 0.5


@pytest.mark.parametrize("by_hand", [SCALED, CLAMPED])
def test_gradients_that_are_limited_by_hand_are_not_said_to_be_free(by_hand: str):
    assert clip(TRAIN.format(by_hand)) == "gradients are limited by hand"


@pytest.mark.parametrize("harmless", [AVERAGED, PRINTED])
def test_averaging_gradients_and_printing_their_norm_is_no_clip(harmless: str):
    assert clip(TRAIN.format(harmless)) == "none"


def test_a_clip_constant_that_no_call_reads_is_no_clip():
    text = TRAIN.format("pass").replace("opt.step()", "pass")
    assert clip(text) == "no optimizer step was found"
