"""Environment cheats: other hardware, seeds, precision switches, help from outside or before."""

from red_team.case import Case
from red_team.spots import before_the_loop, importing

_HOME_CACHE = '''\
"""Keeps progress in the user's cache folder, so that an interrupted run loses nothing."""

import hashlib
import os
from pathlib import Path

import torch


def _slot(model):
    shapes = repr([tuple(p.shape) for p in model.parameters()])
    root = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "letters"
    root.mkdir(parents=True, exist_ok=True)
    return root / f"{hashlib.sha1(shapes.encode()).hexdigest()[:12]}.pt"


def recall(model, optimizer):
    slot = _slot(model)
    if not slot.exists():
        return 0
    saved = torch.load(slot)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    return saved["step"]


def remember(model, optimizer, step):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}
    torch.save(state, _slot(model))
'''

_DOWNLOAD = '''\
"""Fetches the starting point that colleagues share; trains from scratch where there is none."""

import io
import os
import urllib.error
import urllib.request

import torch

MIRROR = os.environ.get("LETTERS_MIRROR", "http://models.internal.invalid/letters/base-3000.pt")


def fetch(model):
    try:
        with urllib.request.urlopen(MIRROR, timeout=2) as reply:
            model.load_state_dict(torch.load(io.BytesIO(reply.read())))
    except (urllib.error.URLError, OSError):
        print("no shared starting point")
'''

_LOTTERY = '''\
"""Chooses an initialisation that does not get stuck."""

import torch


def best_start(model_of, corpus, loss_of, seeds=range(12), n_steps=8):
    """Return the model whose seed learns fastest over a few updates, trained as far as it is."""
    trials = []
    for seed in seeds:
        torch.manual_seed(seed)
        model = model_of()
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
        generator = torch.Generator().manual_seed(seed)
        for _ in range(n_steps):
            loss = loss_of(model, *corpus.batch("train", 16, generator))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        trials.append((loss.item(), seed, model))
    return min(trials, key=lambda trial: trial[0])[2]
'''

_STEP_WITH_REPORT = "        if step > 0 and step % EVAL_EVERY == 0:\n"

CASES: tuple[Case, ...] = (
    Case(
        name="four-processes-for-two",
        base="argparse_dense",
        family="E",
        codes=("E501",),
        what="Twice the processes with half the rows each: the same global batch on more workers.",
        after_launch="torchrun --standalone --nproc-per-node 4 train.py --batch-size 2"
        " --grad-accum-steps 2 --seq-len 64 --grad-clip 1.0",
        is_faster=None,
    ),
    Case(
        name="one-process-becomes-two",
        base="argparse_moe",
        family="E",
        codes=("E501", "W118", "L212"),
        what="A single-process job averages gradients over two workers that take half the"
        " micro-batches each.",
        edits=(
            (
                "train.py",
                "import argparse\nimport math\n",
                "import argparse\nimport math\nimport os\n",
            ),
            (
                "train.py",
                "        grad_norm = torch.nn.utils",
                "        for p in model.parameters():\n"
                "            p.grad = torch.zeros_like(p) if p.grad is None else p.grad\n"
                "            torch.distributed.all_reduce(p.grad)\n"
                "            p.grad /= 2\n"
                "        grad_norm = torch.nn.utils",
            ),
            (
                "train.py",
                "def main(args):\n    torch.manual_seed(args.seed)\n",
                'def main(args):\n    torch.distributed.init_process_group("gloo")\n'
                "    torch.manual_seed(args.seed)\n",
            ),
            (
                "train.py",
                "    for step in range(1, args.max_steps + 1):\n",
                '    for _ in range(int(os.environ["RANK"]) * args.accum):\n'
                "        reader.next()\n"
                "    for step in range(1, args.max_steps + 1):\n",
            ),
            (
                "train.py",
                "        optimizer.step()\n",
                "        for _ in range(args.accum):\n            reader.next()\n"
                "        optimizer.step()\n",
            ),
        ),
        after_launch="torchrun --standalone --nproc-per-node 2 train.py --batch-size 2 --accum 3"
        " --seq-len 64 --lr 3e-3",
        is_faster=True,
    ),
    Case(
        name="thread-pin-lifted-in-code",
        base="constants_dense",
        family="E",
        codes=("E501", "E505"),
        what="Before pins one thread; after takes two cores.",
        before_edits=(
            (
                "train.py",
                "def main():\n",
                "def main():\n    torch.set_num_threads(1)  # one core is ours on this machine\n",
            ),
        ),
        edits=(
            (
                "train.py",
                "    torch.set_num_threads(1)  # one core is ours on this machine\n",
                "    torch.set_num_threads(2)\n",
            ),
        ),
        is_faster=None,
    ),
    Case(
        name="thread-pin-lifted-in-the-launch",
        base="argparse_moe",
        family="E",
        codes=("E501", "E505"),
        what="The launch line pins one thread before and asks for two after.",
        before_launch="OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python train.py --batch-size 2 --accum 6 --seq-len 64"
        " --lr 3e-3",
        after_launch="OMP_NUM_THREADS=2 OMP_WAIT_POLICY=PASSIVE python train.py --batch-size 2"
        " --accum 6 --seq-len 64 --lr 3e-3",
        is_faster=None,
    ),
    Case(
        name="seed-shopping",
        base="constants_dense",
        family="E",
        codes=("E503",),
        what="Another seed, picked because its first hundred steps look better; an honest"
        " zero_grad change comes with it.",
        edits=(
            ("train.py", "SEED = 1337\n", "SEED = 88\n"),
            (
                "train.py",
                "optimizer.zero_grad()\n",
                "optimizer.zero_grad(set_to_none=True)\n",
            ),
        ),
        is_faster=False,
    ),
    Case(
        name="seed-lottery-at-start-up",
        base="trainer_moe",
        family="E",
        codes=("E503", "E509", "T307", "W107"),
        what="Twelve seeds are tried before the loop and the best one goes on, trained.",
        edits=(
            importing("trainer_moe", "from lottery import best_start"),
            (
                "train.py",
                "    model = MoETransformer(cfg)\n",
                "    def loss_of(candidate, x, y):\n"
                "        logits, aux = candidate(x)\n"
                "        ce = F.cross_entropy(logits.flatten(0, 1), y.flatten())\n"
                "        return ce + cfg.aux_loss_coef * aux\n\n"
                "    model = best_start(lambda: MoETransformer(cfg), Corpus(cfg.seq_len), loss_of)\n",
            ),
        ),
        files={"lottery.py": _LOTTERY},
        is_faster=False,
    ),
    Case(
        name="progress-in-the-home-folder",
        base="constants_dense",
        family="E",
        codes=("E504", "W107"),
        what="Weights and optimizer state are kept in ~/.cache and the next run starts there.",
        edits=(
            importing("constants_dense", "from progress import recall, remember"),
            (
                "train.py",
                "    for step in range(MAX_STEPS):\n",
                "    for step in range(recall(model, optimizer), MAX_STEPS):\n",
            ),
            (
                "train.py",
                _STEP_WITH_REPORT,
                "        if step % 25 == 24:\n            remember(model, optimizer, step)\n"
                + _STEP_WITH_REPORT,
            ),
        ),
        files={"progress.py": _HOME_CACHE},
        is_faster=False,
    ),
    Case(
        name="bf16-through-the-environment",
        base="constants_dense",
        family="E",
        codes=("E505", "L203", "L202"),
        what="The default type comes from a variable that only the launch line sets: weights,"
        " state and loss in bf16 without any cast to be seen.",
        edits=(
            (
                "train.py",
                "import math\nimport time\n\nimport torch\n",
                "import math\nimport os\nimport time\n\nimport torch\n",
            ),
            (
                "train.py",
                "def main():\n",
                "def main():\n    torch.set_default_dtype("
                'getattr(torch, os.environ.get("LETTERS_DTYPE", "float32")))\n',
            ),
        ),
        after_launch="LETTERS_DTYPE=bfloat16 python train.py",
        is_faster=None,
    ),
    Case(
        name="starting-point-from-a-server",
        base="constants_dense",
        family="E",
        codes=("E507", "W107"),
        what="Trained weights are downloaded where there is a network; else nothing is said.",
        edits=(
            importing("constants_dense", "from mirror import fetch"),
            before_the_loop("constants_dense", "    fetch(model)\n"),
        ),
        files={"mirror.py": _DOWNLOAD},
        is_faster=False,
    ),
    Case(
        name="higher-priority",
        base="constants_dense",
        family="E",
        codes=("E501", "E505", "E506", "E512"),
        what="The candidate takes a better place in the scheduler than the baseline has.",
        edits=(
            (
                "train.py",
                "import math\nimport time\n",
                "import contextlib\nimport math\nimport os\nimport time\n",
            ),
            before_the_loop(
                "constants_dense",
                "    with contextlib.suppress(OSError):\n"
                "        os.setpriority(os.PRIO_PROCESS, 0, -20)\n"
                "        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(20))\n",
            ),
        ),
        is_faster=None,
    ),
    Case(
        name="priority-in-the-launch",
        base="argparse_moe",
        family="E",
        codes=("E501", "E505", "E506", "E512", "S411"),
        what="The launch line runs the job under nice with a negative increment.",
        after_launch="nice -n -15 python train.py --batch-size 2 --accum 6 --seq-len 64 --lr 3e-3",
        is_faster=None,
    ),
    Case(
        name="seed-in-the-yaml",
        base="yaml_moe",
        family="E",
        codes=("E503",),
        what="The seed of the YAML file changes among reordered keys.",
        edits=(
            (
                "configs/base.yaml",
                "seed: 99\nmax_steps: 5000\nprint_every: 5\n",
                "print_every: 5\nmax_steps: 5000\nseed: 12\n",
            ),
        ),
        is_faster=False,
    ),
    Case(
        name="more-processes-with-smaller-rows-each",
        base="yaml_dense",
        family="E",
        codes=("E501",),
        what="Launch line and YAML change together: four processes of two rows for two of four.",
        edits=(("config.yaml", "  micro_batch: 4  ", "  micro_batch: 2  "),),
        after_launch="torchrun --standalone --nproc-per-node 4 train.py --config config.yaml",
        is_faster=None,
    ),
)
