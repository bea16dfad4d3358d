"""Choosing an event loop, and running one to its end."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import AsyncIterator

import pytest
import uvloop

from tricorn import loops
from tricorn.errors import StartupError


@pytest.mark.parametrize("name", ["auto", "asyncio", "tricorn.loops:new_event_loop"])
def test_our_own_loop(name: str) -> None:
    factory = loops.factory_of(name)
    assert factory is not None
    event_loop = factory()
    assert isinstance(event_loop, loops.UvEventLoop)
    event_loop.close()


def test_other_loops() -> None:
    assert loops.factory_of("uvloop") is uvloop.new_event_loop
    assert loops.factory_of("none") is None
    assert loops.factory_of("asyncio:SelectorEventLoop") is asyncio.SelectorEventLoop


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("no_such:loop", "Cannot use event loop 'no_such:loop'. Could not import module \"no_such\"."),
        ("os:sep", "Cannot use event loop 'os:sep'. It is not callable."),
        ("nonsense", "Cannot use event loop 'nonsense'. Import string"),
    ],
)
def test_a_loop_that_cannot_be_had_is_one_line(name: str, text: str) -> None:
    with pytest.raises(StartupError) as raised:
        loops.factory_of(name)
    assert str(raised.value).startswith(text)


def test_a_task_that_swallows_its_cancellation_does_not_hold_up_the_end() -> None:
    release = threading.Event()

    async def stubborn() -> None:
        while not release.is_set():
            try:
                await asyncio.sleep(0.05 if release.is_set() else 3600)
            except asyncio.CancelledError:
                continue

    async def main() -> None:
        tasks.append(asyncio.create_task(stubborn()))
        await asyncio.sleep(0)

    tasks: list[asyncio.Task[None]] = []
    loops.run(main(), asyncio.new_event_loop)
    assert not tasks[0].done()
    tasks[0]._log_destroy_pending = False  # ty: ignore[missing-attribute]
    release.set()


def test_generators_are_closed_and_other_tasks_cancelled() -> None:
    ended: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            ended.append("generator")

    async def other() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("task")

    async def main() -> None:
        tasks.append(asyncio.create_task(other()))
        generators.append(numbers())
        await anext(generators[0])

    tasks: list[asyncio.Task[None]] = []
    generators: list[AsyncIterator[int]] = []
    loops.run(main(), None)
    assert sorted(ended) == ["generator", "task"]


def test_an_interrupt_lets_the_main_coroutine_tidy_up() -> None:
    ended: list[bool] = []

    async def main() -> None:
        asyncio.get_running_loop().call_later(0.01, signal.raise_signal, signal.SIGINT)
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.01)
            ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        loops.run(main(), asyncio.new_event_loop)
    assert ended == [True]


@pytest.mark.parametrize("remove", [False, True])
def test_an_interrupt_wakes_our_loop_when_it_sleeps_without_timers(remove: bool) -> None:  # noqa: FBT001 a parameter
    async def main() -> None:
        event_loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM) if remove else ():
            event_loop.add_signal_handler(number, print)
            event_loop.remove_signal_handler(number)
        await asyncio.Event().wait()

    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        loops.run(main(), loops.new_event_loop)
    signal.signal(signal.SIGTERM, before)
    timer.join()


def test_a_plain_signal_handler_runs_while_our_loop_sleeps() -> None:
    hits: list[float] = []
    before = signal.signal(signal.SIGUSR2, lambda *_: hits.append(time.monotonic()))

    async def main() -> None:
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR2))
        timer.start()
        begun = time.monotonic()
        await asyncio.sleep(1)
        assert hits[0] - begun < 0.8
        timer.join()

    try:
        loops.run(main(), loops.new_event_loop)
    finally:
        signal.signal(signal.SIGUSR2, before)
