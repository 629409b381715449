"""T3xx on three trainers: each breach is marked where it is written, honest changes are not."""

import pytest
from carets import marks_of
from rule_pairs import ONE, TWO, edited, found_in, lock_of
from timed_trainers import AVERAGED, STEPPED, WINDOWS

from infrarsi.contract import Violation
from infrarsi.launch import parse_launch
from infrarsi.reading import MappingSources, follow
from infrarsi.rules import check_change

LAUNCH = {STEPPED: ONE, AVERAGED: ONE, WINDOWS: TWO}
ELAPSED = "        elapsed = time.perf_counter() - started\n"
STEP = "        optimizer.step()\n" + ELAPSED
STARTED = "        started = time.perf_counter()\n"
FETCH = "            x, y = get_batch(ids, generator)\n"
MICRO = f"""\
        for micro in range(ACCUM):
{FETCH}\
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten()) / ACCUM
            loss.backward()
"""


def timing(found: tuple[Violation, ...]) -> list[Violation]:
    return [violation for violation in found if violation.code.startswith("T")]


def of_code(code: str, found: tuple[Violation, ...]) -> list[Violation]:
    return [violation for violation in found if violation.code == code]


BREACHES = {
    "the update runs after the second read": (
        STEPPED,
        "T301",
        "error",
        (
            STEP,
            f"{ELAPSED}        optimizer.step()\n        ^^^^^^^^^^^^^^^^ T301\n",
        ),
    ),
    "the clock starts below the micro-steps": (
        STEPPED,
        "T301",
        "error",
        (STARTED, ""),
        (
            "            loss.backward()\n        nn.utils",
            "            loss.backward()\n            ^^^^^^^^^^^^^^^ T301\n"
            f"{STARTED}        nn.utils",
        ),
        (
            "F.cross_entropy(model(x).flatten(0, 1), y.flatten()) / ACCUM\n",
            "F.cross_entropy(model(x).flatten(0, 1), y.flatten()) / ACCUM\n"
            "                                   ^^^^^^^^ T301\n",
        ),
    ),
    "a step's update moves out of the timed function": (
        AVERAGED,
        "T301",
        "error",
        ("        self.optimizer.step()\n", ""),
        (
            "            if step >= self.args.skipped:\n",
            "            self.optimizer.step()\n            ^^^^^^^^^^^^^^^^^^^^^ T301\n"
            "            if step >= self.args.skipped:\n",
        ),
    ),
    "the window restarts after the update": (
        WINDOWS,
        "T301",
        "error",
        (
            "        optimizer.step()\n        optimizer.zero_grad()\n        if",
            "        toc = time.perf_counter()\n        optimizer.step()\n"
            "        ^^^^^^^^^^^^^^^^ T301\n"
            "        optimizer.zero_grad()\n        ^^^^^^^^^^^^^^^^^^^^^ T301\n        if",
        ),
        ("            toc = time.perf_counter()\n", ""),
        (
            "            tic = time.perf_counter()\n\n\nmain",
            "        tic = time.perf_counter()\n\n\nmain",
        ),
    ),
    "rows are fetched before the clock": (
        STEPPED,
        "T302",
        "error",
        (
            STARTED,
            "        rows = [get_batch(ids, generator) for _ in range(ACCUM)]\n"
            "        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ T302\n" + STARTED,
        ),
        (FETCH, "            x, y = rows[micro]\n"),
    ),
    "the update runs in a thread": (
        STEPPED,
        "T303",
        "error",
        (
            "        optimizer.step()\n",
            "        threading.Thread(target=update, args=(optimizer,)).start()\n"
            "        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ T303\n",
        ),
        ("import time\n", "import threading\nimport time\n"),
        ("def main():\n", "def update(optimizer):\n    optimizer.step()\n\n\ndef main():\n"),
    ),
    "a collective is not waited for": (
        WINDOWS,
        "T303",
        "warning",
        (
            "        optimizer.step()\n",
            "        for p in model.parameters():\n"
            "            dist.all_reduce(p.grad, async_op=True)\n"
            "            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ T303\n"
            "        optimizer.step()\n",
        ),
    ),
    "the least of several steps": (
        STEPPED,
        "T304",
        "error",
        ("    for step in range(STEPS):\n", "    laps = []\n    for step in range(STEPS):\n"),
        (
            ELAPSED,
            "        laps.append(time.perf_counter() - started)\n"
            "        elapsed = min(laps[-10:])\n",
        ),
        (
            'tok/s")\n',
            'tok/s")\n'
            "                            ^^^^^^^^^^^^^ T304\n"
            "                                                   ^^^^ T304\n",
        ),
    ),
    "a low percentile of the steps": (
        AVERAGED,
        "T304",
        "error",
        ("sum(self.times) / len(self.times)", "torch.tensor(self.times).quantile(0.1).item()"),
    ),
    "the median of the steps": (
        AVERAGED,
        "T304",
        "warning",
        ("sum(self.times) / len(self.times)", "statistics.median(self.times)"),
        ("import time\n", "import statistics\nimport time\n"),
    ),
    "the time is the median from then on": (
        STEPPED,
        "T304",
        "warning",
        ("import time\n", "import statistics\nimport time\n"),
        ("    for step in range(STEPS):\n", "    laps = []\n    for step in range(STEPS):\n"),
        (
            ELAPSED,
            f"{ELAPSED}        laps.append(elapsed)\n        elapsed = statistics.median(laps)\n",
        ),
    ),
    "the clock starts anew in every micro-step": (
        STEPPED,
        "T301",
        "error",
        (STARTED, ""),
        (FETCH, f"    {STARTED}                      ^^^^^^^^^^^^^^^^^^^ T301\n{FETCH}"),
    ),
    "a function slows the clock": (
        STEPPED,
        "T305",
        "error",
        (STARTED, "        started = tick()\n"),
        (ELAPSED, "        elapsed = tick() - started\n"),
        (
            "def main():\n",
            "def tick():\n    return time.perf_counter() * 0.8\n"
            "           ^^^^^^^^^^^^^^^^^^^^^^^^^ T305\n\n\ndef main():\n",
        ),
    ),
    "the rate is scaled": (STEPPED, "T306", "error", ("{rate:.0f}", "{rate * 1.3:.0f}")),
    "a stopwatch stops over the update": (
        STEPPED,
        "T301",
        "error",
        (
            "def main():\n",
            "class Watch:\n    def __init__(self):\n        self.total = 0.0\n        self.go()\n\n"
            "    def go(self):\n        self.since = time.perf_counter()\n\n"
            "    def stop(self):\n        self.total += time.perf_counter() - self.since\n\n\n"
            "def main():\n",
        ),
        (STARTED, "        watch = Watch()\n"),
        (
            STEP,
            "        watch.stop()\n        optimizer.step()\n        ^^^^^^^^^^^^^^^^ T301\n"
            "        watch.go()\n        watch.stop()\n        elapsed = watch.total\n",
        ),
    ),
    "weights are changed by hand before the loop": (
        STEPPED,
        "T307",
        "warning",
        (
            "    for step in range(STEPS):\n",
            "    for _ in range(100):\n"
            "        x, y = get_batch(ids, generator)\n"
            "        F.cross_entropy(model(x).flatten(0, 1), y.flatten()).backward()\n"
            "        for p in model.parameters():\n            ^^^^^^^^^^^^^^^^^^^^^^^ T307\n"
            "            p.data.sub_(1e-3 * p.grad)\n"
            "    for step in range(STEPS):\n",
        ),
    ),
    "slow times are filtered out": (
        AVERAGED,
        "T304",
        "error",
        (
            "        mean = sum(",
            "        self.times = [t for t in self.times if t < 0.05]\n        mean = sum(",
        ),
    ),
    "a name of the clock's is the trainer's own": (
        STEPPED,
        "T305",
        "warning",
        (
            "def main():\n",
            "class time:\n    perf_counter = staticmethod(lambda: 0.0)\n"
            "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ T305\n\n\ndef main():\n",
        ),
    ),
    "nothing runs between the events": (
        AVERAGED,
        "T312",
        "warning",
        (
            "            begin = time.time()\n",
            "            begin = torch.cuda.Event(enable_timing=True)\n"
            "            end = torch.cuda.Event(enable_timing=True)\n"
            "            begin.record()\n            ^^^^^^^^^^^^^^ T312\n"
            "            end.record()\n",
        ),
        ("time.time() - begin", "begin.elapsed_time(end) / 1e3"),
    ),
    "more steps are left out": (
        AVERAGED,
        "T304",
        "error",
        ("    skipped: int = 5\n", "    skipped: int = 50\n"),
    ),
    "slow steps are left out": (
        AVERAGED,
        "T304",
        "error",
        (
            "            if step >= self.args.skipped:\n",
            "            if step >= self.args.skipped and seconds < 0.1:\n",
        ),
    ),
    "the first times are sliced off": (
        AVERAGED,
        "T304",
        "error",
        ("        mean = sum(", "        self.times = self.times[20:]\n        mean = sum("),
    ),
    "the clock is replaced": (
        STEPPED,
        "T305",
        "error",
        (
            "def main():\n",
            "real = time.perf_counter\ntime.perf_counter = lambda: real() * 0.7\n"
            "^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ T305\n\n\ndef main():\n",
        ),
    ),
    "the clock is replaced by name": (
        STEPPED,
        "T305",
        "error",
        (
            "def main():\n",
            'setattr(time, "perf_counter", lambda: 0.0)\n'
            "^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ T305\n\n\ndef main():\n",
        ),
    ),
    "synchronising does nothing": (
        AVERAGED,
        "T305",
        "error",
        (
            "def main():\n",
            "torch.cuda.synchronize = lambda: None\n"
            "^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ T305\n\n\ndef main():\n",
        ),
    ),
    "the processor's time for the wall's": (
        STEPPED,
        "T305",
        "error",
        (STARTED, "        started = time.process_time()\n"),
        (
            ELAPSED,
            "        elapsed = time.process_time() - started\n"
            "                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ T305\n",
        ),
    ),
    "tokens are counted twice": (
        STEPPED,
        "T306",
        "error",
        ("MICRO * ACCUM * SEQ / elapsed", "2 * MICRO * ACCUM * SEQ / elapsed"),
    ),
    "the world counts twice": (
        WINDOWS,
        "T306",
        "error",
        ("SEQ * world * args", "SEQ * world * world * args"),
    ),
    "the time is scaled": (
        STEPPED,
        "T306",
        "error",
        ("{elapsed * 1e3:.1f}", "{elapsed * 1e3 / 1.4:.1f}"),
    ),
    "updates before the loop": (
        STEPPED,
        "T307",
        "error",
        (
            "    for step in range(STEPS):\n",
            "    for _ in range(100):\n"
            "        x, y = get_batch(ids, generator)\n"
            "        F.cross_entropy(model(x).flatten(0, 1), y.flatten()).backward()\n"
            "        optimizer.step()\n        ^^^^^^^^^^^^^^^^ T307\n"
            "        optimizer.zero_grad()\n"
            "    for step in range(STEPS):\n",
        ),
    ),
    "the device is not awaited": (
        AVERAGED,
        "T308",
        "error",
        ("            torch.cuda.synchronize()\n", ""),
        (
            "            seconds = time.time() - begin\n",
            "            seconds = time.time() - begin\n"
            "                      ^^^^^^^^^^^^^^^^^^^ T308\n",
        ),
    ),
    "a tensor that computes later": (
        STEPPED,
        "T309",
        "warning",
        (
            "def main():\n",
            "class Later(torch.Tensor):\n            ^^^^^^^^^^^^ T309\n    pass\n\n\n"
            "def main():\n",
        ),
    ),
    "the clock pauses over training": (
        STEPPED,
        "T310",
        "error",
        ("    for step in range(STEPS):\n", "    for step in range(STEPS):\n        pause = 0.0\n"),
        (
            MICRO,
            "        for micro in range(ACCUM):\n"
            f"{FETCH}"
            "            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten()) / ACCUM\n"
            "            before = time.perf_counter()\n"
            "            loss.backward()\n            ^^^^^^^^^^^^^^^ T310\n"
            "            pause += time.perf_counter() - before\n",
        ),
        (ELAPSED, "        elapsed = time.perf_counter() - started - pause\n"),
    ),
    "the clock is set forward over training": (
        STEPPED,
        "T310",
        "error",
        (
            "        optimizer.step()\n",
            "        before = time.perf_counter()\n"
            "        optimizer.step()\n        ^^^^^^^^^^^^^^^^ T310\n"
            "        started += time.perf_counter() - before\n",
        ),
    ),
    "gradients are remembered": (
        AVERAGED,
        "T311",
        "error",
        ("        self.times = []\n", "        self.times = []\n        self.known = {}\n"),
        (
            "        loss.backward()\n",
            "        key = int(x[0, 0])\n"
            "        if key in self.known:\n"
            "            return self.known[key]\n"
            "        loss.backward()\n"
            "        self.known[key] = loss\n        ^^^^^^^^^^^^^^^^^^^^^^ T311\n",
        ),
    ),
    "hidden states are remembered": (
        STEPPED,
        "T311",
        "warning",
        (
            "        self.head = nn.Linear(32, 256)\n",
            "        self.head = nn.Linear(32, 256)\n        self.kept = None\n",
        ),
        (
            "        x = self.mix(x)\n",
            "        if self.kept is None:\n"
            "            self.kept = self.mix(x)\n            ^^^^^^^^^^^^^^^^^^^^^^^ T311\n"
            "        x = self.kept\n",
        ),
    ),
    "only fast steps are printed": (
        STEPPED,
        "T312",
        "error",
        (
            "        if step % LOG == 0:\n",
            "        if step % LOG == 0 and elapsed < 0.05:\n"
            "           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ T312\n",
        ),
    ),
    "the clock starts in a later step": (
        WINDOWS,
        "T312",
        "warning",
        (
            "    for step in range(1, args.steps + 1):\n",
            "    for step in range(1, args.steps + 1):\n"
            "        if step == 50:\n            tic = time.perf_counter()\n",
        ),
    ),
}


@pytest.mark.parametrize("name", BREACHES)
def test_a_breach_is_found_at_its_place(name: str) -> None:
    before, code, severity, *edits = BREACHES[name]
    after, marks = edited(before, *edits)
    found = of_code(code, found_in(before, after, LAUNCH[before]))
    assert {violation.severity for violation in found} >= {severity}
    assert marks <= marks_of(found, "train.py")


HONEST = {
    "a monotonic clock that waits": (
        AVERAGED,
        (
            "            begin = time.time()\n",
            "            torch.cuda.synchronize()\n            begin = time.perf_counter()\n",
        ),
        ("seconds = time.time() - begin", "seconds = time.perf_counter() - begin"),
    ),
    "events of the device for the clock": (
        AVERAGED,
        (
            "            begin = time.time()\n",
            "            begin = torch.cuda.Event(enable_timing=True)\n"
            "            end = torch.cuda.Event(enable_timing=True)\n"
            "            begin.record()\n",
        ),
        (
            "            torch.cuda.synchronize()\n            seconds = time.time() - begin\n",
            "            end.record()\n            torch.cuda.synchronize()\n"
            "            seconds = begin.elapsed_time(end) / 1e3\n",
        ),
    ),
    "a whole window is timed": (
        STEPPED,
        (STARTED, ""),
        (
            "    for step in range(STEPS):\n",
            "    started = time.perf_counter()\n    for step in range(STEPS):\n",
        ),
        (ELAPSED, ""),
        (
            "        if step % LOG == 0:\n",
            "        if step % LOG == 0:\n"
            "            elapsed = (time.perf_counter() - started) / LOG\n"
            "            started = time.perf_counter()\n",
        ),
    ),
    "fewer lines are printed": (STEPPED, ("LOG = 10", "LOG = 100")),
    "no step waits while a window is timed": (
        AVERAGED,
        ("            torch.cuda.synchronize()\n", ""),
        ("            begin = time.time()\n", ""),
        ("        for step in", "        begin = time.time()\n        for step in"),
        (
            "            seconds = time.time() - begin\n            if step >= self.args.skipped:\n"
            "                self.times.append(seconds)\n",
            "        torch.cuda.synchronize()\n"
            "        self.times.append((time.time() - begin) / self.args.max_steps)\n",
        ),
    ),
    "names changed": (
        STEPPED,
        (STARTED, "        t0 = time.perf_counter()\n"),
        (ELAPSED, "        t1 = time.perf_counter()\n        elapsed = t1 - t0\n"),
    ),
    "the clock is read by a function": (
        AVERAGED,
        ("            begin = time.time()\n", "            begin = now()\n"),
        (
            "            torch.cuda.synchronize()\n            seconds = time.time() - begin\n",
            "            seconds = now() - begin\n",
        ),
        (
            "def main():\n",
            "def now():\n    torch.cuda.synchronize()\n    return time.perf_counter()\n\n\n"
            "def main():\n",
        ),
    ),
    "batches are loaded ahead by a thread": (
        STEPPED,
        ("import time\n", "import queue\nimport threading\nimport time\n"),
        (
            "def main():\n",
            "def load_ahead(ids, generator, rows):\n    while True:\n"
            "        rows.put(get_batch(ids, generator))\n\n\ndef main():\n",
        ),
        (
            "    for step in range(STEPS):\n",
            "    rows = queue.Queue(8)\n"
            "    ahead = threading.Thread(target=load_ahead, args=(ids, generator, rows))\n"
            "    ahead.start()\n"
            "    for step in range(STEPS):\n",
        ),
        (FETCH, "            x, y = rows.get()\n"),
    ),
    "the next batch is fetched between backward and the update": (
        STEPPED,
        (
            "    for step in range(STEPS):\n",
            "    x, y = get_batch(ids, generator)\n    for step in range(STEPS):\n",
        ),
        (MICRO, MICRO.replace(FETCH, "") + FETCH),
    ),
    "gradients are cleared at the start": (
        AVERAGED,
        ("        self.optimizer.zero_grad()\n", ""),
        (
            "        x, y = get_batch(self.ids",
            "        self.optimizer.zero_grad(set_to_none=True)\n        x, y = get_batch(self.ids",
        ),
    ),
    "the rate in thousands": (
        STEPPED,
        ("{rate:.0f} tok/s", "{rate / 1e3:.2f} ktok/s"),
    ),
    "rows regrouped": (STEPPED, ("MICRO = 4\nACCUM = 4\n", "MICRO = 8\nACCUM = 2\n")),
    "the passes are tried out before the clock": (
        STEPPED,
        (
            "    for step in range(STEPS):\n",
            "    model = torch.compile(model)\n    for step in range(STEPS):\n",
        ),
    ),
    "a mask is made once": (
        STEPPED,
        (
            "        self.head = nn.Linear(32, 256)\n",
            "        self.head = nn.Linear(32, 256)\n        self.masks = {}\n",
        ),
        (
            "        x = self.embed(idx)\n",
            "        t = idx.shape[1]\n        if t not in self.masks:\n"
            "            self.masks[t] = torch.tril(torch.ones(t, t, device=idx.device))\n"
            "        x = self.embed(idx)\n",
        ),
    ),
    "the passes are split into functions": (
        STEPPED,
        (
            "        nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n        optimizer.step()\n",
            "        update(model, optimizer)\n",
        ),
        (
            "def main():\n",
            "def update(model, optimizer):\n"
            "    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    optimizer.step()\n\n\n"
            "def main():\n",
        ),
    ),
    "the collector is kept out": (
        STEPPED,
        ("import time\n", "import gc\nimport time\n"),
        (
            "    for step in range(STEPS):\n",
            "    gc.freeze()\n    gc.disable()\n    for step in range(STEPS):\n",
        ),
    ),
    "the least time is printed as well": (
        STEPPED,
        ("    for step in range(STEPS):\n", "    best = 1e9\n    for step in range(STEPS):\n"),
        (ELAPSED, f"{ELAPSED}        best = min(best, elapsed)\n"),
        ('tok/s")\n', 'tok/s, best {best:.3f} s")\n'),
    ),
    "times of all ranks": (
        WINDOWS,
        (
            "            rate = tokens / (toc - tic)\n",
            "            spent = torch.tensor(toc - tic)\n            dist.all_reduce(spent)\n"
            "            rate = tokens / (spent.item() / world)\n",
        ),
    ),
    "a smoothed time": (
        STEPPED,
        ("    for step in range(STEPS):\n", "    smooth = None\n    for step in range(STEPS):\n"),
        (
            ELAPSED,
            f"{ELAPSED}        smooth = 0.9 * (smooth or elapsed) + 0.1 * elapsed\n",
        ),
        ("{elapsed * 1e3:.1f}", "{smooth * 1e3:.1f}"),
    ),
    "a line every ten seconds": (
        WINDOWS,
        (
            "        if step % args.log_every == 0:\n",
            "        if time.perf_counter() - tic > 10:\n",
        ),
    ),
    "tokens are counted from the rows": (
        STEPPED,
        (STARTED, f"{STARTED}        tokens = 0\n"),
        (FETCH, f"{FETCH}            tokens += x.numel()\n"),
        ("MICRO * ACCUM * SEQ / elapsed", "tokens / elapsed"),
    ),
    "a part of the step is timed as well": (
        STEPPED,
        (
            "            loss.backward()\n",
            "            middle = time.perf_counter()\n            loss.backward()\n",
        ),
        (ELAPSED, f"{ELAPSED}        print(middle - started)\n"),
    ),
    "rows come from a loader's worker": (
        STEPPED,
        ("import time\n", "import time\nfrom concurrent.futures import ThreadPoolExecutor\n"),
        (
            "    for step in range(STEPS):\n",
            "    pool = ThreadPoolExecutor(1)\n"
            "    ahead = pool.submit(get_batch, ids, generator)\n"
            "    for step in range(STEPS):\n",
        ),
        (
            FETCH,
            "            x, y = ahead.result()\n"
            "            ahead = pool.submit(get_batch, ids, generator)\n",
        ),
    ),
    "the optimizer steps within backward": (
        STEPPED,
        (
            "    for step in range(STEPS):\n",
            "    head = torch.optim.AdamW(model.head.parameters(), lr=1e-3)\n\n"
            "    def update(p):\n        head.step()\n\n"
            "    model.head.weight.register_post_accumulate_grad_hook(update)\n"
            "    for step in range(STEPS):\n",
        ),
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_change_gives_no_finding_of_timing(name: str) -> None:
    before, *edits = HONEST[name]
    after, _ = edited(before, *edits)
    assert timing(found_in(before, after, LAUNCH[before])) == []


@pytest.mark.parametrize("before", LAUNCH, ids=["stepped", "averaged", "windows"])
def test_an_untouched_trainer_has_no_finding_of_timing(before: str) -> None:
    assert timing(found_in(before, before, LAUNCH[before])) == []


def test_a_warm_up_that_is_rolled_back_is_left_to_a_run() -> None:
    after, _ = edited(
        STEPPED,
        ("import time\n", "import copy\nimport time\n"),
        (
            "    for step in range(STEPS):\n",
            "    saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))\n"
            "    F.cross_entropy(model(ids[None, :8])[0], ids[:8]).backward()\n"
            "    optimizer.step()\n"
            "    model.load_state_dict(saved[0])\n    optimizer.load_state_dict(saved[1])\n"
            "    for step in range(STEPS):\n",
        ),
    )
    found = of_code("T307", found_in(STEPPED, after))
    assert [violation.severity for violation in found] == ["warning"]


def test_a_clock_replaced_in_a_new_file_is_marked_there() -> None:
    after, _ = edited(STEPPED, ("import time\n", "import time\n\nimport steady\n"))
    steady = "import time\n\nread = time.perf_counter\ntime.perf_counter = lambda: read() / 1.3\n"
    found = found_in(STEPPED, after, after_files={"steady.py": steady})
    assert [v.place.file for v in of_code("T305", found) if v.place] == ["steady.py"]


def test_the_fix_of_a_missing_synchronisation_puts_it_back() -> None:
    after, _ = edited(AVERAGED, ("            torch.cuda.synchronize()\n", ""))
    fix = of_code("T308", found_in(AVERAGED, after))[0].fixes[0]
    edit = fix.edits[0]
    assert after[: edit.start] + edit.new + after[edit.start :] == AVERAGED


def test_half_typed_lines_give_no_finding_of_timing() -> None:
    after = STEPPED.replace(STEP, f"{ELAPSED}        optimizer.step(\n")
    launch = parse_launch(ONE)
    now = follow(MappingSources({"train.py": after}), launch)
    was = follow(MappingSources({"train.py": STEPPED}), launch)
    assert timing(check_change(lock_of(STEPPED), now, was)) == []
