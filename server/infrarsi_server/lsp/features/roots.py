"""Which folder a request is about."""

import asyncio
from pathlib import Path

from infrarsi.errors import UsageError
from infrarsi_server.lsp.features.documents import nearest_config
from infrarsi_server.lsp.language_server import InfraRSIServer
from infrarsi_server.lsp.to_lsp import path_of


async def asked_root(ls: InfraRSIServer, uri: str | None) -> Path:
    """The folder a request names, or the only one.

    Raises:
        UsageError: the URI is no folder's, or there are several to choose from, or none.
    """
    if uri is not None:
        path = path_of(uri)
        if path is None:
            raise UsageError(f"{uri} is not a file URI.", "Name a folder on this machine.")
        return path
    roots = await known_roots(ls)
    if len(roots) > 1:
        listed = ", ".join(map(str, roots))
        raise UsageError(f"There are several folders: {listed}.", "Name one as `root`.")
    if not roots:
        raise UsageError("No folder with an infrarsi.toml is open.", "Run: InfraRSI: Init")
    return roots[0]


async def known_roots(ls: InfraRSIServer) -> tuple[Path, ...]:
    """The roots of open documents and of the workspace's folders, sorted."""
    folders = [path_of(folder.uri) for folder in ls.workspace.folders.values()]
    root_uri = ls.workspace.root_uri
    folders.append(path_of(root_uri) if root_uri else None)
    for folder in {folder for folder in folders if folder is not None}:
        root = await asyncio.to_thread(nearest_config, folder)
        ls.session.put_root(folder, root)
    return ls.session.roots()
