"""S408, S409, S411, S412, S414, S415 and S416: contract, settings, errors, checks and results."""

import pytest
from rule_pairs import CONSTANTS, DISTRIBUTED, ONE, TRAINER, TWO, lock_of
from scope_pairs import (
    BACKWARD,
    LOOP,
    MAIN,
    MICRO,
    MODEL,
    before,
    halved_where,
    importing,
    marked,
    scope_findings,
)

from infrarsi.contract import make_lock
from infrarsi.launch import parse_launch
from infrarsi.reading import MappingSources, follow
from infrarsi.rules import check_change

PARSED = "    args = parser.parse_args()\n"
CONFIG = '[job.job]\nlaunch = "python train.py"\nlocked = ["data/*"]\n'


def test_a_weakened_job_is_marked_on_its_key():
    lock = lock_of(CONSTANTS)
    scope = lock.contract.scope.model_copy(update={"locked": ("data/*", "eval.py")})
    lock = make_lock(lock.contract.model_copy(update={"scope": scope}), {}, "")
    launch = parse_launch(ONE)
    was = follow(MappingSources({"train.py": CONSTANTS}), launch)
    now = follow(MappingSources({"train.py": CONSTANTS, "infrarsi.toml": CONFIG}), launch)
    (found,) = check_change(lock, now, was)
    assert (found.code, found.severity, str(found.place)) == ("S408", "error", "infrarsi.toml:3:1")
    same = CONFIG.replace('"data/*"', '"data/*", "eval.py"')
    now = follow(MappingSources({"train.py": CONSTANTS, "infrarsi.toml": same}), launch)
    assert check_change(lock, now, was) == ()


def test_code_and_comments_that_reach_for_the_contract_are_marked():
    edits = (importing("import os"), before(MODEL, "    os.remove('infrarsi.toml')"))
    assert marked("S408", *edits) == [("error", "'infrarsi.toml'")]
    found = marked("S408", ("MICRO = 4\n", "MICRO = 4  # infrarsi: ignore[W101]\n"))
    assert found == [("error", "MICRO = 4  # infrarsi: ignore[W101]")]


@pytest.mark.parametrize(
    ("handler", "severity"),
    [
        ("except Exception:\n                pass", "error"),
        ("except RuntimeError:\n                continue", "error"),
        ("except RuntimeError:\n                loss = loss.half()", "warning"),
        ("except ValueError:\n                loss = loss / 2", "warning"),
    ],
)
def test_swallowed_errors_of_a_step_are_marked(handler: str, severity: str):
    text = f"            try:\n                loss.backward()\n            {handler}\n"
    assert marked("S409", (BACKWARD, text)) == [(severity, handler)]


@pytest.mark.parametrize(
    "end", ["finally:\n                pass", "except OSError:\n                raise"]
)
def test_errors_that_are_raised_on_are_no_fallback(end: str):
    text = f"            try:\n                loss.backward()\n            {end}\n"
    assert scope_findings((BACKWARD, text)) == []


@pytest.mark.parametrize(
    "line",
    [
        "vars(args).update({'accum': 1})",
        "args.__dict__['accum'] = 1",
        "[setattr(args, k, 1) for k in ('accum',)]",
    ],
)
def test_settings_laid_over_the_arguments_are_marked(line: str):
    found = marked("S411", (PARSED, f"{PARSED}    {line}\n"), text=DISTRIBUTED, launch=TWO)
    assert [severity for severity, _ in found] == ["warning"]
    assert found[0][1] in line


@pytest.mark.parametrize(
    ("module", "text", "under"),
    [
        ("import json", "globals().update(json.load(open('o.json')))", None),
        ("import sys", "sys.argv += ['--accum=1']", None),
        (
            "import json, os",
            "if os.path.exists('o.json'):\n    MICRO = json.load(open('o.json'))['micro']",
            "json.load(open('o.json'))",
        ),
        (
            "import os",
            "os.environ['M'] = '2'\nMICRO = int(os.environ.get('M', 4))",
            "os.environ['M'] = '2'",
        ),
    ],
)
def test_other_values_than_those_shown_are_marked(module: str, text: str, under: str | None):
    found = marked("S411", importing(module), before(MAIN, text + "\n\n"))
    assert ("warning", under or text) in found


def test_arguments_of_its_own_are_marked():
    edit = ("parse_args()", "parse_args(['--accum', '1'])")
    found = marked("S411", edit, text=DISTRIBUTED, launch=TWO)
    assert found == [("warning", "parser.parse_args(['--accum', '1'])")]


@pytest.mark.parametrize(
    "line", ["args.accum = max(1, args.accum // 2)", "args.accum -= 1", "setattr(args, 'accum', 1)"]
)
def test_a_setting_written_over_is_marked(line: str):
    found = marked("S412", (PARSED, f"{PARSED}    {line}\n"), text=DISTRIBUTED, launch=TWO)
    assert found == [("warning", line)]


def test_a_setting_that_only_a_log_line_reads_is_marked():
    edits = (
        (MICRO, "        for micro in range(2):\n"),
        ("y.flatten()) / ACCUM\n", "y.flatten()) / 2\n"),
        before(LOOP, "    print(ACCUM)"),
    )
    assert marked("S412", *edits) == [("warning", "4")]


def test_factors_traded_after_parsing_are_free():
    edit = (PARSED, f"{PARSED}    args.batch_size, args.accum = 8, 1\n")
    assert scope_findings(edit, text=DISTRIBUTED, launch=TWO) == []


@pytest.mark.parametrize(
    "condition", ["step > 40", "step in (3, 4)", "step % 10 < 5", "SEED == 1337 and step"]
)
def test_steps_and_seeds_that_are_singled_out_are_marked(condition: str):
    found = marked("S414", halved_where(condition))
    assert found == [("warning", condition.removesuffix(" and step"))]


@pytest.mark.parametrize("test", ["t == 64", "tuple(x.shape[:2]) == (4, 64)", "x.size(0) == 4"])
def test_sizes_that_are_singled_out_are_marked(test: str):
    spot = "        t = x.size(1)\n"
    edit = (spot, f"{spot}        if {test}:\n            return x\n")
    assert marked("S414", edit) == [("warning", test)]


@pytest.mark.parametrize("table", ["{(4, 64): 2}", "{1337: [5.0, 4.0]}"])
def test_tables_of_shapes_and_seeds_are_marked(table: str):
    assert marked("S414", before(MAIN, f"KNOWN = {table}\n\n")) == [("warning", table)]


def test_a_table_with_other_keys_is_free():
    assert scope_findings(before(MAIN, "SIZES = {(2, 3): 2, 8: 1}\n\n")) == []


def test_a_property_that_answers_for_a_setting_is_marked():
    more = "    seed: int = 5\n\n    @property\n    def top_k(self):\n        return 1\n"
    (found,) = marked("S412", ("    seed: int = 5\n", more), text=TRAINER)
    assert found[0] == "warning"


@pytest.mark.parametrize(
    "text",
    [
        "        if step == 100:\n            print('warm')\n",
        "        if step == 0:\n            torch.cuda.synchronize()\n",
        "        if step % 50 == 0:\n            model.train()\n",
        "        assert x.shape == (4, 64)\n",
    ],
)
def test_logs_cadences_and_checks_single_nothing_out(text: str):
    edit = ("        norm = nn", f"{text}        norm = nn")
    assert [v.message for v in scope_findings(edit)] == []


def test_a_check_that_is_gone_is_marked_in_its_function():
    check = "    assert MICRO * ACCUM == rows(), 'rows'\n"
    text = CONSTANTS.replace(MODEL, check + MODEL)
    assert marked("S415", (check, ""), text=text) == [("warning", "def main():")]


@pytest.mark.parametrize(
    "new",
    [
        "    if MICRO * ACCUM != rows():\n        raise ValueError('rows')\n",
        "    n = rows()\n    assert MICRO * ACCUM == rows()\n",
    ],
)
def test_a_check_written_otherwise_is_not_gone(new: str):
    check = "    assert MICRO * ACCUM == rows(), 'rows'\n"
    text = CONSTANTS.replace(MODEL, check + MODEL)
    assert scope_findings((check, new), text=text) == []


LOGGED = CONSTANTS.replace(
    "        optimizer.step()\n",
    "        optimizer.step()\n        open('results.csv', 'a').write(f'{step}')\n",
)


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ("open('results.csv', 'w')", "warning"),
        ("Path('results.csv').unlink()", "warning"),
        ("os.rename('results.csv', 'old.csv')", "warning"),
    ],
)
def test_results_that_are_written_over_are_marked(line: str, severity: str):
    edits = (importing("import os\nfrom pathlib import Path"), before(LOOP, f"    {line}"))
    assert marked("S416", *edits, text=LOGGED) == [(severity, line)]


def test_results_that_are_read_and_written_again_are_an_error():
    lines = "    old = open('results.csv').read()\n    open('results.csv', 'w').write(old)"
    assert marked("S416", before(LOOP, lines), text=LOGGED) == [
        ("error", "open('results.csv', 'w')")
    ]


def test_results_edited_by_hand_are_told_and_a_longer_log_is_not():
    kept = {"logs/loss.csv": "1,5.5\n"}
    found = scope_findings(files=kept, after_files={"logs/loss.csv": "1,2.5\n"})
    assert [(v.code, v.place and v.place.file) for v in found] == [("S416", "logs/loss.csv")]
    assert scope_findings(files=kept, after_files={"logs/loss.csv": "1,5.5\n2,5.4\n"}) == []
