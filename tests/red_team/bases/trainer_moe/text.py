"""A generated text: recipes whose ingredients come back a few phrases later."""

import random

import torch

VERBS = ["chop", "boil", "fry", "grate", "peel", "bake"]
FOODS = ["carrots", "onions", "potatoes", "apples", "beans", "mushrooms", "leeks", "pears"]
TOOLS = ["pan", "pot", "bowl", "oven dish"]


def make_corpus(n_bytes=120_000, seed=11):
    rng = random.Random(seed)
    out, size = [], 0
    while size < n_bytes:
        verb, food, tool = rng.choice(VERBS), rng.choice(FOODS), rng.choice(TOOLS)
        minutes = rng.randint(2, 45)
        recipe = f"{verb} the {food}; put the {food} in the {tool}; wait {minutes} minutes. "
        if rng.random() < 0.15:
            recipe += f"taste the {food} from the {tool}.\n"
        out.append(recipe)
        size += len(recipe)
    return "".join(out)[:n_bytes].encode()


class Corpus:
    def __init__(self, seq_len, holdout=0.05):
        data = make_corpus()
        cut = int(len(data) * (1 - holdout))
        self.train = torch.tensor(list(data[:cut]), dtype=torch.long)
        self.valid = torch.tensor(list(data[cut:]), dtype=torch.long)
        self.seq_len = seq_len

    def batch(self, split, batch_size, generator):
        source = self.train if split == "train" else self.valid
        starts = torch.randint(
            len(source) - self.seq_len - 1, (batch_size,), generator=generator
        ).tolist()
        x = torch.stack([source[s : s + self.seq_len] for s in starts])
        y = torch.stack([source[s + 1 : s + 1 + self.seq_len] for s in starts])
        return x, y
