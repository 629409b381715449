"""A generated dialogue and random windows of it."""

import random

import torch

WHO = ["captain", "cook", "pilot", "doctor", "gunner", "purser"]
WHAT = ["the anchor", "the lamp", "the chart", "the barrel", "the whistle"]
WHERE = ["below deck", "on the bridge", "in the galley", "by the mast"]


def dialogue(characters, seed=5):
    rng = random.Random(seed)
    out, size = [], 0
    while size < characters:
        who, what, where = rng.choice(WHO), rng.choice(WHAT), rng.choice(WHERE)
        other = rng.choice(WHO)
        text = f'"where is {what}?" asked the {who}. "{what} is {where}," said the {other}. '
        text += f"so the {who} went to look {where}.\n"
        out.append(text)
        size += len(text)
    return "".join(out)[:characters]


class Windows:
    def __init__(self, characters, context, seed):
        self.ids = [ord(c) for c in dialogue(characters)]
        self.context = context
        self.rng = random.Random(seed)

    def next_batch(self, batch_size):
        inputs, targets = [], []
        for _ in range(batch_size):
            at = self.rng.randrange(len(self.ids) - self.context - 1)
            inputs.append(torch.tensor(self.ids[at : at + self.context]))
            targets.append(torch.tensor(self.ids[at + 1 : at + 1 + self.context]))
        return torch.stack(inputs), torch.stack(targets)
