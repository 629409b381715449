"""Edits: replace `old` by `new` at an offset of one file. Applied whole or not at all."""

import difflib
from collections.abc import Iterable

from infrarsi.errors import EditConflict
from infrarsi.frozen import Frozen


class Edit(Frozen):
    """Replace `old`, which begins at code point `start` of `file`, by `new`.

    `old` is kept so that an edit computed from one version is refused on another.
    """

    file: str
    start: int
    old: str
    new: str

    @property
    def end(self) -> int:
        """Offset just behind the replaced text, in code points."""
        return self.start + len(self.old)


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Apply the edits of one file to its text.

    Args:
        text: the whole file.
        edits: edits of this file, in any order, all computed from `text`.

    Raises:
        EditConflict: the text under an edit differs from its `old`, or two edits overlap.
    """
    ordered = sorted(edits, key=lambda e: (e.start, e.end))
    pieces: list[str] = []
    position = 0
    for edit in ordered:
        if 0 <= edit.start < position:
            raise EditConflict(f"Two edits of {edit.file} overlap.", "Apply them one at a time.")
        if not 0 <= edit.start <= len(text) or text[edit.start : edit.end] != edit.old:
            raise EditConflict(
                f"{edit.file} has changed since this edit was computed.", "Compute it again."
            )
        pieces += [text[position : edit.start], edit.new]
        position = edit.end
    return "".join([*pieces, text[position:]])


def diff_texts(file: str, before: str, after: str) -> tuple[Edit, ...]:
    """The line-wise edits that turn `before` into `after`."""
    a, b = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = [0]
    for line in a:
        starts.append(starts[-1] + len(line))
    matcher = difflib.SequenceMatcher(a=a, b=b, autojunk=False)
    return tuple(
        Edit(file=file, start=starts[i1], old="".join(a[i1:i2]), new="".join(b[j1:j2]))
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal"
    )
