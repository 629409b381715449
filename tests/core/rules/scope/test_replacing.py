"""S405, S407, S410 and S413: other functions, other processes, hidden code, other modules."""

import pytest
from rule_pairs import CONSTANTS, found_in
from scope_pairs import LOOP, MAIN, before, importing, marked, scope_findings


@pytest.mark.parametrize(
    "line",
    [
        "F.cross_entropy = lambda a, b: a.sum() * 0",
        "torch.optim.AdamW.step = lambda self, closure=None: None",
        "setattr(F, 'softmax', lambda x, dim: x)",
        "torch.Tensor.__eq__ = lambda a, b: True",
        "vars(torch)['stack'] = torch.cat",
        "torch.nn.functional.__dict__.update(gelu=torch.relu)",
        "F.softmax, F.gelu = F.gelu, F.softmax",
    ],
)
def test_a_replaced_function_of_torch_is_an_error(line: str):
    assert marked("S405", before(MAIN, f"{line}\n\n")) == [("error", line)]


def test_a_replaced_function_of_the_standard_library_is_an_error():
    edits = (importing("import time"), before(MAIN, "time.perf_counter = lambda: 0.0\n\n"))
    assert marked("S405", *edits) == [("error", "time.perf_counter = lambda: 0.0")]


@pytest.mark.parametrize(
    "line",
    [
        "optimizer.step = lambda: None",
        "Net.forward = lambda self, x: self.head(self.embed(x))",
        "model.__class__ = Attention",
    ],
)
def test_a_method_put_on_by_hand_is_left_to_a_run(line: str):
    assert marked("S405", before(LOOP, f"    {line}")) == [("warning", line)]


@pytest.mark.parametrize(
    ("module", "line", "severity", "under"),
    [
        ("import os", "os.fork()", "error", "os.fork()"),
        ("from os import fork as split", "split()", "error", "split()"),
        ("import os", "os.setsid()", "error", "os.setsid()"),
        ("import subprocess", "subprocess.run(['a'])", "warning", "subprocess.run(['a'])"),
        (
            "import subprocess",
            "subprocess.Popen(['a'], start_new_session=True)",
            "error",
            "subprocess.Popen(['a'], start_new_session=True)",
        ),
        ("import ctypes", "ctypes.CDLL('libc.so.6')", "warning", "ctypes.CDLL('libc.so.6')"),
        ("import atexit", "atexit.register(load)", "warning", "atexit.register(load)"),
        ("import os", "os.environ['LD_PRELOAD'] = 'x.so'", "error", "'LD_PRELOAD'"),
    ],
)
def test_what_runs_outside_of_the_steps_is_marked(
    module: str, line: str, severity: str, under: str
):
    found = marked("S407", importing(module), before(LOOP, f"    {line}"))
    assert found == [(severity, under)]


def test_an_exit_handler_is_seen_above_a_function():
    edits = (
        importing("import atexit"),
        before(LOOP, "    @atexit.register\n    def finish():\n        load()\n"),
    )
    assert marked("S407", *edits) == [("warning", "atexit.register")]


@pytest.mark.parametrize(
    ("module", "line", "severity"),
    [
        ("import base64", "exec(base64.b64decode('eA=='))", "error"),
        ("import os", "exec(open('patch.txt').read())", "error"),
        ("import marshal", "marshal.loads(b'x')", "error"),
        ("import importlib", "importlib.import_module('fa' + 'st')", "warning"),
        ("import os", "getattr(F, ''.join(['soft', 'max']))", "warning"),
        ("import os", "getattr(model, '_xirt'[::-1])", "warning"),
        ("import os", "eval('1')", "warning"),
    ],
)
def test_code_that_cannot_be_read_is_marked(module: str, line: str, severity: str):
    found = marked("S410", importing(module), before(LOOP, f"    {line}"))
    assert found[:1] == [(severity, line)]


@pytest.mark.parametrize(
    ("path", "severity"),
    [("fast.pyc", "error"), ("lib/fast.so", "warning"), ("__pycache__/a.pyc", None)],
)
def test_a_new_compiled_file_is_told(path: str, severity: str | None):
    found = [v for v in scope_findings(after_files={path: ""}) if v.code == "S410"]
    assert [(v.severity, v.place and v.place.file) for v in found] == (
        [] if severity is None else [(severity, path)]
    )


@pytest.mark.parametrize(
    "path",
    [
        "random.py",
        "torch/__init__.py",
        "typing_extensions.py",
        "sitecustomize.py",
        "math.so",
    ],
)
def test_a_file_in_the_place_of_another_module_is_an_error(path: str):
    found = [v for v in scope_findings(after_files={path: "x = 1\n"}) if v.code == "S413"]
    assert [(v.severity, v.place and v.place.file) for v in found] == [("error", path)]


def test_the_import_path_of_the_launch_line_counts():
    line = "PYTHONPATH=lib python train.py"
    fresh = {"lib/random.py": "x = 1\n"}
    assert [v.code for v in found_in(CONSTANTS, CONSTANTS, line, after_files=fresh)] == ["S413"]
    assert scope_findings(after_files=fresh) == []


def test_files_of_other_names_and_in_packages_are_free():
    files = {"model/random.py": "", "kernels/__init__.py": "", "prefetch.py": "", "types.txt": ""}
    assert scope_findings(after_files=files) == []


def test_a_module_the_baseline_has_already_is_no_shadow():
    assert scope_findings(files={"random.py": "x = 1\n"}) == []
    files = {"queue/__init__.py": ""}
    assert scope_findings(files=files, after_files={**files, "queue/more.py": ""}) == []
