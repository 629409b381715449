"""The search against its peers on simulated and recorded jobs: build/bench/search.json.

Goes on where it was stopped: lines are kept in build/bench/search/ while the simulator and the
searcher are the same (`--label` tells searchers apart).
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import multiprocessing
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from measures import FOLDER, write_measures
from search import running, summary
from search.methods import OURS, methods
from search.mixtures import all_workloads


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--workloads", default=",".join(all_workloads()))
    parser.add_argument("--methods", default="", help="names, 'ours' alone, or 'all' (default)")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--label", default="now", help="of this searcher's kept lines")
    parser.add_argument(
        "--fresh", action="store_true", help="forget the label's kept lines of ours"
    )
    return parser.parse_args()


def chosen_methods(text: str) -> list[str]:
    """The names asked for."""
    return list(methods()) if text in ("", "all") else text.split(",")


def files(label: str) -> tuple[Path, Path]:
    """Where lines of ours and of peers are kept; peers do not depend on the searcher."""
    folder = FOLDER / "search"
    return folder / f"ours-{label}.jsonl", folder / "peers.jsonl"


def todo(args: argparse.Namespace, names: Sequence[str]) -> list[tuple[str, str, int]]:
    """What is not kept yet, seeds outermost so that a stopped bench is balanced."""
    own, peers = files(args.label)
    kept = running.kept_results(own) + running.kept_results(peers)
    done = {(line["workload"], line["method"], line["seed"]) for line in kept}
    wanted = [
        (w, name, seed)
        for seed in range(args.seeds)
        for w in args.workloads.split(",")
        for name in names
    ]
    return [item for item in wanted if item not in done]


def work(label: str, items: list[tuple[str, str, int]]) -> None:
    """Run some of it in this process."""
    own, peers = files(label)
    every = methods()
    for w, name, seed in items:
        path = own if name in OURS else peers
        running.run_all([(all_workloads()[w], name, seed)], every, path)


def main() -> None:
    """Run what is missing, print the tables, write the measures."""
    args = arguments()
    names = chosen_methods(args.methods)
    own, peers = files(args.label)
    if args.fresh:
        own.unlink(missing_ok=True)
    items = todo(args, names)
    if args.jobs > 1:
        with multiprocessing.get_context("spawn").Pool(args.jobs) as pool:
            pool.map(partial(work, args.label), [items[i :: args.jobs] for i in range(args.jobs)])
    else:
        work(args.label, items)
    lines = [
        line
        for line in running.kept_results(own) + running.kept_results(peers)
        if line["workload"] in args.workloads.split(",")
        and line["method"] in names
        and line["seed"] < args.seeds
    ]
    summary.print_tables(lines)
    print(write_measures("search", summary.measures(lines)))


if __name__ == "__main__":
    main()
