"""A small text with structure worth learning, and fixed-length windows over it."""

import random

import torch
from torch.utils.data import Dataset

NAMES = ["anna", "boris", "clara", "dmitri", "elena", "farid", "greta", "hugo"]
PLACES = ["harbour", "old mill", "station", "market", "observatory", "north gate"]
THINGS = ["copper key", "blue lantern", "sealed letter", "broken compass", "silver coin"]


def build_text(n_bytes=100_000, seed=7):
    rng = random.Random(seed)
    parts, size = [], 0
    while size < n_bytes:
        name, place, thing = rng.choice(NAMES), rng.choice(PLACES), rng.choice(THINGS)
        n = rng.randint(2, 9)
        line = (
            f"{name} carried {n} of the {thing}s to the {place}. "
            f"at the {place}, {name} counted {n} and hid the {thing}. "
        )
        if rng.random() < 0.1:
            line += f"nobody saw {name} leave the {place}.\n"
        parts.append(line)
        size += len(line)
    return "".join(parts)[:n_bytes]


class TextWindows(Dataset):
    """Window i is the block_size bytes that start at byte i."""

    def __init__(self, text, block_size):
        self.ids = torch.tensor(list(text.encode("ascii")), dtype=torch.long)
        self.block_size = block_size

    def __len__(self):
        return len(self.ids) - self.block_size

    def __getitem__(self, index):
        window = self.ids[index : index + self.block_size]
        return {"input_ids": window.clone(), "labels": window.clone()}


def default_data_collator(features):
    return {
        "input_ids": torch.stack([f["input_ids"] for f in features]),
        "labels": torch.stack([f["labels"] for f in features]),
    }
