"""What an optimiser honestly does gives no finding of the family, or at most a warning."""

import pytest
from rule_pairs import CONSTANTS, DISTRIBUTED, ONE, TRAINER, TWO
from scope_pairs import LOOP, MAIN, MODEL, before, importing, scope_findings

AHEAD = """\
class Ahead:
    def __init__(self, fetch):
        self.ready, self.fetch = queue.Queue(2), fetch
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            self.ready.put(self.fetch())

    def get(self):
        while True:
            try:
                return self.ready.get(timeout=1)
            except queue.Empty:
                continue

"""
OPTIMIZER = "    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)\n"
FUSED = """\
    fused = "fused" in inspect.signature(torch.optim.AdamW).parameters
    more = {"fused": True} if fused else {}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, **more)
"""
HONEST = {
    "the model is compiled": [(MODEL, "    model = torch.compile(Net())\n")],
    "a method is compiled in place": [
        before(LOOP, "    model.forward = torch.compile(model.forward)")
    ],
    "the optimizer's step is compiled": [
        before(LOOP, "    optimizer.step = torch.compile(optimizer.step)")
    ],
    "the collector is off": [
        importing("import gc"),
        before(LOOP, "    gc.freeze()\n    gc.disable()"),
    ],
    "a finally is added": [
        before(LOOP, "    try:\n        model.train()\n    finally:\n        print('ready')")
    ],
    "a device is asked for": [
        (MODEL, "    model = Net().to('cuda' if torch.cuda.is_available() else 'cpu')\n")
    ],
    "settings of libraries": [
        before(MODEL, "    torch.backends.cudnn.benchmark = True"),
        before(LOOP, "    torch._dynamo.config.cache_size_limit = 64"),
    ],
    "the rank is asked for": [
        importing("import os"),
        before(MODEL, "    if int(os.environ.get('RANK', -1)) != -1:\n        print('rank')"),
    ],
    "a variable may override with the value held": [
        importing("import os"),
        ("MICRO = 4\n", "MICRO = int(os.environ.get('MICRO', 4))\n"),
    ],
    "arguments of the optimizer are looked up": [importing("import inspect"), (OPTIMIZER, FUSED)],
    "the group is left at exit": [
        importing("import atexit\nimport torch.distributed as dist"),
        before(MODEL, "    atexit.register(dist.destroy_process_group)"),
    ],
    "a thread fetches ahead": [importing("import queue\nimport threading"), before(MAIN, AHEAD)],
    "a missing library is done without": [
        importing("try:\n    import triton\nexcept ImportError:\n    triton = None")
    ],
    "more micro-batches at once": [("MICRO = 4\nACCUM = 4\n", "MICRO = 16\nACCUM = 1\n")],
    "a time is printed": [
        importing("import time"),
        before("        optimizer.zero_grad()\n", "        begun = time.time()"),
        ("        norm = nn", "        print(time.time() - begun)\n        norm = nn"),
    ],
    "streams are flushed": [importing("import sys"), before(LOOP, "    sys.stdout.flush()")],
    "hooks of its own": [
        before(LOOP, "    model.embed.register_forward_hook(lambda *given: None)")
    ],
    "a name of torch is looked up": [before(LOOP, "    kind = getattr(torch, 'float32')")],
    "a constant named after the loss is printed": [
        before(LOOP, "    print(f'loss scale {1.0}', {'loss_scale': 1.0})")
    ],
    "a long line is excused": [("MICRO = 4\n", "MICRO = 4  # noqa: E501\n")],
    "a setting of a module of the workspace": [
        importing("import held"),
        before(LOOP, "    held.width = len('abc')"),
    ],
    "a check is added": [before(MODEL, "    assert MICRO * ACCUM == 16")],
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_change_gives_nothing(name: str):
    found = scope_findings(*HONEST[name], after_files={"held.py": "width = 3\n"})
    assert [v.message for v in found] == []


def test_constants_may_move_to_a_module_or_a_file():
    held = "MICRO = 4\nACCUM = 4\n"
    edits = (importing("from held import ACCUM, MICRO"), (held, ""))
    assert scope_findings(*edits, after_files={"held.py": held}) == []
    text = "_held = json.load(open('held.json'))\nMICRO, ACCUM = _held['m'], _held['a']\n"
    edits = (importing("import json"), (held, text))
    assert scope_findings(*edits, after_files={"held.json": '{"m": 4, "a": 4}'}) == []


def test_workers_and_a_stream_that_starts_anew_are_free():
    workers = ("drop_last=True)", "drop_last=True, num_workers=4, persistent_workers=True)")
    again = (
        "            x, y = next(stream)\n",
        "            try:\n                x, y = next(stream)\n"
        "            except StopIteration:\n                stream = iter(loader)\n"
        "                x, y = next(stream)\n",
    )
    assert scope_findings(workers, again, text=DISTRIBUTED, launch=TWO) == []


@pytest.mark.parametrize(("text", "launch"), [(CONSTANTS, ONE), (DISTRIBUTED, TWO), (TRAINER, ONE)])
def test_an_untouched_baseline_gives_nothing(text: str, launch: str):
    assert scope_findings(text=text, launch=launch) == []


def test_what_the_baseline_does_already_gives_nothing():
    cheats = (
        "import base64, gc, os, sys\n"
        "F.gelu = lambda x: x\nexec(base64.b64decode('eA=='))\n"
        "if sys.gettrace() or os.environ.get('X'):\n    gc.get_objects()\n"
    )
    text = CONSTANTS.replace(MAIN, cheats + MAIN)
    assert scope_findings((MODEL, "    model = torch.compile(Net())\n"), text=text) == []


def test_a_line_being_typed_is_no_breach():
    edits = (importing("import gc"), before(LOOP, "    seen = gc.get_objects(\n    if"))
    assert scope_findings(*edits) == []
