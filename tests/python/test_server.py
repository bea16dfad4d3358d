"""The Server object in a caller's hands: its own loop, its own thread, cancellation, overriding."""

import asyncio
import contextlib
import http.client
import logging
import signal
import socket
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from types import FrameType
from typing import Any

import pytest
import uvloop

from tricorn import Config, Server, loops
from tricorn.asgi import Message, Receive, Scope, Send

LOOPS: list[loops.LoopFactory] = [loops.new_event_loop, asyncio.SelectorEventLoop, uvloop.new_event_loop]


class App:
    """Answers its path, and remembers what happened to it."""

    def __init__(self) -> None:
        self.events: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.lifespan(receive, send)
            return
        if scope["path"] == "/endless":
            try:
                await asyncio.sleep(3600)
            finally:
                self.events.append("cancelled")
        body = scope["path"].encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})

    async def lifespan(self, receive: Receive, send: Callable[[Message], Any]) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        self.events.append("started")
        await receive()
        self.events.append("stopped")
        await send({"type": "lifespan.shutdown.complete"})


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture(params=LOOPS, ids=["tricorn", "asyncio", "uvloop"])
def factory(request: pytest.FixtureRequest) -> loops.LoopFactory:
    made: loops.LoopFactory = request.param
    return made


@pytest.fixture(autouse=True)
def _signals_restored() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    yield
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def server_of(app: App, kind: type[Server] = Server, **options: Any) -> Server:
    options.setdefault("port", 0)
    return kind(Config(app, log_config=None, **options))


def port_of(server: Server) -> int:
    return int(server.servers[0].sockets[0].getsockname()[1])


async def started(server: Server) -> None:
    async with asyncio.timeout(10):
        while not server.started:  # noqa: ASYNC110 a plain attribute, as uvicorn's users poll it
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def serving(server: Server) -> AsyncGenerator[asyncio.Task[None]]:
    task = asyncio.create_task(server.serve())
    await started(server)
    yield task
    async with asyncio.timeout(10):
        await asyncio.wait({task})


async def get(port: int, path: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        return await reader.readexactly(len(path))
    finally:
        writer.close()


def test_serves_in_the_callers_loop_and_leaves_it_running(app: App, factory: loops.LoopFactory) -> None:
    async def main() -> None:
        server = server_of(app)
        async with serving(server):
            assert await get(port_of(server), "/a") == b"/a"
            assert server.server_state.total_requests == 1
            server.should_exit = True
        await asyncio.sleep(0.01)
        assert server.server_state.total_requests == 1

    loops.run(main(), factory)
    assert app.events == ["started", "stopped"]


def test_two_servers_share_a_loop(app: App, factory: loops.LoopFactory) -> None:
    async def main() -> None:
        one, two = server_of(app), server_of(app)
        async with serving(one), serving(two):
            assert await get(port_of(two), "/a") == b"/a"
            two.should_exit = True
            await asyncio.sleep(0.3)
            assert await get(port_of(one), "/b") == b"/b"
            one.should_exit = True

    loops.run(main(), factory)


def test_cancelling_serve_is_quick_and_tidy(app: App, factory: loops.LoopFactory) -> None:
    async def main() -> None:
        server = server_of(app)
        async with serving(server) as task:
            request = asyncio.create_task(get(port_of(server), "/endless"))
            await asyncio.sleep(0.2)
            task.cancel()
            begun = time.monotonic()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert time.monotonic() - begun < 3
            await asyncio.wait({request})
            assert request.exception() is not None

    loops.run(main(), factory)
    assert app.events == ["started", "cancelled", "stopped"]


def test_cancelling_again_and_again_is_still_tidy(app: App) -> None:
    async def main() -> None:
        async with serving(server_of(app)) as task:
            while not task.done():
                task.cancel()
                await asyncio.sleep(0)

    loops.run(main(), None)
    assert app.events == ["started", "stopped"]


def test_cancelling_during_a_graceful_stop_ends_the_wait(app: App) -> None:
    async def main() -> None:
        server = server_of(app)
        async with serving(server) as task:
            request = asyncio.create_task(get(port_of(server), "/endless"))
            await asyncio.sleep(0.2)
            server.should_exit = True
            await asyncio.sleep(0.5)
            assert not task.done()
            task.cancel()
            await asyncio.wait({request})
            request.exception()

    loops.run(main(), None)
    assert app.events == ["started", "cancelled", "stopped"]


def test_runs_in_a_thread_until_should_exit_is_set(app: App) -> None:
    server = server_of(app)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    connection = http.client.HTTPConnection("127.0.0.1", port_of(server), timeout=5)
    connection.request("GET", "/t")
    assert connection.getresponse().read() == b"/t"
    connection.close()
    server.should_exit = True
    thread.join(5)
    assert not thread.is_alive()
    assert app.events == ["started", "stopped"]


def test_sockets_of_the_callers_are_served_and_closed(app: App, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def main() -> None:
        server = server_of(app)
        sock = socket.socket()
        sock.bind(("127.0.0.1", 0))
        task = asyncio.create_task(server.serve(sockets=[sock]))
        await started(server)
        assert await get(sock.getsockname()[1], "/s") == b"/s"
        assert port_of(server) == sock.getsockname()[1]
        server.should_exit = True
        await task
        assert sock.fileno() == -1

    loops.run(main(), None)
    assert not [record for record in caplog.records if "running on" in record.getMessage()]


def test_a_taken_port_stops_the_application_and_exits_with_3(app: App) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            await server_of(app, port=taken.getsockname()[1]).serve()

    with pytest.raises(SystemExit) as ended:
        loops.run(main(), None)
    assert ended.value.code == 3
    assert app.events == ["started", "stopped"]


def test_a_signal_during_startup_still_ends_what_has_started() -> None:
    events: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        server.should_exit = True
        await send({"type": "lifespan.startup.complete"})
        events.append(str((await receive())["type"]))
        await send({"type": "lifespan.shutdown.complete"})

    server = Server(Config(app, log_config=None, port=0))
    server.run()
    assert events == ["lifespan.shutdown"]
    assert not server.started


def test_the_handler_is_a_bound_method_of_the_server(app: App) -> None:
    async def main() -> None:
        server = server_of(app)
        async with serving(server):
            handler: Any = signal.getsignal(signal.SIGTERM)
            assert handler.__self__ is server
            handler(signal.SIGTERM, None)
            assert server.should_exit
            server._captured_signals.clear()  # it was none: nothing to raise again

    loops.run(main(), None)


def test_captured_signals_are_raised_again_for_the_handlers_there_were(app: App) -> None:
    raised: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: raised.append(number))

    async def main() -> None:
        server = server_of(app)
        async with serving(server):
            signal.raise_signal(signal.SIGTERM)

    try:
        loops.run(main(), None)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert raised == [signal.SIGTERM]


class Overriding(Server):
    """Overrides what programs in the wild override."""

    called: list[str]

    def install_signal_handlers(self) -> None:
        """Older uvicorns called it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        self.called = ["capture_signals"]
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.called.append("startup")

    async def main_loop(self) -> None:
        self.called.append("main_loop")
        await super().main_loop()

    async def on_tick(self, counter: int) -> bool:
        if counter == 2:
            self.handle_exit(signal.SIGTERM, None)
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.called.append("handle_exit")
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.called.append("shutdown")
        await super().shutdown(sockets=sockets)


def test_overriding_methods_are_called(app: App) -> None:
    server = server_of(app, Overriding)
    assert isinstance(server, Overriding)
    server.run()
    assert server.called == ["capture_signals", "startup", "main_loop", "handle_exit", "shutdown"]
    assert app.events == ["started", "stopped"]


def test_the_steps_can_be_taken_one_by_one(app: App) -> None:
    async def main() -> None:
        server = server_of(app)
        server.config.load()
        await server.startup()
        assert await get(port_of(server), "/x") == b"/x"
        server.should_exit = True
        await server.main_loop()
        await server.shutdown()
        assert server.servers[0].sockets == ()

    loops.run(main(), None)
    assert app.events == ["started", "stopped"]


def test_an_error_on_a_tick_is_raised_after_a_tidy_end(app: App) -> None:
    async def notify() -> None:
        raise LookupError("callback")

    server = server_of(app, callback_notify=notify)
    with pytest.raises(LookupError, match="callback"):
        server.run()
    assert app.events == ["started", "stopped"]


def test_a_tick_calls_back_at_its_interval(app: App) -> None:
    calls: list[float] = []

    async def notify() -> None:
        calls.append(time.monotonic())
        server.should_exit = len(calls) == 2

    server = server_of(app, callback_notify=notify, timeout_notify=0.2)
    server.run()
    assert calls[1] - calls[0] >= 0.2
