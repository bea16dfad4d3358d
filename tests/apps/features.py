"""What applications do on asyncio, one function each: GET /NAME runs it inside the server and says ok."""

import asyncio
import contextvars
import sys

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread

from tests.apps import features_io  # registers them
from tests.apps.feature import feature, features
from tests.apps.tools import Receive, Scope, Send, answer, lifespan

__all__ = ["app", "features", "features_io"]


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        return await lifespan(scope, receive, send)
    await features[scope["path"].removeprefix("/")]()
    return await answer(send)


@feature
async def timers_fire_in_order() -> None:
    loop, fired = asyncio.get_running_loop(), []
    for delay in (0.03, 0.01, 0.02):
        loop.call_later(delay, fired.append, delay)
    loop.call_later(0.015, fired.append, "cancelled").cancel()
    began = loop.time()
    await asyncio.sleep(0.05)
    assert fired == [0.01, 0.02, 0.03], fired
    assert loop.time() - began >= 0.049


@feature
async def ready_callbacks_run_before_timers() -> None:
    loop, ran = asyncio.get_running_loop(), []
    loop.call_later(0.05, ran.append, "later")
    loop.call_soon(ran.append, "soon")
    await asyncio.sleep(0.2)
    assert ran == ["soon", "later"], ran


@feature
async def busy_callbacks_starve_nobody() -> None:
    """A task that never waits for I/O lets others have theirs."""
    stop = asyncio.Event()

    async def spin() -> None:
        while not stop.is_set():  # noqa: ASYNC110 that is the point
            await asyncio.sleep(0)

    async def connect(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stop.set()
        writer.close()

    spinning = asyncio.create_task(spin())
    server = await asyncio.start_server(connect, "127.0.0.1", 0)
    async with server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        async with asyncio.timeout(30):
            await spinning
        writer.close()
        await writer.wait_closed()


@feature
async def timeouts_and_cancellation() -> None:
    for limited in (asyncio.wait_for(asyncio.sleep(1000), 0.01), timed_out()):
        try:
            await limited
        except TimeoutError:
            continue
        raise AssertionError("no timeout")
    task = asyncio.create_task(asyncio.sleep(1000))
    await asyncio.sleep(0)
    task.cancel()
    done, _ = await asyncio.wait({task})
    assert done == {task}
    assert task.cancelled()


async def timed_out() -> None:
    async with asyncio.timeout(0.01):
        await asyncio.sleep(1000)


@feature
async def task_groups() -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(asyncio.sleep(0.001, number)) for number in range(50)]
    assert [task.result() for task in tasks] == list(range(50))
    failures: list[BaseException] = []
    try:
        async with asyncio.TaskGroup() as group:
            sibling = group.create_task(asyncio.sleep(1000))
            group.create_task(fail())
    except* ZeroDivisionError as group_of_errors:
        failures.extend(group_of_errors.exceptions)
    assert len(failures) == 1
    assert sibling.cancelled()


async def fail() -> None:
    await asyncio.sleep(0)
    raise ZeroDivisionError


@feature
async def the_current_task_is_the_requests_own() -> None:
    task = asyncio.current_task()
    assert task is not None
    assert task in asyncio.all_tasks()
    assert not task.done()
    asyncio.get_running_loop().call_later(0.01, task.cancel)
    try:
        await asyncio.sleep(1000)
    except asyncio.CancelledError:
        task.uncancel()
        return
    raise AssertionError("not cancelled")


@feature
async def context_variables() -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)
    variable.set(1)
    seen: list[int] = []
    asyncio.get_running_loop().call_soon(lambda: seen.append(variable.get()))
    await asyncio.create_task(child(variable, seen))
    assert seen == [1, 1]
    assert variable.get() == 1


async def child(variable: contextvars.ContextVar[int], seen: list[int]) -> None:
    seen.append(variable.get())
    variable.set(2)


@feature
async def anyio_everything() -> None:
    results: list[object] = []
    with anyio.move_on_after(0.01) as scope:
        await anyio.sleep(1000)
    assert scope.cancelled_caught
    sender, receiver = anyio.create_memory_object_stream[int](1)
    async with anyio.create_task_group() as group, sender, receiver:
        group.start_soon(anyio.sleep, 1000)
        for number in range(3):
            group.start_soon(sender.send, number)
        results += [await receiver.receive() for _ in range(3)]
        group.cancel_scope.cancel()
    assert sorted(results) == [0, 1, 2]  # ty: ignore[invalid-argument-type]
    assert await anyio.to_thread.run_sync(lambda: 42) == 42
    done = await anyio.run_process([sys.executable, "-c", "print(6 * 7)"])
    assert done.stdout == b"42\n"
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, lambda stream: stream.send(b"hello"))
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            assert await stream.receive() == b"hello"
        group.cancel_scope.cancel()
    with anyio.fail_after(30):
        await anyio.lowlevel.checkpoint()


@feature
async def asynchronous_generators() -> None:
    closed: list[str] = []

    async def numbers():  # noqa: ANN202 an asynchronous generator of int
        try:
            while True:
                yield 1
                await asyncio.sleep(0)
        finally:
            closed.append("closed")

    generator = numbers()
    async for _ in generator:
        break
    await generator.aclose()
    assert closed == ["closed"]
