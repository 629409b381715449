"""Blocking calls beside the event loop that must not keep the process alive.

`asyncio.to_thread` is for calls that end by themselves: at exit its threads are waited for.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def call_in_background(call: Callable[[], T]) -> T:
    """What `call` returns or raises, from a thread that dies with the process.

    Cancelling the wait leaves the call running; its outcome is then dropped.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if outcome.done():
            return
        if error is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(result)  # pyright: ignore[reportArgumentType]

    def run() -> None:
        result, failure = None, None
        try:
            result = call()
        except Exception as error:  # noqa: BLE001 (handed to whoever waits)
            failure = error
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, daemon=True).start()
    return await outcome
