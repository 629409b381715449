"""The language server over stdio: `infrarsi lsp`.

`build_server` makes one and registers every feature; nothing here holds state of its own.
"""

import logging
import sys

from infrarsi_server.lsp.features import (
    actions,
    diagnostics,
    documents,
    doctor,
    hover,
    requests,
    settings,
    watching,
)
from infrarsi_server.lsp.language_server import InfraRSIServer

_FEATURES = (settings, documents, actions, hover, requests, doctor, watching)


def build_server() -> InfraRSIServer:
    """A server with every feature registered, not yet started."""
    server = InfraRSIServer(diagnostics.analyse)
    for feature in _FEATURES:
        feature.register(server)
    return server


def main() -> None:
    """Serve on standard input and output until the client says exit. Logs go to standard error."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    build_server().start_io()
