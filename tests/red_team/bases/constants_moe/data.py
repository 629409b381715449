"""Shopping dialogues as bytes; the answer to each question stands in an earlier line."""

import random

import numpy as np

PEOPLE = ["mila", "oskar", "priya", "ruben", "sofia", "tariq", "ulla", "viktor"]
ITEMS = ["apples", "bread", "candles", "dates", "eggs", "flour", "ginger", "honey"]
PLACES = ["cellar", "garage", "kitchen", "attic", "garden", "hall", "shed", "office"]


def make_text(n_dialogues=1000, seed=23):
    rng = random.Random(seed)
    out = []
    for _ in range(n_dialogues):
        a, b = rng.sample(PEOPLE, 2)
        i, j = rng.sample(ITEMS, 2)
        p, q = rng.sample(PLACES, 2)
        asked, item, place = rng.choice([(a, i, p), (b, j, q)])
        out.append(f"{a} left {i} in the {p}. {b} left {j} in the {q}.\n")
        out.append(f"what did {asked} leave? {item}. where? the {place}.\n")
    return "".join(out)


class TokenLoader:
    """Random windows of the text; owns its generator."""

    def __init__(self, batch_size, seq_len, seed):
        self.tokens = np.frombuffer(make_text().encode(), dtype=np.uint8).astype(np.int64)
        self.batch_size = batch_size
        self.seq_len = seq_len
        self.rng = np.random.default_rng(seed)

    def next_batch(self):
        high = len(self.tokens) - self.seq_len - 1
        rows = []
        for _ in range(self.batch_size):
            start = self.rng.integers(0, high)
            rows.append(self.tokens[start : start + self.seq_len + 1])
        batch = np.stack(rows)
        return batch[:, :-1].copy(), batch[:, 1:].copy()
