"""Where text comes from: a worktree, a commit or the editor's open documents. Read-only."""

from collections.abc import Iterable, Mapping
from typing import Protocol


class Sources(Protocol):
    """Texts by posix path relative to the workspace root."""

    def text(self, path: str) -> str | None:
        """The file's text, or None where there is no such text file."""
        ...

    def paths(self) -> Iterable[str]:
        """All files there are, in a fixed order."""
        ...


class MappingSources:
    """Sources held in memory."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        """Keep the texts by path."""
        self._texts = dict(texts)

    def text(self, path: str) -> str | None:
        """The text of that path, if held."""
        return self._texts.get(path)

    def paths(self) -> Iterable[str]:
        """All paths, sorted."""
        return sorted(self._texts)
