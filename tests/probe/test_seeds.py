import random

import numpy as np
import torch

from infrarsi_probe import seeds


def test_seeds_are_shifted_and_the_same_shift_gives_the_same_draws():
    originals = (random.seed, torch.manual_seed, torch.random.manual_seed, np.random.seed)
    try:
        seeds.shift_seeds(100, rank=0)
        seeds.shift_torch(torch, 100)
        random.seed(1)
        np.random.seed(2**32 - 1)
        torch.manual_seed(2)
        drawn = (random.random(), np.random.rand(), torch.rand(1).item())
    finally:
        random.seed, torch.manual_seed, torch.random.manual_seed, np.random.seed = originals
    random.seed(101)
    np.random.seed(99)
    torch.manual_seed(102)
    assert drawn == (random.random(), np.random.rand(), torch.rand(1).item())
