"""Debounce: quiet first, newest wins, one run at a time."""

import asyncio
import logging

import pytest

from infrarsi_server.lsp.debounce import Debounce


class Recorder:
    """Work that holds until it is let go, and counts."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.started = asyncio.Event()
        self.gate = asyncio.Event()

    async def __call__(self, key: str) -> None:
        self.runs.append(key)
        self.started.set()
        await self.gate.wait()


async def test_many_pokes_make_one_run() -> None:
    recorder = Recorder()
    recorder.gate.set()
    debounce = Debounce(0.02, recorder)
    for _ in range(20):
        debounce.poke("a")
    assert await debounce.settled("a", 5)
    assert recorder.runs == ["a"]


async def test_a_poke_during_a_run_makes_exactly_one_more() -> None:
    recorder = Recorder()
    debounce = Debounce(0.01, recorder)
    debounce.poke("a", at_once=True)
    await recorder.started.wait()
    debounce.poke("a")
    debounce.poke("a")
    recorder.gate.set()
    assert await debounce.settled("a", 5)
    assert recorder.runs == ["a", "a"]


async def test_the_first_run_at_once_does_not_wait_for_quiet() -> None:
    recorder = Recorder()
    debounce = Debounce(3600, recorder)
    debounce.poke("a", at_once=True)
    await asyncio.wait_for(recorder.started.wait(), 5)
    recorder.gate.set()
    assert await debounce.settled("a", 5)


async def test_keys_do_not_wait_for_each_other() -> None:
    recorder = Recorder()
    debounce = Debounce(0, recorder)
    debounce.poke("a", at_once=True)
    await recorder.started.wait()
    recorder.started.clear()
    debounce.poke("b", at_once=True)
    await asyncio.wait_for(recorder.started.wait(), 5)
    assert recorder.runs == ["a", "b"]
    debounce.cancel()


async def test_waiting_for_quiet_gives_up_after_its_time() -> None:
    recorder = Recorder()
    debounce = Debounce(0, recorder)
    debounce.poke("a", at_once=True)
    assert not await debounce.settled("a", 0.05)
    debounce.cancel()


async def test_work_that_raises_is_logged_and_runs_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    runs: list[str] = []

    async def work(key: str) -> None:
        runs.append(key)
        raise ValueError("odd code")

    debounce = Debounce(0, work)
    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            debounce.poke("a", at_once=True)
            assert await debounce.settled("a", 5)
    assert runs == ["a", "a"]
    assert "odd code" in caplog.text
