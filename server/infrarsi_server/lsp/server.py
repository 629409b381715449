"""The language server over stdio: `infrarsi lsp`.

`build_server` makes one and registers every feature; nothing here holds state of its own.
"""

import logging
import os
import sys
from collections.abc import Mapping

from infrarsi_server.lsp.features import (
    actions,
    diagnostics,
    doctor,
    documents,
    hover,
    settings,
    setup,
    status,
    watching,
)
from infrarsi_server.lsp.language_server import InfraRSIServer

_FEATURES = (settings, documents, actions, hover, setup, status, doctor, watching)


def build_server(environ: Mapping[str, str]) -> InfraRSIServer:
    """A server with every feature registered, not yet started.

    Args:
        environ: where the job's interpreter and the runner's state folder are looked up.
    """
    server = InfraRSIServer(diagnostics.analyse, environ)
    for feature in _FEATURES:
        feature.register(server)
    return server


def main() -> None:
    """Serve on standard input and output until the client says exit. Logs go to standard error."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    build_server(os.environ).start_io()
