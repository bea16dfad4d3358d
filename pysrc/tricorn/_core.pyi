"""The C++ core: event loop, TLS, HTTP/1.1 and HTTP/2 sessions, the ASGI bridge."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
ASGIApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

class Loop:
    """One libuv loop. Not thread-safe except for `wake`; one per event loop.

    `flush` sends what is due, `poll` does one round of I/O with the GIL released, `dispatch` enters Python
    for every request that is ready.
    """

    def __init__(self) -> None: ...
    @property
    def backend_fd(self) -> int:
        """Libuv's own epoll or kqueue descriptor: readable when libuv has work."""
    def watch(self, fd: int) -> None:
        """Watch the stock selector's descriptor, so that `poll` also wakes for it. Once. Raises OSError."""
    def poll(self, timeout: float | None) -> bool:
        """Flush, then wait for I/O at most `timeout` seconds (None: without end) unless requests are ready.

        Returns whether the watched descriptor is readable. Releases the GIL. Negative timeouts count as 0.
        """
    @property
    def ready(self) -> bool:
        """Whether `dispatch` has something to do."""
    def dispatch(self) -> None:
        """Enter Python once for every ready request. Never raises for what an application did."""
    def turn(self) -> float | None:
        """Flush, poll without waiting, dispatch, flush: for a host loop that is not ours.

        Returns the seconds until libuv's next timer, None if there is none.
        """
    @property
    def on_dirty(self) -> Callable[[], None] | None:
        """Called (with no argument) when output appears outside a turn; a host loop then schedules `turn`."""
    @on_dirty.setter
    def on_dirty(self, callback: Callable[[], None] | None) -> None: ...
    def close(self) -> None:
        """Close every handle. Idempotent. The servers on it must have been closed."""

class Options:
    """What a `Server` is told, all keyword arguments, all with safe defaults. Times in milliseconds, sizes in octets.

    A time or a size of 0 switches that limit off.
    """

    def __init__(
        self,
        *,
        root_path: str = "",
        server_header: bool = True,
        date_header: bool = True,
        headers: list[tuple[bytes, bytes]] = ...,
        limit_concurrency: int = 0,
        limit_connections: int = 0,
        timeout_keep_alive: int = 5_000,
        timeout_request_header: int = 30_000,
        timeout_first_byte: int = 10_000,
        timeout_request_body: int = 60_000,
        timeout_write: int = 60_000,
        timeout_tls_handshake: int = 10_000,
        timeout_h2_idle: int = 60_000,
        timeout_h2_settings: int = 10_000,
        min_body_rate: int = 240,
        limit_request_line: int = 16_384,
        limit_header_size: int = 65_536,
        limit_header_count: int = 100,
        limit_chunk_ext: int = 16_384,
        limit_trailer_size: int = 16_384,
        limit_request_body: int = 0,
        read_buffer: int = 65_536,
        write_buffer: int = 65_536,
        h2_max_concurrent_streams: int = 100,
        h2_initial_window: int = 262_144,
        h2_connection_window: int = 1_048_576,
        h2_max_frame_size: int = 16_384,
        h2_header_table_size: int = 4_096,
        h2_max_continuations: int = 8,
        h2_reset_burst: int = 1_000,
        h2_reset_rate: int = 100,
        h2_glitch_burst: int = 1_000,
        h2_glitch_rate: int = 100,
        h2_max_queued_acks: int = 1_000,
    ) -> None: ...

class TlsContext:
    """Certificates and TLS settings that listeners share (OpenSSL's SSL_CTX)."""

    def __init__(
        self,
        *,
        certfile: str,
        keyfile: str | None = None,
        keyfile_password: str | None = None,
        ca_certs: str | None = None,
        verify_mode: int = 0,
        min_version: str = "TLSv1.2",
        ciphers: str | None = None,
        alpn: list[str] = ["h2", "http/1.1"],
    ) -> None:
        """`verify_mode` as `ssl.CERT_*` (0 none, 1 optional, 2 required).

        Raises ValueError with one plain line that names the file and what is wrong with it.
        """

class Hooks:
    """What the core calls in Python, outside the application. Attributes may be None."""

    def __init__(
        self,
        *,
        access: Callable[[Scope, int], None] | None = None,
        log: Callable[[int, str, BaseException | None], None],
        forwarded: Callable[[Scope], None] | None = None,
        drained: Callable[[], None] | None = None,
    ) -> None:
        """Each may raise: that is reported and changes nothing else.

        `access(scope, status)`: a response starts. `log(level, message, exception)`: a line for the error log.
        `forwarded(scope)`: rewrites client and scheme; called only when X-Forwarded-For or -Proto is present.
        `drained()`: after `Server.drain()`, the last connection and the last request ended.
        """

class RpcRoute:
    """A unary RPC method that the core answers itself. Made by tricorn.connect, which says what each part does."""

    def __init__(
        self,
        *,
        path: str,
        function: Callable[[Any, Any], Awaitable[Any]],
        context_type: type[Any],
        context_template: dict[str, Any],
        failed: Callable[..., tuple[int, list[tuple[bytes, bytes]], bytes, list[tuple[bytes, bytes]]]],
        settle: Callable[[BaseException, bool, bool, bool], tuple[Exception, BaseException | None]],
        error: Callable[[str, str], Exception],
        codecs: list[tuple[str, Callable[[bytes], Any], Callable[[Any], bytes]]],
        encodings: list[str],
        read_max: int | None,
    ) -> None:
        """`function(message, context)`: the handler.

        A context is a `context_type` whose `__dict__` is a copy of `context_template` with `_source` (and, with a
        deadline, `_end_time`) set.
        `settle(exception, expired, left, entered)`: the error for the client, and what is logged.
        `failed(kind, codec, encoding, error, context)`: status, headers, body and trailers of an error's answer.
        `error(code, message)`: an error that the core has found. `codecs`: name, decode, encode.
        """
    @property
    def path(self) -> str: ...

class Server:
    """Listeners, connections and requests in flight of one application on one `Loop`."""

    def __init__(
        self,
        loop: Loop,
        event_loop: asyncio.AbstractEventLoop,
        app: ASGIApp,
        *,
        options: Options,
        hooks: Hooks,
        state: dict[str, Any],
    ) -> None:
        """`state`: the lifespan state; every request gets a shallow copy."""
    def listen(self, fd: int, *, protocols: list[str] = ["h1", "h2"], tls: TlsContext | None = None) -> None:
        """Accept on a bound, listening stream socket. The caller keeps `fd` open until `stop_listening`.

        Raises OSError.
        """
    def add_routes(self, routes: list[RpcRoute]) -> None:
        """Before `listen`: these methods are answered by the core, everything else by the application."""
    def stop_listening(self) -> None: ...
    def drain(self) -> None:
        """Idle connections close, busy ones close after their response; HTTP/2 sends GOAWAY. Idempotent."""
    def disconnect(self) -> None:
        """Every pending `receive()` of a request in flight gets `http.disconnect`; answers still go out."""
    def cancel(self) -> int:
        """Cancel the task of every request in flight. Returns how many."""
    def close(self) -> None:
        """Close every connection at once. Idempotent."""
    # The counters stay readable after close().
    @property
    def connections(self) -> int: ...
    @property
    def requests(self) -> int:
        """Requests whose application call has not returned."""
    @property
    def total_requests(self) -> int: ...

def versions() -> list[str]:
    """The libraries linked in, each with its version: `["llhttp 9.3.1", "nghttp2 1.52.0", ...]`."""
