"""The generated ledger and the batches cut from it."""

import random

import torch

CLERKS = ["agatha", "bertram", "cecily", "dunstan", "edith", "florian"]
GOODS = ["wool", "salt", "amber", "pepper", "timber", "iron"]
TOWNS = ["lubeck", "riga", "visby", "bergen", "danzig"]


def write_ledger(n_bytes, seed):
    rng = random.Random(seed)
    lines, size = [], 0
    while size < n_bytes:
        clerk, good, town = rng.choice(CLERKS), rng.choice(GOODS), rng.choice(TOWNS)
        sacks = rng.randint(10, 99)
        line = f"{town}: {clerk} bought {sacks} of {good}; {clerk} paid in {town} for {sacks}.\n"
        lines.append(line)
        size += len(line)
    return "".join(lines)[:n_bytes].encode()


class BatchLoader:
    """Draws the rows of one step for all ranks; each rank keeps every world-th row."""

    def __init__(self, data, train, seed, rank, world):
        self.tokens = torch.tensor(list(write_ledger(data.n_bytes, data.text_seed)))
        self.seq_len = data.seq_len
        self.micro_batch = train.micro_batch
        self.accumulation = train.accumulation
        self.rank = rank
        self.world = world
        self.generator = torch.Generator().manual_seed(seed)

    def window(self, start):
        return self.tokens[start : start + self.seq_len + 1].long()

    def step_batches(self):
        n_rows = self.micro_batch * self.accumulation * self.world
        last = len(self.tokens) - self.seq_len - 1
        starts = torch.randint(last, (n_rows,), generator=self.generator)
        mine = starts[self.rank :: self.world].tolist()
        for i in range(self.accumulation):
            part = mine[i * self.micro_batch : (i + 1) * self.micro_batch]
            rows = torch.stack([self.window(start) for start in part])
            yield rows[:, :-1].contiguous(), rows[:, 1:].contiguous()
