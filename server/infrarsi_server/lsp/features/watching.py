"""Follows `infrarsi.toml`, the lock and the jobs' files where they change outside the editor.

The client is asked to watch where it offers that; else the jobs' own folders are watched here.
"""

import asyncio
from pathlib import Path

from lsprotocol import types

from infrarsi_server.lsp.analysis import LISTINGS
from infrarsi_server.lsp.features.documents import look_up_root
from infrarsi_server.lsp.language_server import InfraRSIServer
from infrarsi_server.lsp.to_lsp import path_of
from infrarsi_server.session import Analysis
from infrarsi_server.workspace.root import CONFIG_NAME, LOCK_NAME

_WATCHED = (f"**/{CONFIG_NAME}", f"**/{LOCK_NAME}", "**/*.{py,toml,yaml,yml,json}")
_LOCK_FILE = Path(LOCK_NAME).name


def register(server: InfraRSIServer) -> None:
    """Ask the client to watch, or watch."""

    @server.feature(types.INITIALIZED)
    def initialized(ls: InfraRSIServer, _: types.InitializedParams) -> None:
        if _client_watches(ls):
            ls.client_register_capability(types.RegistrationParams(registrations=[_registration()]))
        else:
            _watch_here(ls)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def did_change(ls: InfraRSIServer, params: types.DidChangeWatchedFilesParams) -> None:
        for change in params.changes:
            path = path_of(change.uri)
            if path is not None:
                await file_changed(ls, path)

    @server.feature(types.SHUTDOWN)
    def shutdown(ls: InfraRSIServer, *_: object) -> None:
        ls.is_leaving = True
        ls.analyses.cancel()
        if ls.watcher is not None:
            ls.watcher.stop()


async def file_changed(ls: InfraRSIServer, path: Path) -> None:
    """A file changed on disk: read again whatever depends on it."""
    LISTINGS.forget()
    if path.name in (CONFIG_NAME, _LOCK_FILE, Path(LOCK_NAME).parent.name):
        await roots_changed(ls)
        return
    root = ls.session.root_of(path)
    analysis = None if root is None else ls.session.analysis(root)
    if root is None or analysis is None or ls.session.document(path) is not None:
        return
    if path.relative_to(root).as_posix() in analysis.texts:
        ls.refresh(root)


async def roots_changed(ls: InfraRSIServer) -> None:
    """A configuration or lock came, changed or went: look up every open document's root again."""
    known = set(ls.session.forget_roots())
    for document in ls.session.documents():
        root = await look_up_root(ls, document.path)
        known |= set() if root is None else {root}
    for root in known:
        ls.refresh(root)


def follow_analysis(ls: InfraRSIServer, analysis: Analysis) -> None:
    """Watch the folders of the files an analysis stands on, where the client does not."""
    if ls.watcher is not None:
        root = analysis.snapshot.root
        folders = {root, (root / LOCK_NAME).parent}
        folders |= {(root / file).parent for file in analysis.texts}
        ls.watcher.follow(sorted(folders))


def _client_watches(ls: InfraRSIServer) -> bool:
    workspace = ls.client_capabilities.workspace
    watched = workspace.did_change_watched_files if workspace else None
    return bool(watched and watched.dynamic_registration)


def _registration() -> types.Registration:
    return types.Registration(
        id="infrarsi-files",
        method=types.WORKSPACE_DID_CHANGE_WATCHED_FILES,
        register_options=types.DidChangeWatchedFilesRegistrationOptions(
            watchers=[types.FileSystemWatcher(glob_pattern=glob) for glob in _WATCHED]
        ),
    )


def _watch_here(ls: InfraRSIServer) -> None:
    from infrarsi_server.lsp.watcher import FolderWatcher

    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()

    def on_loop(path: Path) -> None:
        task = loop.create_task(file_changed(ls, path))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def changed(path: Path) -> None:
        loop.call_soon_threadsafe(on_loop, path)

    ls.watcher = FolderWatcher(changed)
