"""The server as uvicorn's users know it: start-up, the wait for a signal, shutdown."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from tricorn import _core, connect, loops, settings, sockets
from tricorn.config import Config
from tricorn.errors import STARTUP_FAILURE, StartupError
from tricorn.listeners import Listener, open_listeners
from tricorn.logging import PRODUCT, access_hook, log_hook
from tricorn.proxy_headers import TrustedHosts, forwarded_hook
from tricorn.state import ServerState, limit_with_jitter
from tricorn.stopping import POLL_SECONDS, Stopping, pause, unless

if TYPE_CHECKING:
    from tricorn.lifespan import Lifespan

HANDLED_SIGNALS = (signal.SIGINT, signal.SIGTERM)
LIFESPAN_SECONDS = 30.0
"""For the lifespan shutdown of a server whose serve() is cancelled and that has no limit of its own."""

logger = logging.getLogger("tricorn.error")


class Server:
    """Serves one Config. Every method may be overridden; the attributes may be set from other threads."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.server_state = ServerState()
        self.started = False
        self.should_exit = False
        self.force_exit = False
        self.servers: list[Listener] = []
        self.lifespan: Lifespan
        self.last_notified = 0.0
        self.limit_max_requests = limit_with_jitter(config)
        self._captured_signals: list[int] = []
        self._news = asyncio.Event()
        self._settings: settings.Settings | None = None
        self._attachment: loops.Attachment | None = None
        self._stopping: Stopping | None = None
        self._hurry = False
        self._event_loop: asyncio.AbstractEventLoop | None = None

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve in an event loop of our own until a signal or `should_exit`."""
        try:
            factory = self.config.get_loop_factory()
        except StartupError as error:
            error.log()
            return
        loops.run(self.serve(sockets=sockets), factory)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve in the running event loop until a signal, `should_exit` or cancellation."""
        if self._is_prepared():  # before the signals are ours: an import that hangs can be interrupted
            with self.capture_signals():
                await self._serve(sockets)

    async def _serve(self, sockets: list[socket.socket] | None = None) -> None:
        if not self._is_prepared():
            return
        pid = os.getpid()
        logger.info("Started server process [%d]", pid)
        try:
            await self._serve_prepared(sockets)
        finally:
            self._release(sockets)
        if self.started:
            logger.info("Finished server process [%d]", pid)

    async def _serve_prepared(self, sockets: list[socket.socket] | None) -> None:
        try:
            await self.startup(sockets=sockets)
            if self.started:
                await self.main_loop()
        except BaseException:
            self._hurry = True
            raise
        finally:
            end = self.shutdown(sockets=sockets) if self.started else self._stop_application()
            await self._outlive_cancellation(end)

    async def _outlive_cancellation(self, main: Coroutine[Any, Any, None]) -> None:
        """Run `main` to its end, in a hurry once this task is cancelled, as often as that may be."""
        task = asyncio.ensure_future(main)
        cancelled = False
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                cancelled = self._hurry = True
                self._notify()
        task.result()
        if cancelled:
            raise asyncio.CancelledError

    def _is_prepared(self) -> bool:
        try:
            self._prepare()
        except StartupError as error:
            error.log()
            return False
        return True

    def _prepare(self) -> settings.Settings:
        """Check the configuration, read the certificates, import the application. Raises StartupError."""
        if self._settings is None:
            derived = settings.derive(self.config)
            for line in settings.without_effect(self.config):
                logger.warning(line)
            self.config.load()
            self.lifespan = self.config.lifespan_class(self.config)
            self._settings = derived
        return self._settings

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, then listen. `started` says whether both went well."""
        prepared = self._prepare()
        self._event_loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        await unless(lambda: self.should_exit, self.lifespan.startup())
        if self.lifespan.should_exit or self.should_exit:
            self.should_exit = True
            return
        try:
            self._listen(prepared, sockets)
        except OSError as error:
            logger.error(error)  # noqa: TRY400 one line
            await self._stop_application()
            sys.exit(STARTUP_FAILURE)  # as uvicorn: a program that only awaits serve() ends with 3 too
        self.started = True
        if sockets is None:
            self._log_started_message([sock for server in self.servers for sock in server.sockets])

    def _listen(self, prepared: settings.Settings, given: list[socket.socket] | None) -> None:
        self.servers = open_listeners(prepared, given, tls=self.config.is_ssl)
        event_loop = asyncio.get_running_loop()
        self._attachment = loops.attach(event_loop)
        core = _core.Server(
            self._attachment.core,
            event_loop,
            self.config.loaded_app,
            options=prepared.options,
            hooks=self._hooks(),
            state=self.lifespan.state,
        )
        self._add_routes(core)
        self.server_state.core = core
        self.server_state.default_headers = self.config.encoded_headers
        self._stopping = Stopping(core, self._attachment, forced=lambda: self.force_exit or self._hurry)
        for server in self.servers:
            for sock in server.sockets:
                core.listen(sock.fileno(), protocols=list(prepared.protocols), tls=prepared.tls if server.tls else None)
        self._attachment.wake()

    def _add_routes(self, core: _core.Server) -> None:
        if self.config.rpc == "asgi":
            return
        routes, why_not = connect.native_routes(self.config.loaded_app, root_path=self.config.root_path)
        core.add_routes(routes)
        if routes:
            logger.info("Native RPC for %d method%s", len(routes), "s" if len(routes) > 1 else "")
        elif why_not:
            logger.info("The application answers its RPCs itself: %s", why_not)

    def _hooks(self) -> _core.Hooks:
        trusted = TrustedHosts(self.config.forwarded_allow_ips or ())
        return _core.Hooks(
            access=access_hook(),
            log=log_hook,
            forwarded=forwarded_hook(trusted) if self.config.proxy_headers else None,
            drained=self._notify,
        )

    def _log_started_message(self, listeners: Sequence[socket.socket]) -> None:  # noqa: ARG002 uvicorn's signature
        for server in self.servers:
            if server.address is not None:
                where = sockets.describe(server.address, server.sockets[0], tls=server.tls)
                colored = {"color_message": "%s running on \x1b[1m%s\x1b[0m (Press CTRL+C to quit)"}
                logger.info("%s running on %s (Press CTRL+C to quit)", PRODUCT, where, extra=colored)

    async def main_loop(self) -> None:
        """Until a signal, `should_exit` or the limit of requests."""
        counter = 0
        while not await self.on_tick(counter):
            counter = (counter + 1) % 864_000
            await pause(self._news, POLL_SECONDS)

    async def on_tick(self, counter: int) -> bool:  # noqa: ARG002 for overriding methods
        """Called ten times a second; whether to stop."""
        await self._call_back()
        if self.should_exit:
            return True
        limit = self.limit_max_requests
        if limit is not None and self.server_state.total_requests >= limit:
            logger.warning("Maximum request limit of %d exceeded. Terminating process.", limit)
            return True
        return False

    async def _call_back(self) -> None:
        if self.config.callback_notify is not None and time.time() - self.last_notified > self.config.timeout_notify:
            self.last_notified = time.time()
            await self.config.callback_notify()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, let requests end, then the application. Bounded unless the user set no limit."""
        logger.info("Shutting down")
        self._stop_listening(sockets)
        if self._stopping is not None:
            await self._stopping.run(self._settings.graceful if self._settings else None)
        self._close_core()
        await self._stop_application()
        self._release(sockets)

    async def _stop_application(self) -> None:
        """The lifespan's shutdown, unless a second signal forces the end."""
        limit = self._settings.graceful if self._settings else None
        if self.force_exit:
            await self.lifespan.abandon()
        else:
            bound = limit or (LIFESPAN_SECONDS if self._hurry else None)
            await unless(lambda: self.force_exit, self.lifespan.shutdown(bound))

    def _stop_listening(self, given: list[socket.socket] | None) -> None:
        if self.server_state.core is not None and self._attachment is not None:
            self.server_state.core.stop_listening()
        for server in self.servers:
            server.close()
        sockets.close_all(given or [])

    def _close_core(self) -> None:
        if self.server_state.core is not None and self._attachment is not None:
            self.server_state.core.close()
            self._attachment.wake()

    def _release(self, given: list[socket.socket] | None) -> None:
        """Whatever happened, nothing of the core stays behind. Idempotent."""
        self._stop_listening(given)
        self._close_core()
        if self._attachment is not None:
            self._attachment.detach()
            self._attachment = None

    def _notify(self) -> None:
        self._news.set()
        if self._stopping is not None:
            self._stopping.notify()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 a signal handler's signature
        """A signal: the first one stops, a second one forces."""
        if self.should_exit and (sig == signal.SIGINT or self._captured_signals):
            self.force_exit = True
        self.should_exit = True
        self._captured_signals.append(sig)
        if self._event_loop is not None:
            with contextlib.suppress(RuntimeError):  # closed
                self._event_loop.call_soon_threadsafe(self._notify)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Handle signals, in the main thread; afterwards raise those that came for the handlers there were."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = {sig: signal.signal(sig, self.handle_exit) for sig in HANDLED_SIGNALS}
        try:
            yield
        finally:
            for sig, handler in previous.items():
                signal.signal(sig, signal.SIG_DFL if handler is None else handler)
        if self._captured_signals:
            _flush_output()
        for captured in reversed(self._captured_signals):
            signal.raise_signal(captured)


def _flush_output() -> None:
    """A signal that kills leaves no time for it."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()


def run(app: Callable[..., Any] | str, *, app_dir: str | None = None, **options: Any) -> None:
    """Serve `app` until a signal. `options` are Config's, by name. Exits with 3 if the server does not start."""
    if app_dir is not None:
        sys.path.insert(0, app_dir)
    try:
        server = Server(Config(app, **options))
    except StartupError as error:
        error.log()
        sys.exit(STARTUP_FAILURE)
    with contextlib.suppress(KeyboardInterrupt):
        server.run()
    if not server.started:
        sys.exit(STARTUP_FAILURE)
