"""Debounce: run work for a key once it has been quiet, newest wins, one run at a time a key."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

logger = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)


class Debounce(Generic[K]):
    """Calls `work(key)` when `delay_s` have passed since the last poke of that key.

    A poke during a run makes it run once more afterwards. Everything happens on one event loop;
    `work` itself hands what is slow to a thread. What it raises is logged: the next poke runs it
    again.
    """

    def __init__(self, delay_s: float, work: Callable[[K], Awaitable[None]]) -> None:
        """Keep the delay in s and the work; nothing runs before the first poke."""
        self._delay_s = delay_s
        self._work = work
        self._pokes: dict[K, asyncio.Event] = {}
        self._tasks: dict[K, asyncio.Task[None]] = {}

    def poke(self, key: K, *, at_once: bool = False) -> None:
        """Ask for a run: after the delay, or at once where nothing of that key is under way."""
        running = self._tasks.get(key)
        if running is not None:
            self._pokes[key].set()
            return
        self._pokes[key] = asyncio.Event()
        delay_s = 0.0 if at_once else self._delay_s
        self._tasks[key] = asyncio.create_task(self._serve(key, delay_s))

    async def settled(self, key: K, timeout_s: float) -> bool:
        """Wait until nothing of that key is asked for or running; False after `timeout_s`."""
        task = self._tasks.get(key)
        if task is None:
            return True
        done, _ = await asyncio.wait({task}, timeout=timeout_s)
        return bool(done)

    def cancel(self) -> None:
        """Drop what is asked for or running."""
        for task in self._tasks.values():
            task.cancel()

    async def _serve(self, key: K, delay_s: float) -> None:
        try:
            await self._wait_for_quiet(key, delay_s)
            while True:
                self._pokes[key].clear()
                await self._run(key)
                if not self._pokes[key].is_set():
                    return
                await self._wait_for_quiet(key, self._delay_s)
        finally:
            del self._tasks[key]

    async def _wait_for_quiet(self, key: K, delay_s: float) -> None:
        poked = self._pokes[key]
        while True:
            poked.clear()
            try:
                await asyncio.wait_for(poked.wait(), delay_s)
            except TimeoutError:
                return
            delay_s = self._delay_s

    async def _run(self, key: K) -> None:
        try:
            await self._work(key)
        except Exception:
            logger.exception("Work for %s failed", key)
