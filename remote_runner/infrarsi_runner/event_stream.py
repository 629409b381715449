"""The journal's events as a server-sent stream that a client can take up again anywhere."""

import asyncio
from collections.abc import AsyncIterator

from fastapi.concurrency import run_in_threadpool
from sse_starlette import ServerSentEvent

from infrarsi_runner.journal import ENDED, Journal


async def stream_events(
    journal: Journal, campaign: str | None, after: int, leaving: asyncio.Event
) -> AsyncIterator[ServerSentEvent]:
    """Events behind `after`, those there are and those to come.

    A campaign's stream ends with the campaign, every stream with the daemon.
    """
    loop = asyncio.get_running_loop()
    news = asyncio.Event()
    forget = journal.listen(lambda: loop.call_soon_threadsafe(news.set))
    try:
        while not leaving.is_set():
            news.clear()
            over = campaign is not None and await run_in_threadpool(_has_ended, journal, campaign)
            found = await run_in_threadpool(journal.events_after, after, campaign)
            for event in found:
                after = event.seq
                yield ServerSentEvent(id=str(event.seq), data=event.model_dump_json())
            if not found:
                if over:
                    return
                await _first_of(news, leaving)
    finally:
        forget()


def _has_ended(journal: Journal, campaign: str) -> bool:
    return journal.view(campaign).state in ENDED


async def _first_of(*events: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
