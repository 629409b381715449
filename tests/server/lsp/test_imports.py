"""What must not be loaded on the way to the first squiggle."""

import subprocess
import sys
from pathlib import Path

FITTING = ("numpy", "scipy", "sklearn", "torch")
DAEMON = ("sqlalchemy", "fastapi", "uvicorn", "infrarsi_runner", "anthropic")
LATER = ("httpx", "watchdog")
HEAVY = (*FITTING, *DAEMON, *LATER)
PROGRAM = """
import sys
from pathlib import Path
from infrarsi_server.lsp.server import build_server
from infrarsi_server.lsp.analysis import analyse_snapshot
from infrarsi_server.session import Document, Session

root = Path(sys.argv[1])
build_server({})
session = Session()
session.put_root(root, root)
path = root / "train.py"
text = path.read_text().replace("MICRO_BATCH = 4", "MICRO_BATCH = 2")
session.put_document(Document(path=path, uri=path.as_uri(), version=1, text=text))
analysis = analyse_snapshot(session.snapshot(root))
assert analysis.jobs[0].violations[0].code == "W101", analysis
print(" ".join(name for name in sys.argv[2:] if name in sys.modules))
"""


def test_the_first_squiggle_loads_no_heavy_library(project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, str(project), *HEAVY],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == ""


def test_the_check_would_see_a_heavy_library(project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", "import httpx\n" + PROGRAM, str(project), *HEAVY],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "httpx"
