"""Watches a few folders, not what is below them, for clients that do not watch files themselves.

Started only when such a client shows up. Events come on a thread of watchdog's; `changed` is
called there and hops to the event loop itself.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

_CHANGES = frozenset({"created", "modified", "moved", "deleted"})


class FolderWatcher(FileSystemEventHandler):
    """Calls `changed(path)` for every file changed in a followed folder."""

    def __init__(self, changed: Callable[[Path], None]) -> None:
        """Start with no folder."""
        self._changed = changed
        self._followed: set[Path] = set()
        self._observer = Observer()
        self._observer.daemon = True
        self._observer.start()

    def follow(self, folders: Iterable[Path]) -> None:
        """Watch these folders too, as far as they exist."""
        for folder in folders:
            if folder not in self._followed and folder.is_dir():
                self._observer.schedule(self, str(folder), recursive=False)
                self._followed.add(folder)

    def stop(self) -> None:
        """Watch no longer."""
        self._observer.stop()

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Pass on what changed content; opening and reading do not."""
        if event.event_type in _CHANGES:
            for name in {event.src_path, event.dest_path} - {""}:
                self._changed(Path(os.fsdecode(name)))
