import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from probe_jobs import run_job

from infrarsi.wire.probe import ProbeConfig

DRAWS = """
import pickle, random, sys
import numpy as np
import torch
from infrarsi_probe import seeds

offset = int(sys.argv[1])
plain = [np.random.mtrand._rand, torch.default_generator]
if sys.argv[2] == "shifted":
    seeds.shift_seeds(offset, rank=0)
    assert seeds.shift_torch(torch, offset)
    offset = 0
assert isinstance(plain[0], np.random.RandomState) and isinstance(plain[1], torch.Generator)

random.seed(1 + offset)
np.random.seed((2**32 - 1 + offset) % 2**32)
torch.manual_seed(2 + offset)
print(random.random(), np.random.rand(), torch.rand(1))

print(random.Random(3 + offset).random())
print(np.random.default_rng(4 + offset).random(), np.random.RandomState(5 + offset).rand())
legacy = np.random.RandomState()
legacy.seed(6 + offset)
print(pickle.loads(pickle.dumps(legacy)).rand())
bits = np.random.Generator(np.random.PCG64(7 + offset))
print(pickle.loads(pickle.dumps(bits)).random())
print(np.random.default_rng(np.random.SeedSequence(8 + offset)).random())

g = torch.Generator().manual_seed(9 + offset)
print(torch.randint(1000, (4,), generator=g), g.initial_seed() - int(sys.argv[1]))
print(torch.rand(2, generator=pickle.loads(pickle.dumps(g))))
sampler = torch.utils.data.RandomSampler(range(100), generator=g)
print([i for i in torch.utils.data.DataLoader(range(100), batch_size=50, sampler=sampler)])
def noisy(x):
    return x + torch.rand(3, generator=g)
print(torch.compile(noisy, backend="eager")(torch.zeros(3)))
"""

JOB = """
import torch

g = torch.Generator().manual_seed(1)
model = torch.nn.Sequential(torch.nn.Embedding(64, 8), torch.nn.Linear(8, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    ids = torch.randint(64, (4, 9), generator=g)
    logits = model(ids[:, :-1])
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def draws(offset: int, how: str) -> str:
    command = [sys.executable, "-c", DRAWS, str(offset), how]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_a_shift_draws_what_shifted_seeds_would_draw():
    assert draws(100, "shifted") == draws(100, "by hand")


def test_another_seed_gives_other_rows_and_the_same_seed_the_same(
    config: Callable[..., ProbeConfig], tmp_path: Path
):
    path = tmp_path / "train.py"
    path.write_text(JOB)
    first, again, other = (_rows(config(seed=seed), path) for seed in (5, 5, 6))
    assert None not in first
    assert first == again
    assert not set(first) & set(other)


@pytest.mark.parametrize("value", [True, None, "text"])
def test_what_is_no_integer_is_no_seed_to_shift(value: object):
    from infrarsi_probe.generators import shifted

    assert shifted(value, 100) is value


def _rows(settings: ProbeConfig, path: Path) -> list[str | None]:
    end = run_job(settings, script=path)
    assert end.code == 0, end.output
    return [step.inputs_hash for step in end.evidence[0].steps]
