"""Open, changed and closed documents: into the session, and on to a new analysis."""

import asyncio
from pathlib import Path

from lsprotocol import types

from infrarsi_server.lsp.language_server import InfraRSIServer
from infrarsi_server.lsp.to_lsp import path_of
from infrarsi_server.session import Document
from infrarsi_server.workspace.root import CONFIG_NAME


def register(server: InfraRSIServer) -> None:
    """Follow the client's documents."""

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def did_open(ls: InfraRSIServer, params: types.DidOpenTextDocumentParams) -> None:
        path = _put(ls, params.text_document.uri)
        if path is None:
            return
        root = await look_up_root(ls, path)
        if root is not None:
            ls.refresh(root, at_once=True)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(ls: InfraRSIServer, params: types.DidChangeTextDocumentParams) -> None:
        path = _put(ls, params.text_document.uri)
        root = None if path is None else ls.session.root_of(path)
        if root is not None:
            ls.analyses.poke(root)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(ls: InfraRSIServer, params: types.DidCloseTextDocumentParams) -> None:
        path = path_of(params.text_document.uri)
        if path is None:
            return
        ls.session.drop_document(path)
        root = ls.session.root_of(path)
        if root is not None:
            ls.analyses.poke(root)


async def look_up_root(ls: InfraRSIServer, path: Path) -> Path | None:
    """The workspace root of a file, from the session or else from disk."""
    if not ls.session.knows_root_of(path):
        root = await asyncio.to_thread(nearest_config, path.parent)
        ls.session.put_root(path.parent, root)
    return ls.session.root_of(path)


def nearest_config(folder: Path) -> Path | None:
    """The nearest folder upwards that holds an `infrarsi.toml`. Symbolic links stay as typed."""
    for candidate in (folder, *folder.parents):
        if (candidate / CONFIG_NAME).is_file():
            return candidate
    return None


def _put(ls: InfraRSIServer, uri: str) -> Path | None:
    path = path_of(uri)
    if path is None:
        return None
    found = ls.workspace.get_text_document(uri)
    document = Document(path=path, uri=uri, version=found.version, text=found.source)
    ls.session.put_document(document)
    return path
