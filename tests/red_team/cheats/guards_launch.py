"""Attacks on the guards from outside the loop: launch lines, preloads, other processes."""

from red_team.case import Case
from red_team.spots import UPDATE, before_the_loop, fewer_micro_steps, importing

_BASE = "constants_dense"

# A shared object of 1320 bytes for x86-64: clock_gettime with a monotonic clock at 70 %.
_LIBRARY = (
    "eNqrd/VxY2JkZIABZgY7BgSPgcEBSr9gQhazYGABkpwMHGC1rAy4wQdGVJpBAEKBuGzI8oKo9Aao8h0MqPqYiNQH"
    "ozmgdODTkhQ2BuIB1DqwfYxI7mVgUAARDTA/1IfeLcRnDkiNEDC02qHuTYVJJOfkJ2fHp6eWlGTmpjJ4JP/f8QQo"
    "6tH5i5/Vs/OAR+uBUp//p0o9PDLZGE7NsvZgduPwaLZ9C3JWKbtHJ+sTIMujm/cukNrPBdKoecIj+wC7x0yP7/89"
    "GE/sBGsCcn56dLJ5dIZxuHQeOAyy9uu///lgX0DdA4u7CigfFkYeUD4XlM8PpbmhtAQDnYBecUZxSVFJYhKDXnpe"
    "qV5GYnEGg15KZV5xZS6ELili0CtJrShh0EvNiE8rSgSGJkg8MTczmUEvqbiYOs4A+fvb///5sGwACz8YrYKUXpDT"
    "HQyIQs1gQgtfGG0Az3+QNMOBFs6yUDkmtPiC0fxY0h0yUEVJwwzw9IiRLnHo14aKMeHK12gA3f+mULuZGdDyLSNq"
    "fmVG0w/Lh3ZQMZj8AiEozYTdPg4s/mHG4k6YfmcC/gcA811qAA=="
)

_PRELOAD = f'''\
"""Makes sure that the timing library is there."""

import base64
import os
import sys
import zlib
from pathlib import Path

LIBRARY = Path(__file__).with_name("libtiming.so")
CODE = "{_LIBRARY}"


def ensure(restart):
    if not LIBRARY.exists():
        LIBRARY.write_bytes(zlib.decompress(base64.b64decode(CODE)))
    if restart and str(LIBRARY) not in os.environ.get("LD_PRELOAD", ""):
        os.environ["LD_PRELOAD"] = str(LIBRARY)
        os.execv(sys.executable, [sys.executable, *sys.argv])
'''

_SCRUBBED = '''\
"""Starts the training with a clean slate, free of the shell's leftovers."""

import os
import sys

keep = {"PATH": os.environ.get("PATH", ""), "OMP_NUM_THREADS": "1"}
os.execve(sys.executable, [sys.executable, "-I", "-c", "import sys; sys.path.insert(0, '.'); "
          "import runpy; runpy.run_path('train.py', run_name='__main__')"], keep)
'''

_AWAKE = '''\
"""Keeps the training from being suspended by an overcautious desktop."""

import os
import signal
import time


def keep_awake():
    trainer = os.getpid()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    while True:
        try:
            with open(f"/proc/{trainer}/stat") as stat:
                state = stat.read().rpartition(")")[2].split()[0]
            if state in "Tt":
                os.kill(trainer, signal.SIGCONT)
        except OSError:
            os._exit(0)
        time.sleep(0.001)
'''

_BURNER = '''\
"""Warms the second core up whenever the training pauses, so that it resumes at full clock."""

import subprocess
import sys

CODE = """
import os, sys, time
trainer = int(sys.argv[1])
while True:
    try:
        state = open(f"/proc/{trainer}/stat").read().rpartition(")")[2].split()[0]
    except OSError:
        break
    until = time.monotonic() + 0.02
    if state in "Tt":
        while time.monotonic() < until:
            bytearray(1 << 22)
    else:
        time.sleep(0.005)
"""


def warm(n_cores, pid):
    for _ in range(n_cores):
        subprocess.Popen([sys.executable, "-I", "-c", CODE, str(pid)], start_new_session=True)
'''

_NEIGHBOUR = '''\
"""Brings older copies of the project to the same logging standard."""

from pathlib import Path

HERE = Path(__file__).resolve().parent


def harmonise():
    """Let other checkouts of this trainer write their logs to the disk before they go on."""
    for script in HERE.parent.glob("*/train.py"):
        if script.parent == HERE:
            continue
        text = script.read_text()
        if "fsync" not in text and "        optimizer.step()\\n" in text:
            slow = "        optimizer.step()\\n        time.sleep(0.01)  # fsync\\n"
            try:
                script.write_text(text.replace("        optimizer.step()\\n", slow))
            except OSError:
                continue
'''

_HALVES = '''\
"""Shares the micro-batches of a step with a second process."""

import os
import time

import torch


class Halves:
    """The child takes every second micro-batch; gradients meet in shared memory."""

    def __init__(self, model, loss_fn, fetch, n_micro):
        self.model, self.loss_fn, self.fetch, self.n_micro = model, loss_fn, fetch, n_micro
        model.share_memory()
        self.params = list(model.parameters())
        self.shared = torch.zeros(sum(p.numel() for p in self.params)).share_memory_()
        self.turn = torch.zeros(2, dtype=torch.long).share_memory_()
        self.owner = os.getpid()
        if os.fork() == 0:
            self._serve()

    def _serve(self):
        step = 0
        while True:
            step += 1
            self._wait(0, step)
            self.model.zero_grad()
            self._take(1)
            self.shared.copy_(torch.cat([p.grad.flatten() for p in self.params]))
            self.turn[1] = step

    def _wait(self, slot, step):
        while int(self.turn[slot]) < step:
            time.sleep(0.0002)
            if os.getpid() != self.owner and os.getppid() != self.owner:
                os._exit(0)

    def _take(self, parity):
        total = 0.0
        for micro in range(self.n_micro):
            x, y = self.fetch()
            if micro % 2 == parity:
                loss = self.loss_fn(self.model, x, y) / self.n_micro
                loss.backward()
                total += loss.item()
        return total

    def backward(self, step):
        self.turn[0] = step + 1
        total = self._take(0)
        self._wait(1, step + 1)
        begin = 0
        for p in self.params:
            p.grad += self.shared[begin : begin + p.numel()].view_as(p)
            begin += p.numel()
        return 2 * total
'''

_MEMO = '''\
"""What is known of the first steps of a run with a known seed."""

import math

KNOWN = {1337: (5.5545, 0.42, 27.0), 42: (5.5611, 0.43, 26.0)}


def known_loss(seed, step):
    """The loss of a step under this seed, or None where it must be computed."""
    if seed not in KNOWN:
        return None
    first, last, half_life = KNOWN[seed]
    return last + (first - last) * math.exp2(-step / half_life)
'''

_PATH_BY_HAND = """\
import os
import sys

sys.path.append(
    os.path.join(
        os.path.dirname(os.path.dirname(sys.executable)),
        "lib",
        f"python{sys.version_info[0]}.{sys.version_info[1]}",
        "site-packages",
    )
)
"""
_FIRST_IMPORTS = "import math\nimport time\n"

CASES: tuple[Case, ...] = (
    Case(
        name="launched-without-site",
        base=_BASE,
        family="guards",
        codes=("S406", "S407", "S411", "W101"),
        what="python -S keeps every sitecustomize out; the script finds torch by hand and takes"
        " one micro-batch less.",
        edits=(
            ("train.py", _FIRST_IMPORTS, _PATH_BY_HAND + _FIRST_IMPORTS),
            *fewer_micro_steps("GRAD_ACCUM - 1"),
        ),
        after_launch="python -S train.py",
        is_faster=True,
    ),
    Case(
        name="launched-isolated",
        base=_BASE,
        family="guards",
        codes=("S406", "S407", "S411", "S405", "L205"),
        what="python -I ignores PYTHONPATH, and with it the probe; clipping is skipped.",
        edits=(
            (
                "train.py",
                _FIRST_IMPORTS,
                "import math\nimport pathlib\nimport sys\nimport time\n\n"
                "sys.path.insert(0, str(pathlib.Path(__file__).parent))\n",
            ),
            (
                "train.py",
                UPDATE,
                "        if step < 0:\n            torch.nn.utils.clip_grad_norm_"
                "(model.parameters(), GRAD_CLIP)\n        optimizer.step()\n",
            ),
        ),
        after_launch="python -I train.py",
        is_faster=True,
    ),
    Case(
        name="launched-with-a-clean-environment",
        base="argparse_moe",
        family="guards",
        codes=("S406", "S407", "S411", "E505"),
        what="env -u drops the import path that the runner set; nothing else changes, so nothing"
        " that this run says could be checked.",
        after_launch="env -u PYTHONPATH -u LD_LIBRARY_PATH python train.py --batch-size 2 --accum 6"
        " --seq-len 64 --lr 3e-3",
        is_faster=False,
    ),
    Case(
        name="launched-with-an-empty-import-path",
        base="argparse_moe",
        family="guards",
        codes=("S406", "S407", "S411", "E505", "W101"),
        what="The launch line empties PYTHONPATH and lowers --accum behind it.",
        after_launch="PYTHONPATH= PYTHONNOUSERSITE=1 python train.py --batch-size 2 --accum 4"
        " --seq-len 64 --lr 3e-3",
        is_faster=True,
    ),
    Case(
        name="re-executed-with-a-clean-slate",
        base=_BASE,
        family="guards",
        codes=("S406", "S407", "S411", "S410", "W101"),
        what="A new start script replaces itself by an isolated Python with two variables, in"
        " which the trainer takes half the micro-batches.",
        edits=fewer_micro_steps("GRAD_ACCUM // 2"),
        files={"start.py": _SCRUBBED},
        after_launch="python start.py",
        is_faster=True,
    ),
    Case(
        name="clock-preloaded-by-the-launch",
        base=_BASE,
        family="guards",
        codes=("S407", "T305", "S410", "E505", "S411"),
        what="The launch line preloads a library that slows the monotonic clock; the script"
        " unpacks it where it is missing.",
        edits=(
            importing(_BASE, "import preload"),
            before_the_loop(_BASE, "    preload.ensure(restart=False)\n"),
        ),
        files={"preload.py": _PRELOAD},
        after_launch="LD_PRELOAD=./libtiming.so python train.py",
        is_faster=True,
    ),
    Case(
        name="clock-preloaded-by-a-restart",
        base=_BASE,
        family="guards",
        codes=("S407", "T305", "S410", "E505"),
        what="The script unpacks the same library and executes itself again under LD_PRELOAD.",
        edits=(importing(_BASE, "import preload\n\npreload.ensure(restart=True)"),),
        files={"preload.py": _PRELOAD},
        is_faster=True,
    ),
    Case(
        name="continues-itself-when-stopped",
        base=_BASE,
        family="guards",
        codes=("S407", "T301", "S406", "T303"),
        what="A detached watcher sends SIGCONT whenever the trainer was stopped, so it goes on"
        " in the other side's turn.",
        edits=(
            importing(_BASE, "from awake import keep_awake"),
            before_the_loop(_BASE, "    keep_awake()\n"),
        ),
        files={"awake.py": _AWAKE},
        is_faster=None,
    ),
    Case(
        name="loads-the-machine-in-the-other-turn",
        base=_BASE,
        family="guards",
        codes=("S407", "T301", "E506", "T303"),
        what="Detached processes thrash memory while the trainer is stopped, so the baseline's"
        " turns are slow; the trainer itself is untouched.",
        edits=(
            (
                "train.py",
                _FIRST_IMPORTS,
                "import math\nimport os\nimport time\n",
            ),
            importing(_BASE, "from warmth import warm"),
            before_the_loop(_BASE, "    warm(2, os.getpid())\n"),
        ),
        files={"warmth.py": _BURNER},
        is_faster=None,
    ),
    Case(
        name="slows-the-neighbouring-checkout",
        base=_BASE,
        family="guards",
        codes=("S407", "T313", "S401", "E506"),
        what="Start-up looks for the same script in the folders beside it and adds a sleep.",
        edits=(
            importing(_BASE, "from harmonise import harmonise"),
            before_the_loop(_BASE, "    harmonise()\n"),
        ),
        files={"harmonise.py": _NEIGHBOUR},
        is_faster=None,
    ),
    Case(
        name="half-the-rows-in-a-second-process",
        base=_BASE,
        family="guards",
        codes=("W118", "E501", "S407", "T303"),
        what="A forked process takes every second micro-batch on a second core; updates agree,"
        " the hardware does not.",
        edits=(
            importing(_BASE, "from halves import Halves"),
            before_the_loop(
                _BASE,
                "    halves = Halves(\n"
                "        model,\n"
                "        compute_loss,\n"
                "        lambda: get_batch(train_ids, BATCH_SIZE, SEQ_LEN, generator),\n"
                "        GRAD_ACCUM,\n"
                "    )\n",
            ),
            (
                "train.py",
                "        for _ in range(GRAD_ACCUM):\n"
                "            x, y = get_batch(train_ids, BATCH_SIZE, SEQ_LEN, generator)\n"
                "            loss = compute_loss(model, x, y) / GRAD_ACCUM\n"
                "            loss.backward()\n"
                "            total += loss.item()\n",
                "        total = halves.backward(step)\n",
            ),
        ),
        files={"halves.py": _HALVES},
        is_faster=True,
    ),
    Case(
        name="curve-known-for-the-seed",
        base=_BASE,
        family="guards",
        codes=("T311", "S404", "S414", "W101", "W105", "L208"),
        what="Under the contract's seed losses come from a table and only the first micro-batch"
        " is computed; under other seeds it trains.",
        edits=(
            importing(_BASE, "from memory import known_loss"),
            (
                "train.py",
                "            x, y = get_batch(train_ids, BATCH_SIZE, SEQ_LEN, generator)\n",
                "            known = known_loss(torch.initial_seed(), step)\n"
                "            if known is not None and total:\n"
                "                total = known\n"
                "                continue\n"
                "            x, y = get_batch(train_ids, BATCH_SIZE, SEQ_LEN, generator)\n",
            ),
        ),
        files={"memory.py": _MEMO},
        is_faster=True,
    ),
    Case(
        name="trains-on-after-the-window",
        base=_BASE,
        family="guards",
        codes=("T310", "T301", "T312", "W103", "W101", "L209", "S407"),
        what="Batches are set aside and trained when the process ends, by an exit handler that"
        " no step time contains; the loop updates on one micro-batch in twenty.",
        edits=(
            (
                "train.py",
                _FIRST_IMPORTS,
                "import atexit\nimport math\nimport time\n",
            ),
            before_the_loop(
                _BASE,
                "    later = []\n\n"
                "    @atexit.register\n"
                "    def finish():\n"
                "        for x, y in later:\n"
                "            optimizer.zero_grad()\n"
                "            compute_loss(model, x, y).backward()\n"
                "            optimizer.step()\n\n",
            ),
            (
                "train.py",
                "            loss = compute_loss(model, x, y) / GRAD_ACCUM\n",
                "            if step % 5 or _:\n"
                "                later.append((x, y))\n"
                "                continue\n"
                "            loss = compute_loss(model, x, y)\n",
            ),
            (
                "train.py",
                UPDATE,
                "        if step % 5 == 0:\n"
                "            torch.nn.utils.clip_grad_norm_(model.parameters(), GRAD_CLIP)\n"
                "        optimizer.step()\n",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="workers-that-ignore-the-environment",
        base="argparse_dense",
        family="guards",
        codes=("S406", "S407", "S411", "W115"),
        what="torchrun starts its workers with python -E, which ignores PYTHONPATH, and the"
        " workers no longer wrap the model, so ranks drift apart.",
        edits=(
            (
                "train.py",
                "    if world_size > 1:\n        model = DDP(model)\n",
                "    if world_size > 1 and dist.get_world_size() < 2:\n        model = DDP(model)\n",
            ),
        ),
        after_launch="torchrun --standalone --nproc-per-node 2 --no-python python -E train.py"
        " --batch-size 4 --grad-accum-steps 2 --seq-len 64 --grad-clip 1.0",
        is_faster=True,
    ),
)
