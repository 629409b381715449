"""What stands in for a line that does not parse, so that the facts of the rest stay as they are.

A name that is being assigned stays assigned, to something unknown; a call stays a call with
unknown arguments; a header keeps its block. Which parse, `syntax` finds out by trying.
"""

import re

HALF_TYPED = "half_typed_line"
"""The name in the place of what is not known yet."""

_ASSIGNED = re.compile(
    r"([^\W\d][\w.]*(?:\[[^\]]*\])?(?:\s*,\s*[^\W\d][\w.]*)*)\s*(?::[^=()]*)?"
    r"(\*\*|//|<<|>>|[-+*/%&|^@])?=(?!=)"
)
_CALLED = re.compile(r"((?:await\s+)?[^\W\d][\w.]*)\(")
_REST = ("pass", f"**{HALF_TYPED},", f"*{HALF_TYPED},")
_ITEM = re.compile(r"(\"[^\"]*\"|'[^']*')\s*:")


def stand_ins(line: str, *, has_block: bool) -> list[str]:
    """Texts to put in a broken line's place (without its indentation), the closest first.

    The last ones are for lines inside brackets, where no statement fits.
    """
    if has_block:
        return [_header(line)]
    if assigned := _ASSIGNED.match(line):
        plain = f"{assigned[1]} = {HALF_TYPED}"
        return [plain, f"{plain},", *_REST]
    if item := _ITEM.match(line):
        return [f"{item[1]}: {HALF_TYPED},", *_REST]
    if called := _CALLED.match(line):
        return [f"{called[1]}(**{HALF_TYPED})", f"{HALF_TYPED},", *_REST]
    if re.match(r"return\b", line):
        return [f"return {HALF_TYPED}", *_REST]
    if re.match(r"yield\b", line):
        return [f"yield {HALF_TYPED}", *_REST]
    return list(_REST)


def _header(line: str) -> str:
    """A whole header in place of a broken one: what was a loop stays one, of unknown length."""
    if re.match(r"(async\s+for|for|while)\b", line):
        return "while True:"
    if named := re.match(r"(?:async\s+)?(def|class)\s+([^\W\d]\w*)", line):
        is_def = named[1] == "def"
        return f"def {named[2]}(*_):" if is_def else f"class {named[2]}({HALF_TYPED}):"
    if re.match(r"(async\s+with|with)\b", line):
        return f"with {HALF_TYPED}:"
    if re.match(r"else\b", line):
        return "else:"
    if re.match(r"elif\b", line):
        return f"elif {HALF_TYPED}:"
    if re.match(r"except\b", line):
        return "except:"
    if re.match(r"(try|finally)\b", line):
        return f"{line.split(':')[0].split()[0]}:"
    return f"if {HALF_TYPED}:"
