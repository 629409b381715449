"""Recipes together: every subset in every order applies, parses and trains to the same loss."""

import ast
import functools
import itertools
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from attention_spellings import CAUSAL
from trained import printed_lines
from training_spellings import EXPERTS

from infrarsi.launch import Launch
from infrarsi.patches import RECIPES, Composed, Declined, Rewritten, claims, compose
from infrarsi.patches.catalogue import recipe_named
from infrarsi.reading.sources import MappingSources

LAUNCH = Launch(script="train.py")
NAMES = tuple(recipe.name for recipe in RECIPES)
EXAMPLES = Path(__file__).parents[3] / "examples"
EXAMPLE_NAMES = [n for n in ("dense_gpt", "moe_gpt") if (EXAMPLES / n / "train.py").exists()]

MARKS = {
    "sdpa": "scaled_dot_product_attention",
    "fused_optimizer": "fused=True",
    "bf16_autocast": "autocast",
    "drop_micro_sync": ".detach().double()",
}

JOB = {
    "attention.py": CAUSAL["statements"],
    "train.py": EXPERTS["train.py"]
    .replace("import torch\n", "import torch\nfrom attention import Attention\n", 1)
    .replace(
        "        self.moe =", "        self.attention = Attention(16, 2, 8)\n        self.moe ="
    )
    .replace("self.moe(self.emb(idx))", "self.moe(self.attention(self.emb(idx)))"),
}


def example(name: str) -> dict[str, str]:
    folder = EXAMPLES / name
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*.py")}


@functools.cache
def step(name: str, texts: frozenset[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    """The job's texts with one recipe applied."""
    recipe = recipe_named(name)
    assert recipe is not None
    outcome = recipe.rewrite(MappingSources(dict(texts)), LAUNCH)
    assert isinstance(outcome, Rewritten), f"{name}: {outcome}"
    return frozenset({**dict(texts), **outcome.texts}.items())


@functools.cache
def together(names: frozenset[str]) -> Composed:
    composed = compose(names, MappingSources(JOB), LAUNCH)
    assert isinstance(composed, Composed)
    return composed


def meaning(texts: Mapping[str, str]) -> dict[str, str]:
    return {path: ast.dump(ast.parse(text)) for path, text in texts.items()}


ORDERS = [o for n in range(len(NAMES) + 1) for o in itertools.permutations(NAMES, n)]


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: "+".join(order) or "none")
def test_recipes_commute(order: tuple[str, ...]):
    texts = frozenset(JOB.items())
    for name in order:
        texts = step(name, texts)
    composed = together(frozenset(order))
    assert set(composed.whys) == set(order)
    assert meaning(dict(texts)) == meaning({**JOB, **composed.texts})
    whole = "".join(text for _, text in sorted(texts))
    for name, mark in MARKS.items():
        assert (mark in whole) == (name in order)
    if order:
        again = recipe_named(order[0]).rewrite(MappingSources(dict(texts)), LAUNCH)
        assert isinstance(again, Declined)


@pytest.mark.parametrize("name", EXAMPLE_NAMES)
def test_every_subset_applies_to_the_example(name: str):
    texts = example(name)
    for n in range(len(NAMES) + 1):
        for subset in itertools.combinations(NAMES, n):
            changed = frozenset(texts.items())
            for recipe in subset:
                changed = step(recipe, changed)
            whole = "".join(meaning(dict(changed)).values())
            assert ("scaled_dot_product_attention" in whole) == ("sdpa" in subset)
            assert ("'autocast'" in whole) == ("bf16_autocast" in subset)
            assert ("'fused'" in whole) == ("fused_optimizer" in subset)
            assert ("'item'" in whole) == ("drop_micro_sync" not in subset)


def shrunk(text: str) -> str:
    """The example with a tiny model."""
    sizes = {"N_LAYER": 1, "N_EMBD": 40, "SEQ_LEN": 32, "N_HEAD": 2}
    for name, size in sizes.items():
        text = re.sub(rf"^{name} = \d+", f"{name} = {size}", text, flags=re.MULTILINE)
    return text


def losses(texts: Mapping[str, str], name: str) -> list[float]:
    """The loss of each of two steps of the shrunk example."""
    small = {path: shrunk(text) for path, text in texts.items()}
    lines = printed_lines(small, ["--steps", "2"], EXAMPLES / name / "train.py")
    found = [re.search(r"loss ([\d.]+)", line) for line in lines]
    values = [float(match[1]) for match in found if match]
    assert len(values) == 2
    return values


@pytest.mark.live
@pytest.mark.parametrize("name", EXAMPLE_NAMES)
def test_the_patched_example_trains_to_the_same_loss(name: str):
    texts = example(name)
    before = losses(texts, name)
    exact = compose(set(NAMES) - {"bf16_autocast"}, MappingSources(texts), LAUNCH)
    every = compose(NAMES, MappingSources(texts), LAUNCH)
    assert isinstance(exact, Composed)
    assert isinstance(every, Composed)
    assert losses({**texts, **exact.texts}, name) == pytest.approx(before, rel=5e-5)
    assert losses({**texts, **every.texts}, name) == pytest.approx(before, rel=1e-2)


def test_a_recipe_that_does_not_apply_is_named():
    outcome = compose(["sdpa"], MappingSources({"train.py": "print(1)\n"}), LAUNCH)
    assert isinstance(outcome, Declined)
    assert outcome.reason.startswith("sdpa: ")


def test_an_unknown_recipe_is_named():
    outcome = compose(["warp_drive"], MappingSources(JOB), LAUNCH)
    assert isinstance(outcome, Declined)
    assert "warp_drive" in outcome.reason


def test_every_recipe_has_a_help_page_and_a_claim():
    assert set(claims()) == set(NAMES) == set(MARKS)
    for recipe in RECIPES:
        assert len((type(recipe).__doc__ or "").splitlines()) > 5
        assert recipe.claim.sd > 0
        assert recipe.title


HALF_TYPED = [
    "",
    "\n",
    "import torch\nloss.backward(",
    "for x in y:\n    loss.backward()",
    "loss.backward()",
    "class A:\n  def f(self): return softmax(self @ self, dim=-1) @ self\n",
    "x = torch.optim.Adam(\n",
    "def f(:\n",
    "\x00",
    "\ud800",
    "lambda: (yield)",
    "a = a\nb = a @ a\nb = b.softmax(-1)\nb @ b\n",
    "def f(q, k, v):\n    a = a + 1\n    return F.softmax(a, -1) @ v\n",
    "(" * 300 + ")" * 300,
    "x = " + "-" * 300 + "1\n",
]


@pytest.mark.parametrize("text", HALF_TYPED, ids=range(len(HALF_TYPED)))
@pytest.mark.parametrize("name", NAMES)
def test_odd_code_is_declined_and_never_raises(name: str, text: str):
    outcome = recipe_named(name).rewrite(MappingSources({"train.py": text}), LAUNCH)
    assert isinstance(outcome, Declined)
    assert outcome.reason.endswith(".")


@pytest.mark.parametrize("name", NAMES)
def test_a_job_cut_off_anywhere_never_raises(name: str):
    text = "".join(JOB.values())
    for end in range(0, len(text), 211):
        outcome = recipe_named(name).rewrite(MappingSources({"train.py": text[:end]}), LAUNCH)
        if isinstance(outcome, Rewritten):
            compile(outcome.texts["train.py"], "train.py", "exec")


@pytest.mark.parametrize(
    "spell",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("    ", "\t"),
        lambda text: "\ufeff" + text,
        lambda text: text.removesuffix("\n"),
    ],
    ids=["crlf", "tabs", "byte_order_mark", "no_last_line_end"],
)
def test_the_files_own_form_is_kept(spell: Callable[[str], str]):
    texts = {path: spell(text) for path, text in JOB.items()}
    composed = compose(NAMES, MappingSources(texts), LAUNCH)
    assert isinstance(composed, Composed)
    plain = together(frozenset(NAMES))
    assert composed.texts == {path: spell(text) for path, text in plain.texts.items()}
