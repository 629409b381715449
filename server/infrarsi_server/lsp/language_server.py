"""InfraRSIServer: pygls's server with our session, settings and two habits of its own.

Documents are synchronised whole, because pygls splits lines where editors do not and would apply
an incremental change one line off behind a form feed. What goes wrong inside a handler goes to
the log, never into a pop-up while a person types.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from cattrs import Converter
from lsprotocol import types
from pygls.exceptions import JsonRpcException, PyglsError
from pygls.lsp.server import LanguageServer
from pygls.protocol import JsonRPCRequestMessage, default_converter

from infrarsi.errors import UsageError
from infrarsi_server.lsp.debounce import Debounce
from infrarsi_server.lsp.to_lsp import Guard
from infrarsi_server.session import Session

if TYPE_CHECKING:
    from infrarsi_server.lsp.watcher import FolderWatcher

logger = logging.getLogger(__name__)

QUIET_S = 0.2
"""How long typing must rest before the documents are read again."""


class InfraRSIServer(LanguageServer):
    """The server's state beside pygls's own; features are registered on it from outside."""

    def __init__(
        self,
        analyse: Callable[["InfraRSIServer", Path], Awaitable[None]],
        environ: Mapping[str, str],
    ) -> None:
        """Nothing is started yet.

        Args:
            analyse: reads one root again and publishes what it found.
            environ: where the job's interpreter and the runner's state folder are looked up.
        """
        super().__init__(
            "infrarsi",
            server_version(),
            types.TextDocumentSyncKind.Full,
            converter_factory=plain_converter,
        )
        self.environ = environ
        self.session = Session()
        self.guard: Guard = "warn"
        self.trusted = True
        self.is_leaving = False
        self.doctors: set[asyncio.Task[None]] = set()
        self.numbers_asked_s: dict[str, float] = {}
        self.watcher: FolderWatcher | None = None
        self.published: dict[Path, frozenset[str]] = {}
        self.analyses: Debounce[Path] = Debounce(QUIET_S, lambda root: analyse(self, root))

    def report_server_error(
        self, error: Exception, source: type[PyglsError] | type[JsonRpcException]
    ) -> None:
        """Log it. A person who types is not told of every keystroke that failed."""
        logger.error("%s: %s", source.__name__, error)

    def refresh(self, root: Path, *, at_once: bool = False) -> None:
        """Something under the root changed: read it again when it is quiet."""
        self.session.move_on(root)
        self.analyses.poke(root, at_once=at_once)

    def need_trust(self) -> None:
        """Refuse what may run a program of the workspace's.

        Raises:
            UsageError: the workspace is not trusted.
        """
        if not self.trusted:
            raise UsageError("This workspace is not trusted.", "Trust it in the editor first.")

    def tell(self, message: str, kind: types.MessageType = types.MessageType.Warning) -> None:
        """Show a message to the person."""
        self.window_show_message(types.ShowMessageParams(type=kind, message=message))


def plain_converter() -> Converter:
    """The protocol's converter, with parameters of our own requests left as plain dicts."""
    converter = default_converter()
    converter.register_structure_hook(JsonRPCRequestMessage, lambda obj, cls: cls(**obj))
    return converter


def server_version() -> str:
    """The installed version, or 0 where it runs from a bare source tree."""
    try:
        return version("infrarsi")
    except PackageNotFoundError:
        return "0"
