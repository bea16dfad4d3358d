"""The public configuration, in uvicorn's names and order."""

import asyncio
import logging
import os
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tricorn import loops, settings, sockets
from tricorn.asgi import ASGI2Adapter, interface_of, takes
from tricorn.errors import STARTUP_FAILURE, StartupError, users_part
from tricorn.importer import import_from_string
from tricorn.lifespan import Lifespan
from tricorn.logging import LOGGING_CONFIG, PRODUCT, LogConfig, configure
from tricorn.tuning import Tuning

__all__ = ["LOGGING_CONFIG", "Config"]

logger = logging.getLogger("tricorn.error")


@dataclass(eq=False, repr=False)
class Config(Tuning):
    """What the user asks for. Mutable, and attributes of others are kept: it is read when the server starts.

    Making one configures logging. `load` imports the application.
    """

    app: Callable[..., Any] | str
    host: str = "127.0.0.1"
    port: int = 8000
    uds: str | None = None
    fd: int | None = None
    loop: str = "auto"
    http: type[asyncio.Protocol] | str = "auto"
    http2: bool = False
    ws: type[asyncio.Protocol] | str = "auto"
    ws_max_size: int = 16_777_216
    ws_max_queue: int = 32
    ws_ping_interval: float | None = 20.0
    ws_ping_timeout: float | None = 20.0
    ws_per_message_deflate: bool = True
    lifespan: str = "auto"
    env_file: str | os.PathLike[str] | None = None
    log_config: LogConfig | None = field(default_factory=lambda: LOGGING_CONFIG)
    log_level: str | int | None = None
    access_log: bool = True
    use_colors: bool | None = None
    interface: str = "auto"
    reload: bool = False
    reload_dirs: Sequence[str] | str | None = None
    reload_delay: float = 0.25
    reload_includes: Sequence[str] | str | None = None
    reload_excludes: Sequence[str] | str | None = None
    workers: int | None = None
    proxy_headers: bool = True
    server_header: bool = True
    date_header: bool = True
    forwarded_allow_ips: Sequence[str] | str | None = None
    root_path: str = ""
    limit_concurrency: int | None = None
    limit_max_requests: int | None = None
    limit_max_requests_jitter: int = 0
    backlog: int = 2048
    timeout_keep_alive: float = 5
    timeout_notify: float = 30
    timeout_graceful_shutdown: float | None = 30
    timeout_worker_healthcheck: float = 5
    callback_notify: Callable[..., Awaitable[None]] | None = None
    ssl_keyfile: str | os.PathLike[str] | None = None
    ssl_certfile: str | os.PathLike[str] | None = None
    ssl_keyfile_password: str | None = None
    ssl_version: int = ssl.PROTOCOL_TLS_SERVER
    ssl_cert_reqs: int = ssl.CERT_NONE
    ssl_ca_certs: str | os.PathLike[str] | None = None
    ssl_ciphers: str | None = None
    ssl_context_factory: Callable[..., ssl.SSLContext] | None = None
    headers: Sequence[tuple[str, str]] | None = None
    factory: bool = False
    h11_max_incomplete_event_size: int | None = None
    reset_contextvars: bool = False

    loaded: bool = field(default=False, init=False)
    loaded_app: Any = field(default=None, init=False)
    encoded_headers: list[tuple[bytes, bytes]] = field(default_factory=list, init=False)
    lifespan_class: type[Lifespan] = field(default=Lifespan, init=False)

    def __post_init__(self) -> None:
        if self.workers is None:
            self.workers = settings.web_concurrency()
        if self.forwarded_allow_ips is None:
            self.forwarded_allow_ips = os.environ.get("FORWARDED_ALLOW_IPS", "127.0.0.1,::1")
        self.headers = list(self.headers or [])
        self.configure_logging()

    @property
    def asgi_version(self) -> str:
        return "2.0" if self.interface == "asgi2" else "3.0"

    @property
    def is_ssl(self) -> bool:
        return bool(self.ssl_keyfile or self.ssl_certfile)

    @property
    def should_reload(self) -> bool:
        return isinstance(self.app, str) and self.reload

    @property
    def use_subprocess(self) -> bool:
        return bool(self.reload or (self.workers or 1) > 1)

    def configure_logging(self) -> None:
        configure(self.log_config, level=self.log_level, access_log=self.access_log, use_colors=self.use_colors)

    def get_loop_factory(self) -> loops.LoopFactory | None:
        """What makes the event loop; None leaves the choice to asyncio."""
        return loops.factory_of(self.loop)

    def load(self) -> None:
        """Import the application and encode the headers. Raises StartupError."""
        if self.loaded:
            return
        self.encoded_headers = settings.response_headers(self)
        app = self.load_app()
        if self.interface == "auto":
            self.interface = interface_of(app)
        self.loaded_app = ASGI2Adapter(app) if self.interface == "asgi2" else app
        self.loaded = True

    def load_app(self) -> Callable[..., Any]:
        """The application that `app` names, or that the factory it names returns. Raises StartupError."""
        try:
            app = import_from_string(self.app)
        except StartupError as error:
            raise StartupError(f"Error loading ASGI app. {error}") from error.__cause__
        if not callable(app):
            raise StartupError(f"Error loading ASGI app. {self.app!r} is not callable.")
        if not self.factory:
            if not takes(app, 0) or takes(app, 3):
                return app
            logger.warning(
                "ASGI app factory detected. Using it, but please consider setting the --factory flag explicitly."
            )
        return self._call_factory(app)

    def _call_factory(self, factory: Callable[..., Any]) -> Callable[..., Any]:
        if not takes(factory, 0):
            raise StartupError(f"Error loading ASGI app factory: {self.app!r} needs arguments.")
        try:
            app: object = factory()
        except Exception as error:  # noqa: BLE001 the application's, whatever it is
            raise StartupError("Error loading ASGI app factory: it failed.") from users_part(error)
        if not callable(app):
            raise StartupError(f"Error loading ASGI app factory: it returned {app!r}, which is not callable.")
        return app

    def bind_socket(self) -> socket.socket:
        """One bound, inheritable socket, for a process that hands it to others. Exits when it cannot be had."""
        try:
            address = settings.own_address(self)
            bound = sockets.bind(address)
        except (OSError, StartupError) as error:
            logger.error(error)  # noqa: TRY400 one line
            sys.exit(STARTUP_FAILURE)
        sock = bound[0]
        sockets.close_all(bound[1:])
        sock.set_inheritable(True)
        where = sockets.describe(address, sock, tls=self.is_ssl)
        logger.info("%s running on %s (Press CTRL+C to quit)", PRODUCT, where)
        return sock
