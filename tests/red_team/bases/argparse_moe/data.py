"""Ship's logs as bytes, read in order like a token shard."""

import random

import torch

SHIPS = ["Albatross", "Bittern", "Cormorant", "Dunlin", "Egret", "Fulmar", "Gannet", "Heron"]
CARGO = ["amber", "barley", "copper", "dyes", "flax", "grain", "hemp", "indigo"]
PORTS = ["Aden", "Bergen", "Cadiz", "Derry", "Ghent", "Havre", "Lagos", "Malmo"]


def make_text(n_entries=1300, seed=31):
    rng = random.Random(seed)
    entries = []
    for _ in range(n_entries):
        ship, cargo = rng.choice(SHIPS), rng.choice(CARGO)
        a, b = rng.sample(PORTS, 2)
        entries.append(
            f"{ship}: {cargo}, {a} to {b}. The {ship} left {a}; her {cargo} reached {b}.\n"
        )
    return "".join(entries)


class ShardReader:
    """Hands out consecutive windows and starts over at the end of the shard."""

    def __init__(self, split, batch_size, seq_len):
        ids = torch.tensor(list(make_text().encode()), dtype=torch.int64)
        cut = int(0.95 * len(ids))
        self.ids = ids[:cut] if split == "train" else ids[cut:]
        self.batch_size = batch_size
        self.seq_len = seq_len
        self.position = 0

    def next(self):
        n = self.batch_size * self.seq_len
        if self.position + n + 1 > len(self.ids):
            self.position = 0
        buffer = self.ids[self.position : self.position + n + 1]
        self.position += n
        x = buffer[:-1].view(self.batch_size, self.seq_len)
        y = buffer[1:].view(self.batch_size, self.seq_len)
        return x, y
