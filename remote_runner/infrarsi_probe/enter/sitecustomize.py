"""What Python runs at start when this folder is first on PYTHONPATH: lets the probe in.

Runs the `sitecustomize` that the user's environment has itself, as if this one were not there.
Without the environment variable INFRARSI_PROBE it does nothing else. `usercustomize` needs no
help: Python looks for it after this module, by a name this folder does not hold.

Only this folder is ever on the job's path, and it takes itself off again: the probe is loaded
by file, so that none of our other packages can be imported by the job by accident.
"""

import importlib
import importlib.util
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

HERE = Path(__file__).resolve().parent


def _leave_path():
    sys.path[:] = [p for p in sys.path if Path(p).resolve() != HERE]


def _run_own_sitecustomize():
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _start_probe():
    package = HERE.parent
    spec = importlib.util.spec_from_file_location(
        "infrarsi_probe", package / "__init__.py", submodule_search_locations=[str(package)]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["infrarsi_probe"] = module
    spec.loader.exec_module(module)
    importlib.import_module("infrarsi_probe.start").start(os.environ["INFRARSI_PROBE"])


_leave_path()
if os.environ.get("INFRARSI_PROBE"):
    _start_probe()
_run_own_sitecustomize()
