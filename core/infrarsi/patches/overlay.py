"""Sources with some texts replaced, in memory."""

from collections.abc import Iterable, Mapping

from infrarsi.edits import Edit, apply_edits
from infrarsi.reading.sources import Sources


class Overlay:
    """Sources seen through changes made so far."""

    def __init__(self, base: Sources, texts: Mapping[str, str] | None = None) -> None:
        """Keep the base and the texts that stand over it."""
        self._base = base
        self._texts = dict(texts or {})

    def text(self, path: str) -> str | None:
        """The changed text, or the base's."""
        return self._texts[path] if path in self._texts else self._base.text(path)

    def paths(self) -> Iterable[str]:
        """All paths of base and changes, sorted."""
        return sorted({*self._base.paths(), *self._texts})

    def update(self, texts: Mapping[str, str]) -> None:
        """Put these texts over what stands."""
        self._texts.update(texts)

    def changed(self) -> dict[str, str]:
        """Texts that differ from the base."""
        return {p: t for p, t in self._texts.items() if t != self._base.text(p)}


def overlay(sources: Sources, edits: Iterable[Edit]) -> Overlay:
    """The sources with edits applied.

    Raises:
        EditConflict: a text is not what its edits were computed from.
    """
    by_file: dict[str, list[Edit]] = {}
    for edit in edits:
        by_file.setdefault(edit.file, []).append(edit)
    return Overlay(
        sources, {f: apply_edits(sources.text(f) or "", own) for f, own in by_file.items()}
    )
