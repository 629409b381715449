"""Who may speak to the daemon: this user's processes, and none of those it runs itself.

Where jobs have no file system of their own they could open the daemon's socket; a job that starts
campaigns would decide about itself.
"""

import os
import socket
import struct
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from infrarsi_runner.process_tree import descends_from


class PeerCheckedProtocol(H11Protocol):
    """Closes a connection at once where the peer is not welcome."""

    def connection_made(self, transport: Any) -> None:
        """Look who connects before anything is read."""
        super().connection_made(transport)
        if not is_welcome(transport.get_extra_info("socket")):
            self.transport.abort()


def is_welcome(connection: Any) -> bool:
    """Whether the peer of a unix socket is of this user and not below this process."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", raw)
    own = os.getpid()
    return uid == os.getuid() and (pid == own or not descends_from(pid, own))
