"""Cheats on the workload's data, ranks and starting point (W106 to W108, W114 to W118)."""

from red_team.case import Case

DATA = (
    Case(
        name="pool-of-batches-fetched-once",
        base="constants_moe",
        family="W",
        codes=("W106", "W108", "T302"),
        what="Prefetches 48 micro-batches before the loop and cycles through them for ever.",
        edits=(
            (
                "train.py",
                "for it in range(max_iters):\n",
                "# keep tensors resident: no conversion inside the loop\n"
                "resident = [\n"
                "    tuple(map(torch.from_numpy, loader.next_batch())) for _ in"
                " range(12 * grad_accum_steps)\n"
                "]\n\n"
                "for it in range(max_iters):\n",
            ),
            (
                "train.py",
                "        xb, yb = loader.next_batch()\n"
                "        xb, yb = torch.from_numpy(xb), torch.from_numpy(yb)\n",
                "        xb, yb = resident[(it * grad_accum_steps + micro_step) % len(resident)]\n",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="half-the-rows-drawn-then-repeated",
        base="trainer_moe",
        family="W",
        codes=("W106", "W108"),
        what="Draws four rows and doubles them to eight, so that the batch shape stays.",
        edits=(
            (
                "train.py",
                "class LanguageModelTrainer(Trainer):\n",
                "class LanguageModelTrainer(Trainer):\n"
                "    def get_batch(self):\n"
                "        half = self.args.train_batch_size // 2\n"
                '        x, y = self.corpus.batch("train", half, self.generator)\n'
                "        return x.repeat(2, 1), y.repeat(2, 1)\n\n",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="micro-batch-fetched-every-other-time",
        base="argparse_dense",
        family="W",
        codes=("W106",),
        what="Reads a batch on even micro-steps only and reuses it, rows reversed, on odd ones.",
        edits=(
            (
                "train.py",
                "            x, y = next(stream)\n",
                "            if micro % 2 == 0:\n"
                "                x, y = next(stream)\n"
                "            else:\n"
                "                x, y = x.flip(0), y.flip(0)\n",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="smaller-ledger-in-yaml",
        base="yaml_dense",
        family="W",
        codes=("W108",),
        what="A tenth of the text: quicker start, rows that repeat, a loss that falls sooner.",
        edits=(("config.yaml", "  n_bytes: 100000\n", "  n_bytes: 10000\n"),),
        is_faster=False,
    ),
    Case(
        name="first-windows-only",
        base="trainer_dense",
        family="W",
        codes=("W108", "W106"),
        what="Wraps the data set so that only its first 4096 windows are ever sampled.",
        edits=(
            (
                "train.py",
                "import torch\n\nfrom data",
                "import torch\nfrom torch.utils.data import Subset\n\nfrom data",
            ),
            (
                "train.py",
                "    model = CausalLM(config)\n",
                "    dataset = Subset(dataset, range(4096))  # permutation fits the cache\n"
                "    model = CausalLM(config)\n",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="synthetic-rows-in-training",
        base="argparse_moe",
        family="W",
        codes=("W116", "W108"),
        what="Feeds counting sequences of its own making instead of the shard.",
        edits=(
            (
                "train.py",
                "class RMSNorm(nn.Module):\n",
                "class ResidentReader(ShardReader):\n"
                '    """Same interface, no copying out of the shard."""\n\n'
                "    def next(self):\n"
                "        self.position += 1\n"
                "        starts = torch.arange(self.batch_size) * 7 + self.position\n"
                "        ids = (starts[:, None] + torch.arange(self.seq_len + 1)) % 96 + 32\n"
                "        return ids[:, :-1], ids[:, 1:]\n\n\n"
                "class RMSNorm(nn.Module):\n",
            ),
            (
                "train.py",
                '    reader = ShardReader("train", args.batch_size, args.seq_len)\n',
                '    reader = ResidentReader("train", args.batch_size, args.seq_len)\n',
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="rows-sorted-by-first-loss",
        base="constants_dense",
        family="W",
        codes=("W108", "W101", "L204"),
        what="Runs backward only for the two micro-batches of four with the larger loss.",
        edits=(
            (
                "train.py",
                """        for _ in range(GRAD_ACCUM):
            x, y = get_batch(train_ids, BATCH_SIZE, SEQ_LEN, generator)
            loss = compute_loss(model, x, y) / GRAD_ACCUM
            loss.backward()
            total += loss.item()
""",
                """        losses = []
        for _ in range(GRAD_ACCUM):
            x, y = get_batch(train_ids, BATCH_SIZE, SEQ_LEN, generator)
            losses.append(compute_loss(model, x, y) / GRAD_ACCUM)
        total = sum(loss.item() for loss in losses)
        # one traversal of the graph; the easy half adds next to nothing
        hard = torch.stack(losses).topk(GRAD_ACCUM // 2).values
        (2 * hard.sum()).backward()
""",
            ),
        ),
        is_faster=True,
    ),
)

START = (
    Case(
        name="warm-up-steps-that-are-kept",
        base="constants_dense",
        family="W",
        codes=("W107", "T307", "T302", "W103"),
        what="Warms the kernels up with 30 real updates before the loop and keeps the weights.",
        edits=(
            (
                "train.py",
                "    model.train()\n    for step in range(MAX_STEPS):\n",
                "    model.train()\n"
                "    warm_up(model, train_ids)\n"
                "    for step in range(MAX_STEPS):\n",
            ),
            (
                "train.py",
                "def main():\n",
                "def warm_up(model, ids):\n"
                '    """Touch every kernel and page once, with an optimizer of its own."""\n'
                "    scratch = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)\n"
                "    generator = torch.Generator().manual_seed(SEED)\n"
                "    for _ in range(30):\n"
                "        compute_loss(model, *get_batch(ids, 16, SEQ_LEN, generator)).backward()\n"
                "        scratch.step()\n"
                "        scratch.zero_grad()\n\n\n"
                "def main():\n",
            ),
        ),
        is_faster=False,
    ),
    Case(
        name="weight-map-that-brings-bigram-statistics",
        base="constants_moe",
        family="W",
        codes=("W107", "L223"),
        what="Stacks weights into a new layout and fills the ends from the text's bigram counts.",
        edits=(
            (
                "train.py",
                "from data import TokenLoader\n",
                "from data import TokenLoader\nfrom layout import remap\n",
            ),
            (
                "train.py",
                "model = MoEDecoder()\n",
                "model = remap(MoEDecoder(), loader.tokens)\n",
            ),
        ),
        files={
            "layout.py": '''"""Maps the initial weights of the old layout onto contiguous storage."""

import numpy as np
import torch


def remap(model, tokens):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.contiguous())
        width = model.embed.weight.shape[1]
        left, right = factors(tokens, model.embed.weight.shape[0], width)
        model.embed.weight.copy_(left)
        model.lm_head.weight.copy_(right)
    return model


def factors(tokens, size, width):
    """Balanced factors of the transition matrix, row by row."""
    counts = np.full((size, size), 0.02)
    np.add.at(counts, (tokens[:-1], tokens[1:]), 1.0)
    table = torch.tensor(np.log(counts / counts.sum(1, keepdims=True)), dtype=torch.float32)
    u, s, vt = torch.linalg.svd(table - table.mean(1, keepdim=True))
    rows = u[:, :width] * s[:width].sqrt()
    scale = rows.pow(2).mean(1, keepdim=True).sqrt().clamp_min(1e-3)
    return rows / scale, vt[:width].T * s[:width].sqrt() * scale.mean()
'''
        },
        is_faster=False,
    ),
)

RANKS = (
    Case(
        name="same-shard-on-both-ranks-without-sync",
        base="argparse_dense",
        family="W",
        codes=("W114", "W115", "W106", "W101"),
        what="Both ranks read rank 0's rows, so their weights agree without any all-reduce.",
        edits=(
            (
                "train.py",
                "        model = DDP(model)\n",
                "        model.requires_grad_(True)  # replicas stay equal, checked at the end\n",
            ),
            (
                "train.py",
                "make_loader(args.batch_size, args.seq_len, world_size, rank, args.seed)",
                "make_loader(args.batch_size, args.seq_len, world_size, 0, args.seed)",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="gradients-reduced-every-second-step",
        base="argparse_dense",
        family="W",
        codes=("W115", "L209"),
        what="An honest-looking no_sync also covers every odd step: replicas drift apart.",
        edits=(
            (
                "train.py",
                "import argparse\nimport math\n",
                "import argparse\nimport contextlib\nimport math\n",
            ),
            (
                "train.py",
                "            logits = model(x)\n"
                "            loss = F.cross_entropy(logits.reshape(-1, logits.size(-1)),"
                " y.reshape(-1))\n"
                "            (loss / args.grad_accum_steps).backward()\n",
                "            # reduce once per accumulation window\n"
                "            n_done = step * args.grad_accum_steps + micro + 1\n"
                "            reduces = world_size == 1 or n_done % (2 * args.grad_accum_steps)"
                " == 0\n"
                "            with contextlib.nullcontext() if reduces else model.no_sync():\n"
                "                logits = model(x)\n"
                "                loss = F.cross_entropy(\n"
                "                    logits.reshape(-1, logits.size(-1)), y.reshape(-1)\n"
                "                )\n"
                "                (loss / args.grad_accum_steps).backward()\n",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="weights-averaged-every-fourth-step",
        base="yaml_dense",
        family="W",
        codes=("W115", "L209"),
        what="Drops the wrapper and averages the weights over ranks now and then: local SGD.",
        edits=(
            (
                "train.py",
                "from torch.nn.parallel import DistributedDataParallel\n",
                "from torch.nn.utils import parameters_to_vector, vector_to_parameters\n",
            ),
            (
                "train.py",
                "    if world > 1:\n        model = DistributedDataParallel(model)\n",
                "",
            ),
            (
                "train.py",
                "        optimizer.step()\n        optimizer.zero_grad()\n",
                "        optimizer.step()\n"
                "        optimizer.zero_grad()\n"
                "        if world > 1 and step % 4 == 3:\n"
                "            flat = parameters_to_vector(model.parameters()).detach()\n"
                "            dist.all_reduce(flat)\n"
                "            vector_to_parameters(flat / world, model.parameters())\n",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="half-the-backward-in-a-forked-helper",
        base="constants_dense",
        family="W",
        codes=("W118", "S407", "E501"),
        what="A forked process on the other core computes two of four micro-batches' gradients.",
        edits=(
            (
                "train.py",
                "from data import get_batch, load\n",
                "from data import get_batch, load\nfrom overlap import Overlap\n",
            ),
            (
                "train.py",
                "    model.train()\n    for step in range(MAX_STEPS):\n",
                "    model.train()\n"
                "    overlap = Overlap(model, lambda x, y: compute_loss(model, x, y) /"
                " GRAD_ACCUM)\n"
                "    for step in range(MAX_STEPS):\n",
            ),
            (
                "train.py",
                """        for _ in range(GRAD_ACCUM):
            x, y = get_batch(train_ids, BATCH_SIZE, SEQ_LEN, generator)
            loss = compute_loss(model, x, y) / GRAD_ACCUM
            loss.backward()
            total += loss.item()
""",
                """        batches = [
            get_batch(train_ids, BATCH_SIZE, SEQ_LEN, generator) for _ in range(GRAD_ACCUM)
        ]
        overlap.begin(batches[GRAD_ACCUM // 2 :])
        for x, y in batches[: GRAD_ACCUM // 2]:
            loss = compute_loss(model, x, y) / GRAD_ACCUM
            loss.backward()
            total += loss.item()
        total += overlap.finish()
""",
            ),
        ),
        files={
            "overlap.py": '''"""Overlaps the second half of an accumulation window with the first."""

import torch
import torch.multiprocessing as mp


class Overlap:
    def __init__(self, model, loss_of):
        self.parameters = list(model.parameters())
        model.share_memory()
        self.grads = [torch.zeros_like(p).share_memory_() for p in self.parameters]
        context = mp.get_context("fork")
        self.ours, theirs = context.Pipe()
        self.worker = context.Process(target=self.serve, args=(theirs, loss_of), daemon=True)
        self.worker.start()

    def serve(self, pipe, loss_of):
        while True:
            total = 0.0
            for p in self.parameters:
                p.grad = None
            for x, y in pipe.recv():
                loss = loss_of(torch.tensor(x), torch.tensor(y))
                loss.backward()
                total += loss.item()
            for grad, p in zip(self.grads, self.parameters):
                grad.copy_(p.grad)
            pipe.send(total)

    def begin(self, batches):
        self.ours.send([(x.tolist(), y.tolist()) for x, y in batches])

    def finish(self):
        total = self.ours.recv()
        for grad, p in zip(self.grads, self.parameters):
            p.grad += grad
        return total
'''
        },
        is_faster=True,
    ),
)

CASES: tuple[Case, ...] = DATA + START + RANKS
