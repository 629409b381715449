"""Small training scripts as people write them."""

TRAIN = """import torch
import torch.nn.functional as F

BATCH_SIZE = 4
ACCUMULATE = 2
SEQ_LEN = 64

torch.manual_seed(1)
data = torch.frombuffer(bytearray(open("data/text.txt", "rb").read()), dtype=torch.uint8)
model = torch.nn.Sequential(torch.nn.Embedding(256, 32), torch.nn.Linear(32, 256))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def get_batch():
    starts = torch.randint(len(data) - SEQ_LEN - 1, (BATCH_SIZE,))
    x = torch.stack([data[i : i + SEQ_LEN].long() for i in starts])
    y = torch.stack([data[i + 1 : i + 1 + SEQ_LEN].long() for i in starts])
    return x, y


for step in range(1000):
    optimizer.zero_grad()
    for micro_step in range(ACCUMULATE):
        x, y = get_batch()
        logits = model(x)
        loss = F.cross_entropy(logits.view(-1, 256), y.view(-1))
        (loss / ACCUMULATE).backward()
    optimizer.step()
"""

JOB = {"train.py": TRAIN, "data/text.txt": "to be or not to be\n" * 50}
