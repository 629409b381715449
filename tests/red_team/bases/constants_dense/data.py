"""A small corpus of made-up letters whose second halves repeat what the first halves said."""

import random

import torch

NAMES = ["Ada", "Boris", "Clara", "Dmitri", "Edith", "Farid", "Greta", "Hugo", "Ines", "Jonas"]
TOWNS = ["Lisbon", "Quito", "Tromso", "Dakar", "Osaka", "Perth", "Riga", "Turin", "Cork", "Vaasa"]
GOODS = ["lamps", "pears", "ropes", "maps", "kites", "boots", "clocks", "seeds", "drums", "tiles"]


def make_text(n_letters=1100, seed=11):
    rng = random.Random(seed)
    letters = []
    for _ in range(n_letters):
        name, town, goods = rng.choice(NAMES), rng.choice(TOWNS), rng.choice(GOODS)
        n = rng.randint(2, 99)
        letters.append(
            f"Dear {name} of {town}, we ship {n} {goods}. {name}, expect {n} {goods} in {town}.\n"
        )
    return "".join(letters)


def load(fraction=0.9):
    ids = torch.tensor(list(make_text().encode()), dtype=torch.long)
    cut = int(fraction * len(ids))
    return ids[:cut], ids[cut:]


def get_batch(ids, batch_size, seq_len, generator):
    starts = torch.randint(0, len(ids) - seq_len - 1, (batch_size,), generator=generator)
    x = torch.stack([ids[i : i + seq_len] for i in starts])
    y = torch.stack([ids[i + 1 : i + 1 + seq_len] for i in starts])
    return x, y
