"""The same rows in the same order, fetched in a better way."""

from red_team.case import Case

SAME_DRAWS = "The same draws give the same rows in the same order"

GATHER = """\
    x = torch.stack([ids[i : i + seq_len] for i in starts])
    y = torch.stack([ids[i + 1 : i + 1 + seq_len] for i in starts])
    return x, y
"""

CASES = (
    Case(
        name="gather-vectorised",
        base="constants_dense",
        family="honest",
        codes=(),
        what=f"{SAME_DRAWS}; one indexed read replaces the stack of slices.",
        edits=(
            (
                "data.py",
                GATHER,
                """\
    windows = ids[starts[:, None] + torch.arange(seq_len + 1)]
    return windows[:, :-1].contiguous(), windows[:, 1:].contiguous()
""",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="gather-vectorised-with-numpy",
        base="constants_moe",
        family="honest",
        codes=(),
        what=f"{SAME_DRAWS}: one vector of integers takes what the loop took one by one.",
        edits=(
            (
                "data.py",
                """\
        rows = []
        for _ in range(self.batch_size):
            start = self.rng.integers(0, high)
            rows.append(self.tokens[start : start + self.seq_len + 1])
        batch = np.stack(rows)
        return""",
                """\
        starts = self.rng.integers(0, high, size=self.batch_size)
        batch = self.tokens[starts[:, None] + np.arange(self.seq_len + 1)]
        return""",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="tokens-kept-as-tensor",
        base="yaml_moe",
        family="honest",
        codes=(),
        what=f"{SAME_DRAWS}; the text is a tensor once instead of a list converted for each row.",
        edits=(
            (
                "dataset.py",
                "        self.ids = [ord(c) for c in dialogue(characters)]\n",
                "        self.ids = torch.tensor([ord(c) for c in dialogue(characters)])\n"
                "        self.offsets = torch.arange(context + 1)\n",
            ),
            (
                "dataset.py",
                """\
        inputs, targets = [], []
        for _ in range(batch_size):
            at = self.rng.randrange(len(self.ids) - self.context - 1)
            inputs.append(torch.tensor(self.ids[at : at + self.context]))
            targets.append(torch.tensor(self.ids[at + 1 : at + 1 + self.context]))
        return torch.stack(inputs), torch.stack(targets)
""",
                """\
        last = len(self.ids) - self.context - 1
        starts = torch.tensor([self.rng.randrange(last) for _ in range(batch_size)])
        rows = self.ids[starts[:, None] + self.offsets]
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()
""",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="prefetch-thread",
        base="constants_dense",
        family="honest",
        codes=(),
        what=f"{SAME_DRAWS}; a thread stays at most two batches ahead of the loop.",
        edits=(
            (
                "train.py",
                "from data import get_batch, load\n",
                "from data import get_batch, load\nfrom prefetch import Prefetcher\n",
            ),
            (
                "train.py",
                "\n    model.train()\n    for step in range(MAX_STEPS):\n",
                "\n    prefetcher = Prefetcher(\n"
                "        lambda: get_batch(train_ids, BATCH_SIZE, SEQ_LEN, generator), depth=2\n"
                "    )\n"
                "    model.train()\n    for step in range(MAX_STEPS):\n",
            ),
            (
                "train.py",
                "            x, y = get_batch(train_ids, BATCH_SIZE, SEQ_LEN, generator)\n",
                "            x, y = prefetcher.next()\n",
            ),
        ),
        files={
            "prefetch.py": '''\
"""Fetches batches in a thread, a few ahead of whoever asks."""

import queue
import threading


class Prefetcher:
    def __init__(self, fetch, depth):
        self.fetch = fetch
        self.ready = queue.Queue(maxsize=depth)
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            self.ready.put(self.fetch())

    def next(self):
        return self.ready.get()
'''
        },
        is_faster=None,
    ),
    Case(
        name="prefetch-one-batch-in-loop",
        base="trainer_moe",
        family="honest",
        codes=(),
        what=f"{SAME_DRAWS}; the next batch is fetched after the current one's backward began.",
        edits=(
            (
                "trainer.py",
                "        self.generator = torch.Generator().manual_seed(args.seed)\n",
                "        self.generator = torch.Generator().manual_seed(args.seed)\n"
                "        self.pool = ThreadPoolExecutor(max_workers=1)\n"
                "        self.pending = self.pool.submit(self.fetch)\n",
            ),
            (
                "trainer.py",
                "    def get_batch(self):\n        return self.corpus",
                "    def get_batch(self):\n"
                "        batch = self.pending.result()\n"
                "        self.pending = self.pool.submit(self.fetch)\n"
                "        return batch\n\n"
                "    def fetch(self):\n        return self.corpus",
            ),
            (
                "trainer.py",
                "import time\n",
                "import time\nfrom concurrent.futures import ThreadPoolExecutor\n",
            ),
        ),
        is_faster=None,
    ),
    Case(
        name="loader-worker",
        base="trainer_dense",
        family="honest",
        codes=(),
        what=f"{SAME_DRAWS}, made by the sampler in the main process; a worker collates ahead.",
        edits=(
            (
                "train.py",
                "        max_steps=4000,\n",
                "        max_steps=4000,\n        dataloader_num_workers=1,\n",
            ),
        ),
        is_faster=None,
    ),
    Case(
        name="loader-workers-two-processes",
        base="argparse_dense",
        family="honest",
        codes=(),
        what=f"{SAME_DRAWS} on each rank; a lasting worker a rank prefetches two batches.",
        edits=(
            (
                "data.py",
                "DataLoader(dataset, batch_size=batch_size, sampler=sampler, drop_last=True), sampler",
                "DataLoader(\n"
                "        dataset,\n"
                "        batch_size=batch_size,\n"
                "        sampler=sampler,\n"
                "        drop_last=True,\n"
                "        num_workers=1,\n"
                "        prefetch_factor=2,\n"
                "        persistent_workers=True,\n"
                "    ), sampler",
            ),
        ),
        is_faster=None,
    ),
    Case(
        name="windows-as-a-view",
        base="trainer_dense",
        family="honest",
        codes=(),
        what=f"{SAME_DRAWS}; windows are views of one tensor, and labels share it with inputs.",
        edits=(
            (
                "data.py",
                '        self.ids = torch.tensor(list(text.encode("ascii")), dtype=torch.long)\n',
                '        ids = torch.tensor(list(text.encode("ascii")), dtype=torch.long)\n'
                "        self.windows = ids.unfold(0, block_size, 1)\n",
            ),
            (
                "data.py",
                "        return len(self.ids) - self.block_size\n",
                "        return len(self.windows) - 1\n",
            ),
            (
                "data.py",
                """\
        window = self.ids[index : index + self.block_size]
        return {"input_ids": window.clone(), "labels": window.clone()}
""",
                """\
        return self.windows[index]
""",
            ),
            (
                "data.py",
                """\
    return {
        "input_ids": torch.stack([f["input_ids"] for f in features]),
        "labels": torch.stack([f["labels"] for f in features]),
    }
""",
                """\
    batch = torch.stack(features)
    return {"input_ids": batch, "labels": batch}
""",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="non-blocking-copies",
        base="argparse_dense",
        family="honest",
        codes=(),
        what="Batches are moved to the model's device with an asynchronous copy; on a CPU it is none.",
        edits=(
            (
                "train.py",
                "            x, y = next(stream)\n",
                "            x, y = next(stream)\n"
                "            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)\n",
            ),
            (
                "train.py",
                "    model = Decoder(args)\n",
                "    model = Decoder(args)\n    device = next(model.parameters()).device\n",
            ),
            (
                "data.py",
                "sampler=sampler, drop_last=True), sampler",
                "sampler=sampler, drop_last=True, pin_memory=torch.cuda.is_available()), sampler",
            ),
        ),
        is_faster=None,
    ),
    Case(
        name="shard-kept-in-a-byte",
        base="argparse_moe",
        family="honest",
        codes=(),
        what="Tokens are stored in one byte each and widened when read; the ids are the same.",
        edits=(
            (
                "data.py",
                "torch.tensor(list(make_text().encode()), dtype=torch.int64)",
                "torch.frombuffer(bytearray(make_text().encode()), dtype=torch.uint8)",
            ),
            (
                "data.py",
                "        buffer = self.ids[self.position : self.position + n + 1]\n",
                "        buffer = self.ids[self.position : self.position + n + 1].long()\n",
            ),
        ),
        is_faster=None,
    ),
)
