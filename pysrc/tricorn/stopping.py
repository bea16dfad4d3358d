"""How a server lets its requests in flight end: in time, told near the end, cancelled, closed."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tricorn import _core
from tricorn.loops import Attachment

POLL_SECONDS = 0.1
NOTICE_SECONDS = 1.0
NOTICE_PART = 0.1
CANCEL_SECONDS = 1.0

T = TypeVar("T")

logger = logging.getLogger("tricorn.error")


class Stopping:
    """Ends the requests of one core server. `forced` says at any time that nobody wants to wait any longer."""

    def __init__(self, core: _core.Server, attachment: Attachment, *, forced: Callable[[], bool]) -> None:
        self._core = core
        self._attachment = attachment
        self._forced = forced
        self._news = asyncio.Event()

    def notify(self) -> None:
        """Something may have changed: look now rather than at the next tick."""
        self._news.set()

    async def run(self, limit: float | None) -> None:
        """Drain for at most `limit` seconds (None: without end), then cancel what is left. Never raises."""
        self._tell(self._core.drain)
        if await self._finished(limit):
            return
        told = not self._forced()
        count = self._tell(self._core.cancel)
        if told:
            logger.error("Cancel %s running task(s), timeout graceful shutdown exceeded", count)
        await self._until(self._no_requests, CANCEL_SECONDS, heed_force=False)

    async def _finished(self, limit: float | None) -> bool:
        """Whether everything ended in time; shortly before the end the requests are told."""
        notice = 0.0 if limit is None else min(max(NOTICE_SECONDS, limit * NOTICE_PART), limit / 2)
        if await self._all_gone(None if limit is None else limit - notice):
            return True
        if limit is None or self._forced():
            return False
        self._tell(self._core.disconnect)
        return await self._until(self._nothing_left, notice)

    async def _all_gone(self, seconds: float | None) -> bool:
        clock = asyncio.get_running_loop().time
        end = None if seconds is None else clock() + seconds
        phases = (
            ("", self._nothing_left, POLL_SECONDS),  # idle connections go at once: nothing to tell
            ("Waiting for connections to close. (CTRL+C to force quit)", self._no_connections, None),
            ("Waiting for background tasks to complete. (CTRL+C to force quit)", self._no_requests, None),
        )
        for message, done, most in phases:
            if not done() and not self._forced():
                if message:
                    logger.info(message)
                await self._until(done, _shorter(most, None if end is None else end - clock()))
        return self._nothing_left()

    async def _until(self, done: Callable[[], bool], seconds: float | None, *, heed_force: bool = True) -> bool:
        """Wait for `done`, at most `seconds` and only while nobody forces the end."""
        clock = asyncio.get_running_loop().time
        end = None if seconds is None else clock() + seconds
        while not done():
            left = POLL_SECONDS if end is None else min(POLL_SECONDS, end - clock())
            if left <= 0 or (heed_force and self._forced()):
                return False
            await pause(self._news, left)
        return True

    def _no_connections(self) -> bool:
        return self._core.connections == 0

    def _no_requests(self) -> bool:
        return self._core.requests == 0

    def _nothing_left(self) -> bool:
        return self._no_connections() and self._no_requests()

    def _tell(self, order: Callable[[], T]) -> T:
        answer = order()
        self._attachment.wake()
        return answer


async def pause(news: asyncio.Event, seconds: float) -> None:
    """Sleep, but not past a notice."""
    news.clear()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await news.wait()


async def unless(given_up: Callable[[], bool], main: Coroutine[Any, Any, None]) -> None:
    """Run `main` to its end, or cancel it as soon as `given_up` says so."""
    task = asyncio.ensure_future(main)
    try:
        while not task.done() and not given_up():
            await asyncio.wait({task}, timeout=POLL_SECONDS)
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
    if not task.cancelled():
        task.result()


def _shorter(one: float | None, other: float | None) -> float | None:
    given = [seconds for seconds in (one, other) if seconds is not None]
    return min(given, default=None)
