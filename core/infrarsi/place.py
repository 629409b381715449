"""Where something stands in the workspace: lines and columns from 1, columns in code points."""

from infrarsi.frozen import Frozen


class Place(Frozen):
    """A span of text: `file` is a posix path relative to the workspace root.

    `end_column` is exclusive: a one-character span at the start of a line is 1:1-1:2.
    """

    file: str
    line: int
    column: int = 1
    end_line: int
    end_column: int

    def __str__(self) -> str:
        """The form terminals make clickable."""
        return f"{self.file}:{self.line}:{self.column}"
