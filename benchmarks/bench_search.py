"""The search against its peers on simulated and recorded jobs: build/bench/search.json.

Goes on where it was stopped: lines are kept in build/bench/search/ and used again while the
simulator and the searcher's code are the same (`--keep` takes lines of an older searcher too).
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import multiprocessing
from pathlib import Path

from measures import FOLDER, write_measures
from search import recorded_bench, running, summary
from search.asking import asking_measures
from search.methods import methods
from search.mixtures import all_workloads

OURS_FILE = FOLDER / "search" / "ours.jsonl"
PEERS_FILE = FOLDER / "search" / "peers.jsonl"
PARTS = "simulated,recorded,asking"
Item = tuple[str, str, int]


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--workloads", default=",".join(all_workloads()))
    parser.add_argument("--methods", default="", help="comma-separated names; default is all")
    parser.add_argument("--parts", default=PARTS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="use lines of an older searcher")
    args = parser.parse_args()
    args.workloads = args.workloads.split(",")
    args.methods = args.methods.split(",") if args.methods else list(methods())
    args.parts = args.parts.split(",")
    return args


def file_of(method: str) -> Path:
    """Where a method's lines are kept."""
    return OURS_FILE if method.startswith("ours") else PEERS_FILE


def kept(args: argparse.Namespace) -> list[running.Line]:
    """Kept lines of the same simulator and, for ours, the same searcher."""
    own = running.kept_lines(OURS_FILE, None if args.keep else running.searcher_digest())
    return own + running.kept_lines(PEERS_FILE, None)


def wanted(args: argparse.Namespace) -> list[Item]:
    """What to run, seeds outermost so that a stopped bench is balanced."""
    items: list[Item] = []
    for seed in range(args.seeds):
        if "simulated" in args.parts:
            items += [(w, name, seed) for w in args.workloads for name in args.methods]
        if "recorded" in args.parts:
            names = [n for n in recorded_bench.METHODS if n.split("-memory")[0] in args.methods]
            items += [(table, name, seed) for table in recorded_bench.names() for name in names]
    return items


def work(items: list[Item]) -> None:
    """Run some of it in this process, in which a method that lacks its switch is skipped."""
    every, lacking = methods(), set[str]()
    for place, name, seed in items:
        if name in lacking:
            continue
        if place in all_workloads():
            line = running.run_simulated(place, every[name], name, seed)
        else:
            line = recorded_bench.run_recorded(place, name, seed)
        if line is None:
            lacking.add(name)
            print(f"{name}: the searcher has no such switch yet", flush=True)
        else:
            running.keep(file_of(name), line)


def main() -> None:
    """Run what is missing, print the tables, write the measures."""
    args = arguments()
    running.searcher_digest()  # of the code as imported now
    done = {(line["place"], line["method"], line["seed"]) for line in kept(args)}
    items = [item for item in wanted(args) if item not in done]
    if args.jobs > 1:
        with multiprocessing.get_context("spawn").Pool(args.jobs) as pool:
            pool.map(work, [items[i :: args.jobs] for i in range(args.jobs)])
    else:
        work(items)
    asked = set(wanted(args))
    lines = [line for line in kept(args) if (line["place"], line["method"], line["seed"]) in asked]
    simulated = [line for line in lines if line["place"] in all_workloads()]
    recorded = [line for line in lines if line["place"] not in all_workloads()]
    found = {}
    if simulated:
        summary.print_tables(simulated)
        found |= summary.measures(simulated)
    if recorded:
        recorded_bench.print_memory_errors(recorded)
        found |= recorded_bench.recorded_measures(recorded)
    if "asking" in args.parts and "ours" in args.methods:
        found |= asking_measures()
    print()
    for name, value in found.items():
        if "." not in name:
            print(f"{name:32} {value:10.2f}")
    print(write_measures("search", found))


if __name__ == "__main__":
    main()
