"""`python -m infrarsi.search`: the searcher on standard input and output, a JSON object a line."""

import sys

from infrarsi.search.jsonl import serve


def _write(line: str) -> None:
    sys.stdout.write(line)
    sys.stdout.flush()


if __name__ == "__main__":
    serve(sys.stdin, _write)
