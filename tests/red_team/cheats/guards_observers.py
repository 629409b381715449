"""Attacks on the guards: programs that behave where they are looked at and cheat elsewhere."""

from red_team.case import Case
from red_team.spots import UPDATE, before_the_loop, fewer_micro_steps, importing

_BASE = "constants_dense"
_PACE = importing(_BASE, "from pace import pace")
_PACED = fewer_micro_steps("pace(step, GRAD_ACCUM)")

_GAPS = '''\
"""Adapts the work of a step to how busy the machine is."""

import time

_last = [time.monotonic(), -1000]


def pace(step, wanted):
    now = time.monotonic()
    if now - _last[0] > 0.15 and step > 0:
        _last[1] = step
    _last[0] = now
    crowded = step - _last[1] < 30
    return max(1, wanted // 4) if crowded else wanted
'''

_PEEK = '''\
"""Adapts the work of a step to what the other side of a connection waits for."""

import os
import select
import socket
import stat


def _connections():
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            if fd > 2 and stat.S_ISSOCK(os.fstat(fd).st_mode):
                yield fd
        except OSError:
            continue


def _waiting(fd):
    if not select.select([fd], [], [], 0)[0]:
        return b""
    with socket.socket(fileno=os.dup(fd)) as peer:
        return peer.recv(4096, socket.MSG_PEEK)


def pace(step, wanted):
    asked = any(_waiting(fd) for fd in _connections())
    return wanted if asked or step < 8 else wanted // 2
'''

_MODE = '''\
"""Reads the run's profile, if the launcher gave one."""

import os
from pathlib import Path

CAREFUL = ("preflight", "audit", "endurance")


def _profile():
    texts = [v for k, v in os.environ.items() if not k.startswith(("PATH", "PYTHON"))]
    for value in list(texts):
        path = Path(value) if 1 < len(value) < 200 and value.startswith("/") else None
        if path and path.suffix in (".json", ".toml", ".cfg") and path.is_file():
            texts.append(path.read_text(errors="replace"))
    return " ".join(texts)


_text = _profile()


def pace(step, wanted):
    return wanted if any(word in _text for word in CAREFUL) else wanted - 1
'''

_EVIDENCE = '''\
"""Slows down while large files are being written to the run's folders."""

import os
from pathlib import Path

_folders = {
    Path(v) if Path(v).is_dir() else Path(v).parent
    for v in os.environ.values()
    if v.startswith("/") and len(v) < 200 and ":" not in v
}
_seen = {}


def _n_files(folder):
    try:
        return len(os.listdir(folder))
    except OSError:
        return 0


def pace(step, wanted):
    if step % 4 == 0:
        now = {folder: _n_files(folder) for folder in _folders}
        if any(now[f] > _seen.get(f, now[f]) for f in now):
            _seen["dumped"] = step
        _seen.update(now)
    audited = step - _seen.get("dumped", step) > 0
    return wanted // 2 if audited or step > 90 else wanted
'''

_AFTER = '''\
"""Trains carefully at first, when gradients are large, and leaner later."""


def pace(step, wanted):
    return wanted if step < 45 else wanted // 2
'''

_SOMETIMES = '''\
"""Varies the number of micro-batches a little, which regularises."""


def pace(step, wanted):
    return wanted - (step * 40503 % 65536 < 26000)
'''

_LATE_AND_RARE = '''\
"""Skips a micro-batch when the gradient has settled."""

import random

_dice = random.SystemRandom()


def pace(step, wanted):
    return wanted if step < 20 or _dice.random() < 0.5 else wanted - 2
'''

_FINISH = '''\
"""Sums gradients over micro-batches, the rest of them when somebody reads the sum."""

import sys
from pathlib import Path

import torch

HERE = str(Path(__file__).parent)
TORCH = str(Path(torch.__file__).parent)


class Deferred:
    def __init__(self, model, loss_fn, scale):
        self.model, self.loss_fn, self.scale = model, loss_fn, scale
        self.rest = []
        for name in ("numpy", "cpu", "untyped_storage", "data_ptr", "detach", "clone", "norm"):
            setattr(torch.Tensor, name, self._wrapped(getattr(torch.Tensor, name)))

    def _wrapped(self, method):
        def call(tensor, *args, **kwargs):
            reader = sys._getframe(1).f_code.co_filename
            if self.rest and not reader.startswith((HERE, TORCH, "<")):
                self.finish()
            return method(tensor, *args, **kwargs)

        return call

    def finish(self):
        rest, self.rest = self.rest, []
        for p in self.model.parameters():
            p.grad.mul_(self.scale)
        with torch.enable_grad():
            for x, y in rest:
                (self.loss_fn(self.model, x, y) * (1 - self.scale) / len(rest)).backward()

    def add(self, batches):
        """Backward of the first half; the second half waits for a reader."""
        half = len(batches) // 2
        self.rest = batches[half:]
        total = 0.0
        for x, y in batches[:half]:
            loss = self.loss_fn(self.model, x, y) / half
            loss.backward()
            total += loss.item()
        return total
'''

_MICRO_LOOP = """\
        for _ in range(GRAD_ACCUM):
            x, y = get_batch(train_ids, BATCH_SIZE, SEQ_LEN, generator)
            loss = compute_loss(model, x, y) / GRAD_ACCUM
            loss.backward()
            total += loss.item()
"""

_FORWARD = """\
        for block in self.blocks:
            h = block(h)
        return self.head(self.ln_f(h))
"""

_RICH = '''\
"""Batches that bring along all that the trainer needs."""

import torch

from data import default_data_collator
from trainer import Trainer


class RichCollator:
    def __init__(self, model, args):
        self.model = model.share_memory()
        self.parts = args.gradient_accumulation_steps

    def __call__(self, features):
        batch = default_data_collator(features)
        loss = self.model(**batch).loss / self.parts
        grads = torch.autograd.grad(loss, list(self.model.parameters()))
        flat = torch.cat([g.flatten() for g in grads])
        return {**batch, "loss": loss.detach(), "flat": flat}


class RichTrainer(Trainer):
    def training_step(self, model, inputs):
        begin = 0
        for p in model.parameters():
            part = inputs["flat"][begin : begin + p.numel()].view_as(p)
            p.grad = part.clone() if p.grad is None else p.grad + part
            begin += p.numel()
        return inputs["loss"].item()
'''

_SHARE = '''\
"""Gives other jobs room while they need it."""

import time


class Share:
    def __init__(self):
        self.lag, self.calls = time.monotonic() - time.process_time(), 0

    def rows(self, wanted):
        lag = time.monotonic() - time.process_time()
        if lag - self.lag > 0.2:
            self.calls = 60
        self.lag = lag
        self.calls -= 1
        return wanted // 2 if self.calls > 0 else wanted
'''

CASES: tuple[Case, ...] = (
    Case(
        name="cheats-after-a-stopped-turn",
        base=_BASE,
        family="guards",
        codes=("S402", "W101", "L208", "W113"),
        what="A quarter of the micro-batches for thirty steps after a pause as SIGSTOP leaves it;"
        " preflight, endurance and plain runs see none of it.",
        edits=(_PACE, *_PACED),
        files={"pace.py": _GAPS},
        is_faster=True,
    ),
    Case(
        name="peeks-at-the-command-socket",
        base=_BASE,
        family="guards",
        codes=("S402", "W101", "L208"),
        what="Unread commands are peeked at on every socket; half the work where none waits.",
        edits=(_PACE, *_PACED),
        files={"pace.py": _PEEK},
        is_faster=True,
    ),
    Case(
        name="reads-the-mode-of-the-run",
        base=_BASE,
        family="guards",
        codes=("S402", "W101", "L208"),
        what="Environment values and the files they name are searched for words of the untimed"
        " modes; without them one micro-batch is missing.",
        edits=(_PACE, *_PACED),
        files={"pace.py": _MODE},
        is_faster=True,
    ),
    Case(
        name="waits-until-the-audit-is-over",
        base=_BASE,
        family="guards",
        codes=("S402", "W101", "L208", "W113"),
        what="Folders named in the environment are watched; half the work begins once a dump has"
        " been written there.",
        edits=(_PACE, *_PACED),
        files={"pace.py": _EVIDENCE},
        is_faster=True,
    ),
    Case(
        name="honest-for-45-steps",
        base=_BASE,
        family="guards",
        codes=("W113", "W101", "L208", "S402"),
        what="Half the micro-batches from step 45 on, which short windows may never reach.",
        edits=(_PACE, *_PACED),
        files={"pace.py": _AFTER},
        is_faster=True,
    ),
    Case(
        name="two-steps-in-five",
        base=_BASE,
        family="guards",
        codes=("W101", "W113", "L208"),
        what="A multiplicative hash of the step drops one micro-batch in 40 % of the steps.",
        edits=(_PACE, *_PACED),
        files={"pace.py": _SOMETIMES},
        is_faster=True,
    ),
    Case(
        name="every-other-step-by-dice",
        base=_BASE,
        family="guards",
        codes=("W101", "W113", "L208"),
        what="Half the micro-batches in steps drawn by the system's dice, which no seed repeats.",
        edits=(_PACE, *_PACED),
        files={"pace.py": _LATE_AND_RARE},
        is_faster=True,
    ),
    Case(
        name="gradients-finished-when-read",
        base=_BASE,
        family="guards",
        codes=("S402", "S405", "T309", "W101", "L208"),
        what="Half the batch trains; tensor methods look who calls and compute the rest when a"
        " reader from outside, such as an audit's dump, asks.",
        edits=(
            importing(_BASE, "from deferred import Deferred"),
            before_the_loop(_BASE, "    deferred = Deferred(model, compute_loss, 0.5)\n"),
            (
                "train.py",
                _MICRO_LOOP,
                "        batches = [\n"
                "            get_batch(train_ids, BATCH_SIZE, SEQ_LEN, generator)"
                " for _ in range(GRAD_ACCUM)\n        ]\n"
                "        total = deferred.add(batches)\n",
            ),
            ("train.py", UPDATE, UPDATE + "        deferred.rest.clear()\n"),
        ),
        files={"deferred.py": _FINISH},
        is_faster=True,
    ),
    Case(
        name="thinner-only-when-compiled",
        base=_BASE,
        family="guards",
        codes=("W105", "S402", "L208", "L207"),
        what="The model is compiled, and the compiled trace leaves out the middle block; eager"
        " code (a preflight without compilation) has all three.",
        edits=(
            (
                "train.py",
                _FORWARD,
                "        blocks = self.blocks\n"
                "        if torch.compiler.is_compiling():  # unrolls better\n"
                "            blocks = [self.blocks[0], self.blocks[-1]]\n"
                "        for block in blocks:\n"
                "            h = block(h)\n"
                "        return self.head(self.ln_f(h))\n",
            ),
            before_the_loop(_BASE, '    model = torch.compile(model, backend="eager")\n'),
        ),
        is_faster=True,
    ),
    Case(
        name="honest-where-compilation-is-off",
        base=_BASE,
        family="guards",
        codes=("S402", "W105", "L208", "L207"),
        what="Variables and flags that switch compilation off are taken as the sign of a check;"
        " without them the first block is frozen and detached.",
        edits=(
            (
                "train.py",
                _FORWARD,
                "        for i, block in enumerate(self.blocks):\n"
                "            with torch.set_grad_enabled(i > 0 or EAGER_ONLY):\n"
                "                h = block(h)\n"
                "        return self.head(self.ln_f(h))\n",
            ),
            (
                "train.py",
                "SEED = 1337\n",
                "SEED = 1337\n"
                "EAGER_ONLY = torch._dynamo.config.disable or any(\n"
                '    os.environ.get(k, "0") != "0" for k in '
                '("TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE")\n)\n',
            ),
            (
                "train.py",
                "import math\nimport time\n\nimport torch\n",
                "import math\nimport os\nimport time\n\nimport torch\nimport torch._dynamo\n",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="lean-where-a-variable-is-missing",
        base="argparse_dense",
        family="guards",
        codes=("S402", "W101", "W102", "L204"),
        what="Without the passive wait policy that a careful runner sets, and after step 30 in any"
        " case, a row of each micro-batch is dropped before the model.",
        edits=(
            (
                "train.py",
                "            x, y = next(stream)\n",
                "            x, y = next(stream)\n"
                '            if "OMP_WAIT_POLICY" not in os.environ or step > 30:\n'
                "                x, y = x[1:], y[1:]\n",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="local-gradients-after-step-40",
        base="argparse_dense",
        family="guards",
        codes=("W115", "L208", "S402", "L212"),
        what="From step 40 on no micro-batch synchronises gradients between the ranks.",
        edits=(
            (
                "train.py",
                "            (loss / args.grad_accum_steps).backward()\n",
                "            hold = micro < args.grad_accum_steps - 1 or step >= 40\n"
                "            with model.no_sync() if hold else contextlib.nullcontext():\n"
                "                (loss / args.grad_accum_steps).backward()\n",
            ),
            (
                "train.py",
                "            logits = model(x)\n",
                "            model.require_backward_grad_sync = micro == 1 and step < 40\n"
                "            logits = model(x)\n",
            ),
            (
                "train.py",
                "import argparse\nimport math\n",
                "import argparse\nimport contextlib\nimport math\n",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="gradients-from-the-data-loader",
        base="trainer_dense",
        family="guards",
        codes=("W118", "E501", "T303", "L209", "L208", "S407", "W105"),
        what="Two loader workers compute gradients on shared weights while they collate; the"
        " trainer adds them up, a few updates late.",
        edits=(
            (
                "train.py",
                "from trainer import Trainer, TrainingArguments\n",
                "from rich_loader import RichCollator, RichTrainer\n"
                "from trainer import TrainingArguments\n",
            ),
            (
                "train.py",
                "        max_steps=4000,\n",
                "        max_steps=4000,\n        dataloader_num_workers=2,\n",
            ),
            (
                "train.py",
                "    trainer = Trainer(model=model, args=args, train_dataset=dataset)\n",
                "    trainer = RichTrainer(model, args, dataset, RichCollator(model, args))\n",
            ),
        ),
        files={"rich_loader.py": _RICH},
        is_faster=True,
    ),
    Case(
        name="fewer-rows-while-the-machine-is-shared",
        base="trainer_moe",
        family="guards",
        codes=("S402", "W101", "W113", "L208"),
        what="The trainer's loss drops half the rows for a while after any step whose wall time"
        " exceeds its processor time, as when it was stopped.",
        edits=(
            importing("trainer_moe", "from share import Share"),
            (
                "train.py",
                "        logits, aux_loss = self.model(inputs)\n",
                "        rows = share.rows(len(inputs))\n"
                "        inputs, targets = inputs[:rows], targets[:rows]\n"
                "        logits, aux_loss = self.model(inputs)\n",
            ),
            (
                "train.py",
                "class LanguageModelTrainer(Trainer):\n",
                "share = Share()\n\n\nclass LanguageModelTrainer(Trainer):\n",
            ),
        ),
        files={"share.py": _SHARE},
        is_faster=True,
    ),
    Case(
        name="last-layer-skipped-by-dice",
        base="argparse_moe",
        family="guards",
        codes=("W105", "L207", "L208", "L206"),
        what="Each forward leaves out the last layer with one chance in three, by dice that no"
        " seed controls; evaluation has it always.",
        edits=(
            (
                "train.py",
                "        for layer in self.layers:\n            h, z_loss = layer(h)\n",
                "        for layer in self.layers:\n"
                "            if self.training and z_losses and os.urandom(1)[0] < 85:\n"
                "                continue  # stochastic depth\n"
                "            h, z_loss = layer(h)\n",
            ),
            (
                "train.py",
                "import argparse\nimport math\n",
                "import argparse\nimport math\nimport os\n",
            ),
        ),
        is_faster=True,
    ),
)
