"""A byte corpus of little logs: each closing line repeats values from the lines above it."""

import random

import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler

HOSTS = ["alder", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine"]
UNITS = ["api", "auth", "cache", "cron", "feed", "mail", "queue", "proxy", "store", "web"]
EVENTS = ["started", "stopped", "reloaded", "throttled", "migrated", "recovered"]


def build_text(n_entries=1500, seed=5):
    rng = random.Random(seed)
    parts = []
    for _ in range(n_entries):
        host, unit, event = rng.choice(HOSTS), rng.choice(UNITS), rng.choice(EVENTS)
        code = rng.randint(100, 999)
        parts.append(f"[{code}] {host}/{unit} {event}\nsummary {code}: {unit} on {host} {event}\n")
    return "".join(parts)


class ByteWindows(Dataset):
    """Fixed windows of `seq_len` + 1 bytes at a stride of half a window."""

    def __init__(self, seq_len):
        self.ids = torch.tensor(list(build_text().encode()), dtype=torch.long)
        self.seq_len = seq_len
        self.stride = seq_len // 2

    def __len__(self):
        return (len(self.ids) - self.seq_len - 1) // self.stride

    def __getitem__(self, index):
        start = index * self.stride
        window = self.ids[start : start + self.seq_len + 1]
        return window[:-1], window[1:]


def make_loader(batch_size, seq_len, world_size, rank, seed):
    dataset = ByteWindows(seq_len)
    sampler = DistributedSampler(
        dataset, num_replicas=world_size, rank=rank, shuffle=True, seed=seed, drop_last=True
    )
    return DataLoader(dataset, batch_size=batch_size, sampler=sampler, drop_last=True), sampler
