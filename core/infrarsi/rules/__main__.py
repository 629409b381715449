"""`python -m infrarsi.rules docs/rules.md` writes the page of all codes."""

import sys
from pathlib import Path

from infrarsi.rules.page import rules_page


def main(arguments: list[str]) -> int:
    """Write it where it is told; 2 where it is not told."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m infrarsi.rules FILE\n")
        return 2
    Path(arguments[0]).write_text(rules_page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
