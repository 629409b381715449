"""Self-attention as people write it by hand, and look-alikes that are something else.

Each text defines `Attention(width, heads, length)`, an nn.Module from (B, T, width) to the same.
"""

_HEAD = """\
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, width, heads, length):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
"""

_SPLIT = """
    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)
        q = q.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        k = k.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        v = v.view(B, T, self.heads, C // self.heads).transpose(1, 2)
"""

_JOIN = """\
        return self.proj(y.transpose(1, 2).contiguous().view(B, T, C))
"""


def _module(init: str, body: str, head: str = _HEAD, join: str = _JOIN) -> str:
    return head + _indented(init) + _SPLIT + _indented(body) + join


def _indented(text: str) -> str:
    return "".join(f"        {line}\n" if line else "\n" for line in text.splitlines())


CAUSAL: dict[str, str] = {
    "statements": _module(
        "",
        """\
# scores
att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
mask = torch.tril(torch.ones(T, T, device=x.device))
# no peeking
att = att.masked_fill(mask == 0, float("-inf"))
att = F.softmax(att, dim=-1)
y = att @ v  # (B, heads, T, size)""",
    ),
    "buffer": _module(
        'self.register_buffer("bias", '
        "torch.tril(torch.ones(length, length)).view(1, 1, length, length))",
        """\
att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float('-inf'))
att = F.softmax(att, dim=-1)
y = att @ v""",
    ),
    "one_expression": _module(
        "self.scale = (width // heads) ** -0.5",
        """\
future = torch.triu(torch.ones(T, T, dtype=torch.bool), diagonal=1)
y = torch.matmul(
    torch.softmax((torch.matmul(q, k.mT) * self.scale).masked_fill(future, -math.inf), -1), v
)""",
    ),
    "added_mask": _module(
        "size = width // heads\nself.inv = 1 / math.sqrt(size)",
        """\
scores = torch.matmul(q * self.inv, k.transpose(2, 3))
scores = scores + torch.triu(torch.full((T, T), float("-inf")), 1)
weights = scores.softmax(dim=-1)
y = weights.matmul(v)""",
    ),
    "einsum": _module(
        "",
        """\
d_head = q.shape[-1]
logits = torch.einsum("bhid,bhjd->bhij", q, k) / d_head ** 0.5
ok = torch.ones(T, T).tril().bool()
logits = torch.where(ok, logits, torch.tensor(-1e9))
p = logits.softmax(-1)
y = torch.einsum("bhij,bhjd->bhid", p, v)""",
    ),
    "einsum_heads_third": _HEAD
    + """
    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.qkv(x).view(B, T, 3, self.heads, C // self.heads).unbind(2)
        s = torch.einsum("bqhd,bkhd->bhqk", q, k) * (C // self.heads) ** -0.5
        i = torch.arange(T)
        s = s.masked_fill(i[None, :] > i[:, None], float("-inf"))
        y = torch.einsum("bhqk,bkhd->bqhd", s.softmax(dim=3), v)
        return self.proj(y.reshape(B, T, C))
""",
    "in_place": _module(
        "self.register_buffer('mask', ~torch.tril(torch.ones(length, length)).bool())",
        """\
kt = k.transpose(-2, -1)
w = q @ kt
w /= math.sqrt(q.size(-1))
w.masked_fill_(self.mask[:T, :T], torch.finfo(w.dtype).min)
w = nn.Softmax(dim=-1)(w)
y = w @ v""",
    ),
    "gpt2_trick": _module(
        "self.register_buffer('b', torch.tril(torch.ones(length, length))[None, None])",
        """\
w = torch.matmul(q, k.permute(0, 1, 3, 2)) / math.sqrt(v.size(-1))
b = self.b[:, :, :T, :T]
w = w * b - 1e10 * (1 - b)
y = torch.matmul(F.softmax(w, dim=-1), v)""",
    ),
    "tensor_scale": _module(
        "self.softmax = nn.Softmax(dim=-1)",
        """\
scores = (q @ k.transpose(-1, -2)) / torch.sqrt(torch.tensor(k.size(-1)))
blocked = torch.tril(torch.ones((T, T))) < 0.5
y = self.softmax(scores.masked_fill(blocked[None, None, :, :], -1e30)) @ v""",
    ),
    "unscaled": _module(
        "self.fill = -1e9",
        """\
scores = q @ k.transpose(-2, -1)
tri = (torch.triu(torch.ones(T, T)) == 1).transpose(0, 1)
tri = tri.float().masked_fill(tri == 0, float("-inf")).masked_fill(tri == 1, float(0.0))
y = F.softmax(scores + tri, dim=-1) @ v""",
    ),
    "helper_mask": _HEAD.replace(
        "class Attention",
        """\
def causal_mask(n, device):
    return torch.tril(torch.ones(n, n, device=device)) == 0


class Attention""",
    )
    + _SPLIT
    + """\
        future = causal_mask(T, x.device)
        a = F.softmax((q @ k.mT / (k.shape[-1] ** 0.5)).masked_fill(future, -torch.inf), dim=-1)
        y = a @ v
"""
    + _JOIN,
    "torch_alias": """\
import torch as th
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads, length):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.q = nn.Linear(width, width)
        self.k = nn.Linear(width, width)
        self.v = nn.Linear(width, width)

    def heads_first(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x):
        n = x.shape[1]
        sim = self.heads_first(self.q(x)) @ self.heads_first(self.k(x)).transpose(-2, -1)
        sim = sim * (x.shape[-1] // self.heads) ** -0.5
        sim = sim.masked_fill(th.ones(n, n).triu(1).bool(), -1e9)
        return (sim.softmax(-1) @ self.heads_first(self.v(x))).transpose(1, 2).flatten(2)
""",
}
"""Causal attention; all must be rewritten and give the same numbers."""

UNMASKED = _module(
    "",
    """\
att = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
att = att.softmax(dim=-1)
y = att @ v""",
)

DROPOUT: dict[str, str] = {
    "functional": _module(
        "self.dropout = 0.25",
        """\
att = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
att = att.masked_fill(torch.ones(T, T).tril() == 0, float("-inf")).softmax(-1)
att = F.dropout(att, self.dropout, training=self.training)
y = att @ v""",
    ),
    "module": _module(
        "self.attn_drop = nn.Dropout(0.25)",
        """\
att = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
att = att.masked_fill(torch.ones(T, T).tril() == 0, float("-inf")).softmax(-1)
y = self.attn_drop(att) @ v""",
    ),
}

_SCORES = "att = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))\n"
_MASKED = _SCORES + 'att = att.masked_fill(torch.ones(T, T).tril() == 0, float("-inf"))\n'

LOOKALIKES: dict[str, tuple[str, str]] = {
    "no_softmax": (_module("", _MASKED + "y = att.relu() @ v"), "No attention"),
    "softmax_over_queries": (_module("", _MASKED + "y = att.softmax(dim=-2) @ v"), "dimension -2"),
    "implicit_dim": (_module("", _SCORES + "y = F.softmax(att) @ v"), "implicit"),
    "unknown_mask": (
        _module(
            'self.register_buffer("mask", torch.rand(length, length) > 0.5)',
            _SCORES + "att = att.masked_fill(self.mask[:T, :T], -1e9)\ny = att.softmax(-1) @ v",
        ),
        "not provably causal",
    ),
    "strictly_causal": (
        _module(
            "", _SCORES + "att = att + torch.full((T, T), -1e9).triu(0)\ny = att.softmax(-1) @ v"
        ),
        "no causal mask",
    ),
    "anti_causal": (
        _module(
            "",
            _SCORES
            + "att = att.masked_fill(torch.ones(T, T).tril() == 1, -1e9)\ny = att.softmax(-1) @ v",
        ),
        "not provably causal",
    ),
    "window": (
        _module(
            "",
            _MASKED + "far = torch.ones(T, T).triu(-4) == 0\n"
            "y = att.masked_fill(far, -1e9).softmax(-1) @ v",
        ),
        "not provably causal",
    ),
    "last_rows_of_the_mask": (
        _module(
            'self.register_buffer("m", torch.ones(length, length).tril()[None, None])',
            _SCORES
            + "att = att.masked_fill(self.m[:, :, 1:T, :T] == 0, -1e9)\ny = att.softmax(-1) @ v",
        ),
        "not provably causal",
    ),
    "weak_fill": (
        _module(
            "",
            _SCORES + "att = att.masked_fill(torch.ones(T, T).tril() == 0, -1.0)\n"
            "y = att.softmax(-1) @ v",
        ),
        "not low enough",
    ),
    "weights_returned": (
        _module(
            "",
            _MASKED + "att = att.softmax(-1)\ny = att @ v",
            join="        return self.proj(y.transpose(1, 2).reshape(B, T, C)), att\n",
        ),
        "used elsewhere",
    ),
    "weights_kept": (
        _module("", _MASKED + "att = att.softmax(-1)\nself.last = att.detach()\ny = att @ v"),
        "used elsewhere",
    ),
    "scores_used_again": (
        _module("", _MASKED + "p = att.softmax(-1)\ny = p @ v\nself.penalty = att.logsumexp(-1)"),
        "used elsewhere",
    ),
    "alibi": (
        _module(
            "self.slopes = nn.Parameter(torch.ones(heads, 1, 1))",
            _MASKED + "att = att - self.slopes * torch.arange(T)\ny = att.softmax(-1) @ v",
        ),
        "is added",
    ),
    "learned_temperature": (
        _module(
            "self.temperature = nn.Parameter(torch.ones(1))",
            "att = q @ k.transpose(-2, -1) * self.temperature\ny = att.softmax(-1) @ v",
        ),
        "may be a tensor",
    ),
    "soft_cap": (_module("", _MASKED + "y = torch.tanh(att).softmax(-1) @ v"), "torch.tanh"),
    "always_dropout": (
        _module("", _MASKED + "att = F.dropout(att.softmax(-1), 0.1)\ny = att @ v"),
        "outside training",
    ),
    "branch": (
        _module(
            "",
            _SCORES + "if T > 1:\n    att = att.masked_fill(torch.ones(T, T).tril() == 0, -1e9)\n"
            "y = att.softmax(-1) @ v",
        ),
        "not plain to see",
    ),
    "rebound_query": (
        _module("", _MASKED + "att = att.softmax(-1)\nq = q * 2\ny = att @ v + q"),
        "bound anew",
    ),
    "already": (
        _module("", "y = F.scaled_dot_product_attention(q, k, v, is_causal=True)"),
        "already",
    ),
    "pooling": (
        _module(
            "self.score = nn.Linear(width // heads, 1)", "y = self.score(v).softmax(-1) @ v.mT"
        ),
        "self.score",
    ),
}
"""Texts to refuse, and a word of the reason."""
