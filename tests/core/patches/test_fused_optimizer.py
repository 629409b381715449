"""The fused optimizer recipe: Adam, AdamW and SGD of torch in any spelling, nothing else."""

import pytest
from trained import printed
from training_spellings import FLAT, JOBS

from infrarsi.launch import Launch
from infrarsi.patches import Declined, Rewritten
from infrarsi.patches.recipes.fused_optimizer import FusedOptimizer
from infrarsi.reading.sources import MappingSources


def outcome_of(texts: dict[str, str]) -> Rewritten | Declined:
    return FusedOptimizer().rewrite(MappingSources(texts), Launch(script="train.py"))


def line(text: str) -> Rewritten | Declined:
    return outcome_of({"train.py": text})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "import torch\no = torch.optim.AdamW(ps, lr=1)\n",
            "import torch\no = torch.optim.AdamW(ps, lr=1, fused=True)\n",
        ),
        (
            "from torch.optim import SGD as S\no = S(ps, 0.1)  # plain\n",
            "from torch.optim import SGD as S\no = S(ps, 0.1, fused=True)  # plain\n",
        ),
        (
            "import torch.optim as optim\nkind = optim.Adam\no = kind(ps)\n",
            "import torch.optim as optim\nkind = optim.Adam\no = kind(ps, fused=True)\n",
        ),
        (
            "from torch import optim\no = optim.Adam(\n    ps,  # all\n    lr=1,  # high\n)\n",
            "from torch import optim\n"
            "o = optim.Adam(\n    ps,  # all\n    lr=1,  # high\n    fused=True,\n)\n",
        ),
        (
            "from torch import optim\no = optim.Adam(\n    ps,\n    lr=1  # low\n)\n",
            "from torch import optim\no = optim.Adam(\n"
            "    ps,\n    lr=1,  # low\n    fused=True\n)\n",
        ),
    ],
)
def test_every_spelling_gets_the_keyword_in_its_own_layout(before: str, after: str):
    outcome = line(before)
    assert isinstance(outcome, Rewritten), outcome
    compile(outcome.texts["train.py"], "t", "exec")
    assert outcome.texts["train.py"] == after
    assert isinstance(line(after), Declined)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("import torch\no = torch.optim.AdamW(ps, fused=False)\n", "fused"),
        ("import torch\no = torch.optim.AdamW(ps, foreach=True)\n", "foreach"),
        ("import torch\no = torch.optim.Adam(ps, capturable=True)\n", "capturable"),
        ("import torch\no = torch.optim.Adam(ps, differentiable=True)\n", "differentiable"),
        ("import torch\no = torch.optim.Adam(ps, **options)\n", "hidden"),
        ("import torch\no = torch.optim.RMSprop(ps)\n", "No Adam"),
        ("from transformers import AdamW\no = AdamW(ps)\n", "No Adam"),
        ("class AdamW: pass\no = AdamW()\n", "No Adam"),
        (
            "import torch\ne = torch.nn.Embedding(2, 2, sparse=True)\no = torch.optim.SGD(ps, 1)\n",
            "sparse",
        ),
        ("import torch\no = torch.optim.AdamW(ps,\n", "does not parse"),
        ("", "No Adam"),
    ],
)
def test_it_declines_with_the_reason(text: str, word: str):
    outcome = line(text)
    assert isinstance(outcome, Declined)
    assert word in outcome.reason


@pytest.mark.parametrize("name", JOBS)
def test_the_job_trains_to_the_same_loss(name: str):
    outcome = outcome_of(JOBS[name])
    assert isinstance(outcome, Rewritten)
    before, after = printed(JOBS[name]), printed({**JOBS[name], **outcome.texts})
    for old, new in zip(before, after, strict=True):
        assert new == pytest.approx(old, rel=1e-5)


def test_a_script_that_is_not_there_declines():
    outcome = FusedOptimizer().rewrite(MappingSources(FLAT), Launch(script="other.py"))
    assert isinstance(outcome, Declined)
    assert "other.py" in outcome.reason
