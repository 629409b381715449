"""Which paths a glob means. Globs read like those of `.gitignore`, without negation."""

import functools
import re
from collections.abc import Iterable


def matches(path: str, globs: Iterable[str]) -> bool:
    """Whether any glob means `path`, a posix path relative to the workspace root.

    A wildcard without a slash means any folder (`*.bin`); every other glob is anchored at the
    root (`train.py`, `data/*.txt`). `*` and `?` stop at a slash, `**/` is any number of folders,
    and a glob that ends in a slash means everything below that folder.
    """
    return any(_pattern(glob).fullmatch(path) is not None for glob in globs)


@functools.lru_cache(maxsize=1024)
def _pattern(glob: str) -> re.Pattern[str]:
    if glob.endswith("/"):
        glob += "**"
    anchored = "/" in glob or not ("*" in glob or "?" in glob)
    glob = glob.removeprefix("./").removeprefix("/")
    pieces = ["" if anchored else "(?:.*/)?"]
    position = 0
    while position < len(glob):
        token = next(
            (t for t in ("**/", "**", "*", "?") if glob.startswith(t, position)), glob[position]
        )
        pieces.append(_REGEX.get(token, re.escape(token)))
        position += len(token)
    return re.compile("".join(pieces), re.DOTALL)


_REGEX = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
