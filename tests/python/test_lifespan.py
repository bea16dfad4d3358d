"""The lifespan protocol: what is told, what is logged, and that nothing waits for ever."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from tricorn.asgi import Receive, Scope, Send
from tricorn.config import Config
from tricorn.lifespan import Lifespan

Log = list[str]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], Log]]:
    logger = logging.getLogger("tricorn.error")
    before = logger.level, logger.propagate
    logger.setLevel(logging.INFO)
    logger.propagate = False  # whatever another test has made of the parent logger
    logger.addHandler(caplog.handler)
    yield lambda: [record.getMessage().strip() for record in caplog.records]
    logger.removeHandler(caplog.handler)
    logger.setLevel(before[0])
    logger.propagate = before[1]


def lifespan_of(app: Callable[..., Awaitable[None]], **options: Any) -> Lifespan:
    config = Config(app, log_config=None, **options)
    config.load()
    return Lifespan(config)


async def obedient(scope: Scope, receive: Receive, send: Send) -> None:
    scope["state"]["key"] = dict(scope["asgi"])
    assert (await receive())["type"] == "lifespan.startup"
    await send({"type": "lifespan.startup.complete"})
    assert (await receive())["type"] == "lifespan.shutdown"
    await send({"type": "lifespan.shutdown.complete"})


async def raises_at_once(scope: Scope, receive: Receive, send: Send) -> None:
    raise ValueError(scope["type"])


async def refuses(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "lifespan.startup.failed", "message": "no database"})
    raise RuntimeError("not logged again")


async def hangs(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.Event().wait()


async def raises_at_shutdown(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    raise ValueError("late")


async def swallows_cancellation(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "lifespan.startup.complete"})
    for _ in range(2):
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue


async def whole(lifespan: Lifespan, limit: float | None = None) -> bool:
    await lifespan.startup()
    failed = lifespan.should_exit
    await lifespan.shutdown(limit)
    return failed


def test_an_obedient_application_leaves_its_state(log: Callable[[], Log]) -> None:
    lifespan = lifespan_of(obedient)
    assert not asyncio.run(whole(lifespan))
    assert lifespan.state == {"key": {"version": "3.0", "spec_version": "2.0"}}
    assert log() == [
        "Waiting for application startup.",
        "Application startup complete.",
        "Waiting for application shutdown.",
        "Application shutdown complete.",
    ]


def test_off_runs_nothing_and_says_nothing(log: Callable[[], Log]) -> None:
    assert not asyncio.run(whole(lifespan_of(raises_at_once, lifespan="off")))
    assert log() == []


def test_auto_takes_an_error_for_a_protocol_that_is_not_spoken(log: Callable[[], Log]) -> None:
    assert not asyncio.run(whole(lifespan_of(raises_at_once)))
    assert log() == [
        "Waiting for application startup.",
        "ASGI 'lifespan' protocol appears unsupported.",
        "Application startup complete.",
    ]


def test_on_takes_an_error_for_a_failed_startup(log: Callable[[], Log], caplog: pytest.LogCaptureFixture) -> None:
    assert asyncio.run(whole(lifespan_of(raises_at_once, lifespan="on")))
    assert log()[1:] == ["Exception in 'lifespan' protocol", "Application startup failed. Exiting."]
    exc_info = caplog.records[1].exc_info
    assert exc_info
    trace = exc_info[2]
    assert trace is not None
    assert trace.tb_frame.f_code is raises_at_once.__code__


def test_a_refused_startup_is_logged_once(log: Callable[[], Log]) -> None:
    assert asyncio.run(whole(lifespan_of(refuses)))
    assert log() == ["Waiting for application startup.", "no database", "Application startup failed. Exiting."]


def test_a_startup_that_hangs_ends_at_its_limit(log: Callable[[], Log]) -> None:
    assert asyncio.run(whole(lifespan_of(hangs, timeout_startup=0.05)))
    assert log()[1:] == [
        "No answer to lifespan.startup within 0.05 seconds.",
        "Application startup failed. Exiting.",
    ]


@pytest.mark.parametrize("mode", ["auto", "on"])
def test_an_error_at_shutdown_is_shown(mode: str, log: Callable[[], Log]) -> None:
    lifespan = lifespan_of(raises_at_shutdown, lifespan=mode)
    assert not asyncio.run(whole(lifespan))
    assert lifespan.should_exit
    assert log()[-2:] == ["Exception in 'lifespan' protocol", "Application shutdown failed. Exiting."]


def test_a_shutdown_that_swallows_its_cancellation_does_not_hang(log: Callable[[], Log]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(5):
            await whole(lifespan_of(swallows_cancellation), 0.05)

    asyncio.run(limited())
    assert log()[-2:] == [
        "No answer to lifespan.shutdown within 0.05 seconds.",
        "Application shutdown failed. Exiting.",
    ]


def test_cancelling_the_startup_ends_the_application() -> None:
    ended: list[bool] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(True)

    async def main() -> None:
        task = asyncio.create_task(lifespan_of(app).startup())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert ended == [True]


def test_a_message_out_of_order_raises_in_the_application(log: Callable[[], Log]) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "lifespan.startup.complete"})
        with pytest.raises(RuntimeError, match=r"'lifespan\.startup\.complete' at this point"):
            await send({"type": "lifespan.startup.complete"})
        with pytest.raises(RuntimeError, match=r"'http\.response\.start'"):
            await send({"type": "http.response.start"})

    assert not asyncio.run(whole(lifespan_of(app)))
    assert log()[-1] == "Application shutdown complete."
