"""How long a keystroke takes to become violations, in a locked project of 2,000 lines.

As in the language server: all files are open, one gets a new text, the session gives a snapshot
and `analyse_snapshot` reads and checks it. Every edit is at another place and undone before the
next one, which is not timed. What the server tidies up once the answer is shown is timed apart.
Leaves out the pause that the server waits for and the pipe.
"""

import argparse
import cProfile
import pstats
import random
import re
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from large_project import write_large_project
from measures import write_measures

from infrarsi_server.lsp.analysis import analyse_snapshot, tidy
from infrarsi_server.session import Analysis, Document, Session

Edit = tuple[Path, str]
TYPED = ("a", "(", ".", " = 1", "\n", '"')


class OpenProject:
    """An editor's session in which every file of the project is open."""

    def __init__(self, root: Path) -> None:
        """Open the files."""
        self.root = root
        self.texts = {path: path.read_text("utf-8") for path in sorted(root.rglob("*.py"))}
        self.tidying_ms: list[float] = []
        self._session = Session()
        self._version = 0
        for path, text in self.texts.items():
            self._session.put_root(path.parent, root)
            self._put(path, text)

    def check(self, path: Path, text: str) -> tuple[Analysis, float, float]:
        """Change one file's text; what is said of the root, after how many ms, and of CPU."""
        started_s, cpu_s = time.perf_counter(), time.process_time()
        self._put(path, text)
        analysis = analyse_snapshot(self._session.snapshot(self.root))
        self._session.keep(analysis)
        taken_s, taken_cpu_s = time.perf_counter() - started_s, time.process_time() - cpu_s
        self._tidy()
        return analysis, 1000 * taken_s, 1000 * taken_cpu_s

    def _tidy(self) -> None:
        started_s = time.perf_counter()
        tidy()
        self.tidying_ms.append(1000 * (time.perf_counter() - started_s))

    def _put(self, path: Path, text: str) -> None:
        self._version += 1
        self._session.put_document(
            Document(path=path, uri=path.as_uri(), version=self._version, text=text)
        )


def edits(texts: dict[Path, str], n: int, rng: random.Random) -> Iterator[Edit]:
    """New texts of one file each: a digit changed, or a character typed at the end of a line."""
    places = [(path, k) for path, text in texts.items() for k in range(text.count("\n"))]
    for path, k in rng.sample(places, n):
        lines = texts[path].splitlines(keepends=True)
        digit = re.search(r"(?<![\w.])\d(?![\w.])", lines[k])
        if digit is not None:
            other = str((int(digit[0]) + 1) % 10)
            lines[k] = lines[k][: digit.start()] + other + lines[k][digit.end() :]
        else:
            lines[k] = lines[k].rstrip("\n") + rng.choice(TYPED) + "\n"
        yield path, "".join(lines)


def measure(project: OpenProject, n_edits: int, seed: int) -> dict[str, float]:
    """Time the edits after a cold check and two warm ones; CPU is of this process alone."""
    first, text = next(iter(project.texts.items()))
    found, cold_ms, _ = project.check(first, text)
    if found.problem is not None or [job.violations for job in found.jobs] != [()]:
        raise ValueError(f"The untouched project should have one job and no findings: {found}")
    for _ in range(2):
        project.check(first, text)
    taken_ms: list[float] = []
    cpu_ms: list[float] = []
    n_marked = 0
    for path, changed in edits(project.texts, n_edits, random.Random(seed)):
        analysis, ms, of_cpu_ms = project.check(path, changed)
        taken_ms.append(ms)
        cpu_ms.append(of_cpu_ms)
        n_marked += any(job.violations for job in analysis.jobs)
        project.check(path, project.texts[path])
    percentiles = statistics.quantiles(taken_ms, n=100, method="inclusive")
    return {
        "check_2000_lines_p50_ms": percentiles[49],
        "check_2000_lines_p95_ms": percentiles[94],
        "check_2000_lines_max_ms": max(taken_ms),
        "check_2000_lines_cold_ms": cold_ms,
        "check_2000_lines_cpu_p95_ms": statistics.quantiles(cpu_ms, n=100, method="inclusive")[94],
        "check_2000_lines_tidying_max_ms": max(project.tidying_ms),
        "n_edits": n_edits,
        "n_edits_with_findings": n_marked,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edits", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--profile", action="store_true", help="print where the time goes instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        n_lines = write_large_project(root)
        project = OpenProject(root)
        if options.profile:
            with cProfile.Profile(time.process_time) as profile:
                measure(project, options.edits, options.seed)
            pstats.Stats(profile).sort_stats("cumulative").print_stats(60)
            return
        measures = {"n_lines": n_lines, **measure(project, options.edits, options.seed)}
    for key, value in measures.items():
        print(f"{key}: {value:.4g}")
    print(write_measures("check", measures))


if __name__ == "__main__":
    main()
