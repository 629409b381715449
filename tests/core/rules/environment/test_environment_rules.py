"""E5xx: what changed of machine, software, seed and kept state is marked; what is free is not."""

import pytest
from carets import marks_of
from rule_pairs import CONSTANTS, DISTRIBUTED, ONE, TRAINER, TWO, edited, found_in

LAUNCH = {CONSTANTS: ONE, DISTRIBUTED: TWO, TRAINER: ONE}
MODEL = "    model = Net()\n"
OS = ("import torch\nimport torch.nn as nn\n", "import os\nimport torch\nimport torch.nn as nn\n")

BREACHES = {
    "a better place is asked for": (
        CONSTANTS,
        "E501",
        "error",
        OS,
        (MODEL, MODEL + "    os.nice(-10)\n    ^^^^^^^^^^^^ E501\n"),
    ),
    "packages are installed": (
        CONSTANTS,
        "E502",
        "error",
        OS,
        (
            MODEL,
            MODEL + '    os.system("pip install fast")\n    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E502\n',
        ),
    ),
    "another seed by name": (
        CONSTANTS,
        "E503",
        "error",
        ("SEED = 1337", "SEED = 7\n       ^ E503"),
    ),
    "another seed in the call": (
        CONSTANTS,
        "E503",
        "error",
        (
            "    torch.manual_seed(SEED)",
            "    torch.manual_seed(12)\n    ^^^^^^^^^^^^^^^^^^^^^ E503",
        ),
    ),
    "a seed from the clock": (
        CONSTANTS,
        "E503",
        "warning",
        ("import torch\nimport", "import time\nimport torch\nimport"),
        (
            "    torch.manual_seed(SEED)",
            "    torch.manual_seed(int(time.time()))\n    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E503",
        ),
    ),
    "weights are kept for the next run": (
        CONSTANTS,
        "E504",
        "error",
        OS,
        (
            MODEL,
            MODEL + '    if os.path.exists("kept.pt"):\n'
            '        model.load_state_dict(torch.load("kept.pt"))\n',
        ),
        (
            "            print(evaluate(model, val_ids, generator))",
            "            print(evaluate(model, val_ids, generator))\n"
            '    torch.save(model.state_dict(), "kept.pt")\n'
            "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E504",
        ),
    ),
    "products in lower precision by a variable": (
        CONSTANTS,
        "E505",
        "error",
        OS,
        (
            MODEL,
            MODEL + '    os.environ["ONEDNN_DEFAULT_FPMATH_MODE"] = "BF16"\n'
            "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E505\n",
        ),
    ),
    "a download": (
        CONSTANTS,
        "E507",
        "error",
        ("import torch\nimport", "import urllib.request\nimport torch\nimport"),
        (
            MODEL,
            MODEL + '    urllib.request.urlretrieve("http://x/y", "y")\n'
            "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E507\n",
        ),
    ),
    "a shipped compile cache": (
        CONSTANTS,
        "E508",
        "error",
        (
            MODEL,
            MODEL + '    torch.compiler.load_cache_artifacts(b"")\n'
            "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E508\n",
        ),
    ),
    "a search without a bound": (
        CONSTANTS,
        "E509",
        "warning",
        (
            MODEL,
            '    model = torch.compile(Net(), mode="max-autotune")\n'
            "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E509\n",
        ),
    ),
    "deterministic mode on one side": (
        CONSTANTS,
        "E510",
        "error",
        (
            MODEL,
            MODEL + "    torch.use_deterministic_algorithms(True)\n"
            "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E510\n",
        ),
    ),
    "a cap on memory": (
        CONSTANTS,
        "E511",
        "error",
        (
            MODEL,
            MODEL + "    torch.cuda.set_per_process_memory_fraction(0.5)\n"
            "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E511\n",
        ),
    ),
    "state moved to the host": (
        CONSTANTS,
        "E511",
        "warning",
        (
            MODEL,
            MODEL + "    torch.autograd.graph.save_on_cpu().__enter__()\n"
            "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E511\n",
        ),
    ),
}


@pytest.mark.parametrize("name", BREACHES)
def test_a_breach_is_found(name: str):
    before, code, severity, *edits = BREACHES[name]
    after, marks = edited(before, *edits)
    found = [v for v in found_in(before, after, LAUNCH[before]) if v.code == code]
    assert {violation.severity for violation in found} == {severity}
    assert marks_of(found, "train.py") >= marks
    assert marks


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("", "OMP_NUM_THREADS=2 ", []),
        ("OMP_NUM_THREADS=1 ", "OMP_NUM_THREADS=2 ", [("E501", "error")]),
        ("", "NVIDIA_TF32_OVERRIDE=1 ", [("E505", "error")]),
        ("", "NCCL_ALGO=Tree ", [("E505", "warning")]),
        ("NCCL_ALGO=Tree ", "", [("E505", "warning")]),
        ("", "NCCL_DEBUG=INFO ", []),
        ("", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True ", []),
        ("", "TORCHINDUCTOR_MAX_AUTOTUNE=1 ", [("E505", "warning"), ("E509", "warning")]),
    ],
)
def test_variables_of_the_launch_line(before: str, after: str, expected: list[tuple[str, str]]):
    found = found_in(CONSTANTS, CONSTANTS, f"{before}{ONE}", f"{after}{ONE}")
    assert [(v.code, v.severity) for v in found] == expected


@pytest.mark.parametrize(
    ("before", "edits"),
    [
        (CONSTANTS, [(MODEL, "    torch.set_num_threads(2)\n    model = Net()\n")]),
        (CONSTANTS, [(MODEL, "    model = torch.compile(Net())\n")]),
        (CONSTANTS, [("SEED = 1337", "SEED = 1300 + 37")]),
        (CONSTANTS, [(MODEL, "    torch.backends.cudnn.benchmark = True\n    model = Net()\n")]),
        (CONSTANTS, [(MODEL, MODEL + "    torch.autograd.set_detect_anomaly(False)\n")]),
        (DISTRIBUTED, [("drop_last=True)", "drop_last=True, num_workers=4)")]),
    ],
)
def test_an_honest_change_gives_nothing(before: str, edits: list[tuple[str, str]]):
    after, _ = edited(before, *edits)
    found = found_in(before, after, LAUNCH[before])
    assert [v.message for v in found if v.code.startswith(("W", "E"))] == []


def test_a_pinned_version_is_marked_on_its_line():
    files = {"requirements.txt": "numpy==2.1\ntorch==2.9.0\n"}
    now = {"requirements.txt": "numpy==2.1\ntorch==2.13.0\n"}
    (found,) = found_in(CONSTANTS, CONSTANTS, files=files, after_files=now)
    assert (found.code, str(found.place)) == ("E502", "requirements.txt:2:1")


def test_a_variable_of_the_launch_line_that_code_reads_is_left_to_a_run():
    reading = '    kind = os.environ.get("KIND", "float32")\n'
    before, _ = edited(CONSTANTS, OS, (MODEL, MODEL + reading))
    found = found_in(before, before, ONE, f"KIND=bfloat16 {ONE}")
    assert [(v.code, v.severity) for v in found] == [("E505", "warning")]


def test_a_seed_is_restored_by_its_fix():
    after, _ = edited(CONSTANTS, ("SEED = 1337", "SEED = 7"))
    found = [v for v in found_in(CONSTANTS, after) if v.code == "E503"]
    assert [edit.new for edit in found[0].fixes[0].edits] == ["1337"]
    assert (
        found[0].message == "`SEED` is 7 instead of 1337; the contract holds the baseline's seed."
    )
