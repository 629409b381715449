"""What the server knows between two messages. State only: no protocol types, no reading of files.

Everything here is touched from the event loop's thread alone. What a worker needs it gets as a
`Snapshot`, which is frozen; what it found comes back as an `Analysis` and is kept only if nothing
moved meanwhile.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from infrarsi.contract.contract import Lock
from infrarsi.contract.violation import Violation
from infrarsi.frozen import Frozen
from infrarsi.reading.reading import Reading
from infrarsi.wire.results import Calibration, PredictionTable


@dataclass(frozen=True, kw_only=True)
class Document:
    """An open document: what the editor shows, saved or not. `uri`, `version` are the editor's."""

    path: Path
    uri: str
    version: int | None
    text: str


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """One workspace root at one moment: the open documents under it, by absolute path."""

    root: Path
    generation: int
    documents: Mapping[Path, Document]

    def overlay(self) -> dict[str, str]:
        """The open documents' texts by posix path relative to the root."""
        return {
            document.path.relative_to(self.root).as_posix(): document.text
            for document in self.documents.values()
        }


@dataclass(frozen=True, kw_only=True)
class JobAnalysis:
    """What reading and rules say of one locked job."""

    lock: Lock
    reading: Reading
    violations: tuple[Violation, ...]


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """All jobs of one snapshot. `texts` hold each file something was said of, as it was read.

    `problem` says in one sentence why the root's own files cannot be used.
    """

    snapshot: Snapshot
    jobs: tuple[JobAnalysis, ...] = ()
    texts: Mapping[str, str]
    problem: str | None = None


class Numbers(Frozen):
    """What was measured and predicted for one contract, as the runner published it last."""

    table: PredictionTable | None = None
    calibration: Calibration | None = None


class Session:
    """Open documents, workspace roots, the newest analysis and prediction tables."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._documents: dict[Path, Document] = {}
        self._roots: dict[Path, Path | None] = {}
        self._generations: dict[Path, int] = {}
        self._analyses: dict[Path, Analysis] = {}
        self._numbers: dict[str, Numbers] = {}

    def put_document(self, document: Document) -> None:
        """Remember an open document as it is now; its root moves on."""
        self._documents[document.path] = document
        self._move_on(document.path)

    def drop_document(self, path: Path) -> None:
        """Forget a closed document; its root falls back to the file on disk."""
        self._documents.pop(path, None)
        self._move_on(path)

    def document(self, path: Path) -> Document | None:
        """The open document at that path."""
        return self._documents.get(path)

    def put_root(self, folder: Path, root: Path | None) -> None:
        """Remember which root a folder belongs to; None where no `infrarsi.toml` stands above."""
        self._roots[folder] = root
        if root is not None:
            self._generations.setdefault(root, 0)

    def knows_root_of(self, path: Path) -> bool:
        """Whether the root of a file was looked up already."""
        return path.parent in self._roots

    def root_of(self, path: Path) -> Path | None:
        """The workspace root a file belongs to, as far as known."""
        return self._roots.get(path.parent)

    def forget_roots(self) -> tuple[Path, ...]:
        """Look roots up again: an `infrarsi.toml` came or went. Returns those known so far."""
        known = self.roots()
        self._roots.clear()
        return known

    def roots(self) -> tuple[Path, ...]:
        """All roots met so far, sorted."""
        return tuple(sorted(self._generations))

    def documents(self) -> tuple[Document, ...]:
        """All open documents."""
        return tuple(self._documents.values())

    def move_on(self, root: Path) -> None:
        """Something under the root changed: what is being computed from before is stale."""
        self._generations[root] = self._generations.get(root, 0) + 1

    def snapshot(self, root: Path) -> Snapshot:
        """The root as it is now."""
        documents = {
            path: document
            for path, document in self._documents.items()
            if path.is_relative_to(root) and self.root_of(path) == root
        }
        return Snapshot(root=root, generation=self._generations[root], documents=documents)

    def is_current(self, snapshot: Snapshot) -> bool:
        """Whether nothing moved since the snapshot was taken."""
        return self._generations.get(snapshot.root) == snapshot.generation

    def keep(self, analysis: Analysis) -> bool:
        """Keep an analysis if it is of the present; whether it was."""
        if not self.is_current(analysis.snapshot):
            return False
        self._analyses[analysis.snapshot.root] = analysis
        return True

    def analysis(self, root: Path) -> Analysis | None:
        """The newest analysis of a root; it may be older than the documents."""
        return self._analyses.get(root)

    def put_numbers(self, digest: str, numbers: Numbers) -> None:
        """Keep what is newer of a contract's numbers; nothing known is forgotten."""
        known = self.numbers(digest)
        is_older = (
            known.table is not None
            and numbers.table is not None
            and numbers.table.version < known.table.version
        )
        self._numbers[digest] = Numbers(
            table=known.table if is_older else numbers.table or known.table,
            calibration=numbers.calibration or known.calibration,
        )

    def numbers(self, digest: str) -> Numbers:
        """The newest numbers of a contract; empty before any."""
        return self._numbers.get(digest, Numbers())

    def _move_on(self, path: Path) -> None:
        root = self.root_of(path)
        if root is not None:
            self.move_on(root)
