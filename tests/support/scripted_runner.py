"""A peer on a real unix socket that answers as scripted; for what a healthy daemon never does."""

import asyncio
import re
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from infrarsi.frozen import Frozen
from infrarsi.wire.messages import Event, EventBody

Reply = Callable[[str, str], bytes]
"""Method and target to the raw bytes of one HTTP answer; the connection is then closed."""


OPEN = b"--stays open--"


def answer(content: Frozen | str, status: int = 200) -> bytes:
    text = content if isinstance(content, str) else content.model_dump_json()
    head = f"HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-type: application/json\r\n"
    body = text.encode()
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


def stream(*bodies: tuple[int, EventBody], cut: bool = False, ends: bool = True) -> bytes:
    """Server-sent events.

    With `cut` the connection breaks in the middle of a chunk; without `ends` it stays open.
    """
    head = (
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: text/event-stream\r\n\r\n"
    )
    chunks = ""
    for seq, body in bodies:
        event = Event(seq=seq, campaign="c1", at_s=float(seq), body=body)
        chunk = f"id: {seq}\r\ndata: {event.model_dump_json()}\r\n\r\n: ping\r\n\r\n"
        chunks += f"{len(chunk.encode()):x}\r\n{chunk}\r\n"
    if not ends:
        return f"{head}{chunks}".encode() + OPEN
    return f"{head}{chunks}{'ffff' if cut else '0'}\r\n\r\n".encode()


@contextmanager
def scripted_runner(path: Path, reply: Reply, bodies: list[bytes] | None = None) -> Generator[None]:
    """Answers as `reply` says; what requests carry is added to `bodies`."""
    loop = asyncio.new_event_loop()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            method, target, _ = head.split("\r\n", 1)[0].split(" ")
            if length := re.search(r"content-length: (\d+)", head, re.IGNORECASE):
                body = await reader.readexactly(int(length[1]))
                if bodies is not None:
                    bodies.append(body)
            raw = reply(method, target)
            writer.write(raw.removesuffix(OPEN))
            if raw.endswith(OPEN):
                await reader.read()
        writer.close()

    server = loop.run_until_complete(asyncio.start_unix_server(handle, path))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


def silent_socket(path: Path) -> None:
    """A socket file nobody listens on."""
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
