"""Who may speak to the daemon."""

import socket
import subprocess
import sys
from pathlib import Path

from infrarsi_runner.peers import is_welcome

KNOCK = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"


def test_processes_below_the_daemon_are_turned_away_and_it_itself_is_not(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        with subprocess.Popen([sys.executable, "-c", KNOCK, path]):
            job, _ = server.accept()
            with job:
                assert not is_welcome(job)
        with socket.socket(socket.AF_UNIX) as own:
            own.connect(path)
            peer, _ = server.accept()
            with peer:
                assert is_welcome(peer)
