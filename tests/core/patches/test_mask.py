"""Masks read from code are what torch computes from the same code, or unknown."""

import math

import libcst as cst
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from infrarsi.patches.attention.mask import mask_of
from infrarsi.patches.attention.scope import Value, functions
from infrarsi.patches.attention.steps import Mask, Step
from infrarsi.patches.modules import Module, parse

N = 6
NUMBERS = st.sampled_from(["0", "1", "2", "-1", "-16384.0", "0.5", 'float("-inf")', "-math.inf"])
SHIFTS = st.sampled_from(["", ", 0", ", 1", ", -1", ", diagonal=1", ", diagonal=2"])


def extended(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions one operation larger."""

    def made(template: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.tuples(*parts).map(lambda values: template.format(*values))

    compared = st.sampled_from(["==", "!=", "<", ">", "<=", ">="])
    return st.one_of(
        made("torch.tril({}{})", inner, SHIFTS),
        made("torch.triu({}{})", inner, SHIFTS),
        made("({}).float().tril(1)", inner),
        made("({} {} {})", inner, compared, NUMBERS),
        made("(1 - ({}).float())", inner),
        made("(({}) * {})", inner, NUMBERS),
        made("(({}) + ({}))", inner, inner),
        made("(~({}).bool())", inner),
        made("torch.logical_not({})", inner),
        made("({}).transpose(0, 1)", inner),
        made("({}).T", inner),
        made("({})[:T, :T]", inner),
        made("({})[1:, :T]", inner),
        made("({})[None, :, :][0]", inner),
        made("({}).view(1, 1, T, T)[0, 0]", inner),
        made("({}).unsqueeze(0).unsqueeze(1)[..., :T, :T].squeeze()", inner),
        made("({}).float().masked_fill({} == 0, {})", inner, inner, NUMBERS),
        made("torch.where(({}).bool(), {}, {})", inner, NUMBERS, NUMBERS),
    )


LEAVES = st.sampled_from(
    [
        "torch.ones(T, T)",
        "torch.zeros(T, T)",
        "torch.full((T, T), -16384.0)",
        "(torch.arange(T)[None, :] <= torch.arange(T)[:, None])",
        "(torch.arange(T).unsqueeze(1) < torch.arange(T).view(1, -1))",
        "(torch.arange(T) > torch.arange(T).view(-1, 1))",
    ]
)
EXPRESSIONS = st.recursive(LEAVES, extended, max_leaves=4)


def read(expression: str) -> Mask:
    module = parse("m.py", f"import math\nimport torch\ndef f(T):\n    return {expression}\n")
    assert isinstance(module, Module)
    (scope,) = functions(module)
    assert isinstance(scope.node, cst.FunctionDef)
    returned = scope.node.body.body[0].body[0]
    return mask_of(Value(returned.value, scope.entry(returned)))


def drawn(step: Step) -> torch.Tensor:
    rows, columns = torch.arange(N)[:, None], torch.arange(N)[None, :]
    low, high = torch.tensor(float(step.low)), torch.tensor(float(step.high))
    return torch.where(columns - rows <= step.edge, low, high)


@settings(deadline=None, max_examples=250)
@given(EXPRESSIONS)
def test_a_mask_is_read_as_torch_computes_it(expression: str):
    step = read(expression)
    if step is None:
        return
    assert isinstance(step, Step)
    try:
        real = eval(expression, {"torch": torch, "math": math, "T": N})
    except (RuntimeError, TypeError):
        return
    real = torch.as_tensor(real).float().expand(N, N)
    if not real.isnan().any():
        assert torch.equal(drawn(step), real)


@pytest.mark.parametrize(
    "expression",
    [
        "torch.tril(torch.ones(T, T)) == 1",
        "~torch.triu(torch.ones(T, T), 1).bool()",
        "torch.ones(T, T).triu().T.bool()",
        "torch.arange(T)[None, :] <= torch.arange(T)[:, None]",
        "1 - torch.triu(torch.ones(T, T), diagonal=1)",
        "torch.triu(torch.ones(T, T), diagonal=1) == 0",
        "torch.ones(1, 1, T, T).tril()[:, :, :T, :T]",
    ],
)
def test_a_causal_mask_is_seen_in_many_spellings(expression: str):
    step = read(expression)
    assert isinstance(step, Step)
    assert (step.edge, bool(step.low), bool(step.high)) == (0, True, False)


@pytest.mark.parametrize(
    "expression",
    [
        "torch.rand(T, T)",
        "torch.tril(torch.rand(T, T))",
        "torch.tril(torch.ones(T, T), k)",
        "torch.ones(T, T)[1:, :]",
        "torch.ones(T, T)[..., 1:]",
        "torch.tril(torch.ones(T, T)).unsqueeze(-1)",
        "torch.tril(torch.ones(T, T)).flip(0)",
        "torch.tril(torch.ones(T, T)) * torch.triu(torch.ones(T, T))",
        "torch.ones(T, T).triu(1) * float('-inf')",
        "mask",
        "f(T)",
    ],
)
def test_what_is_not_plain_is_unknown(expression: str):
    assert read(expression) is None
