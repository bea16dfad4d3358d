"""What a server is told: checked, normalised, and derived once from the public Config."""

import math
import os
import re
import resource
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from tricorn import _core
from tricorn.errors import StartupError, one_line
from tricorn.sockets import Address, Endpoint, Inherited, Tcp, Unix, parse_address

if TYPE_CHECKING:
    from tricorn.config import Config

MILLISECONDS = (
    "timeout_keep_alive",
    "timeout_first_byte",
    "timeout_request_header",
    "timeout_request_body",
    "timeout_write",
    "timeout_tls_handshake",
    "timeout_h2_idle",
    "timeout_h2_settings",
)
COUNTS = (
    "limit_concurrency",
    "min_body_rate",
    "limit_request_line",
    "limit_header_size",
    "limit_header_count",
    "limit_chunk_ext",
    "limit_trailer_size",
    "limit_request_body",
    "read_buffer",
    "write_buffer",
    "h2_max_concurrent_streams",
    "h2_initial_window",
    "h2_connection_window",
    "h2_max_frame_size",
    "h2_header_table_size",
    "h2_max_continuations",
    "h2_reset_burst",
    "h2_reset_rate",
    "h2_glitch_burst",
    "h2_glitch_rate",
    "h2_max_queued_acks",
)
LEAST = {"h2_max_frame_size": 16_384, "h2_connection_window": 65_535}  # RFC 9113 6.5.2, 6.9.2
MOST = {"h2_max_frame_size": 16_777_215, "limit_request_body": 2**63 - 1}
MOST_OTHERWISE = 2**31 - 1
MOST_SECONDS = 10**9
WITHOUT_EFFECT = (
    "http",
    "ws",
    "ws_max_size",
    "ws_max_queue",
    "ws_ping_interval",
    "ws_ping_timeout",
    "ws_per_message_deflate",
    "env_file",
    "reload",
    "workers",
    "h11_max_incomplete_event_size",
    "reset_contextvars",
)
"""uvicorn's options that are accepted and, in this version, change nothing."""

ALPN = {"h2": "h2", "h1": "http/1.1"}
RPC = ("auto", "asgi")
TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")
MAX_CONNECTIONS = 10_000
DESCRIPTORS_FOR_CONNECTIONS = 0.8

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_FIELD_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything a server is told; never read from globals."""

    endpoints: tuple[Endpoint, ...]
    backlog: int
    protocols: tuple[str, ...]
    graceful: float | None  # seconds for requests in flight at shutdown; None waits for ever
    options: _core.Options
    tls: _core.TlsContext | None


def derive(config: "Config") -> Settings:
    """Check the configuration and put it in the core's terms. Raises StartupError."""
    if config.ssl_context_factory is not None:
        raise StartupError("ssl_context_factory is not supported yet; give ssl_certfile and ssl_keyfile.")
    if config.interface not in ("auto", "asgi3", "asgi2"):
        raise StartupError(f"interface {config.interface!r} is not supported: it is auto, asgi3 or asgi2.")
    if config.rpc not in RPC:
        raise StartupError(f"rpc {config.rpc!r} is not one of {', '.join(RPC)}.")
    if config.lifespan not in ("auto", "on", "off"):
        raise StartupError(f"lifespan {config.lifespan!r} is not one of auto, on, off.")
    protocols = _protocols(config.protocols)
    return Settings(
        endpoints=_endpoints(config),
        backlog=_count(config, "backlog"),
        protocols=protocols,
        graceful=_seconds(config, "timeout_graceful_shutdown") or None,
        options=_options(config),
        tls=_tls_context(config, protocols) if config.is_ssl else None,
    )


def _options(config: "Config") -> _core.Options:
    try:
        return _core.Options(**core_options(config))
    except (ValueError, TypeError, RuntimeError) as error:
        raise StartupError(f"Cannot use an option: {one_line(error)}") from None


def _tls_context(config: "Config", protocols: Sequence[str]) -> _core.TlsContext:
    arguments = tls_arguments(config, protocols)
    try:
        return _core.TlsContext(**arguments)
    except (ValueError, OSError) as error:
        raise StartupError(f"Cannot use the TLS files: {error}") from None


def core_options(config: "Config") -> dict[str, Any]:
    """The keyword arguments of `_core.Options`."""
    names = [name for name, _ in response_headers(config)]
    options: dict[str, Any] = {
        "root_path": config.root_path,
        "server_header": config.server_header and b"server" not in names,
        "date_header": config.date_header and b"date" not in names,
        "headers": response_headers(config),
        "limit_connections": _limit_connections(config),
    }
    options |= {name: _count(config, name) for name in COUNTS}
    options |= {name: math.ceil(_seconds(config, name) * 1000) for name in MILLISECONDS}
    if not options["timeout_keep_alive"]:
        options["timeout_keep_alive"] = 1  # uvicorn's 0 closes an idle connection at once; the core's never does
    return options


def response_headers(config: "Config") -> list[tuple[bytes, bytes]]:
    """The user's own response headers, as they go on the wire."""
    return [_encoded(name, value) for name, value in config.headers or ()]


def _encoded(name: str, value: str) -> tuple[bytes, bytes]:
    try:
        encoded = name.lower().encode("ascii"), value.strip(" \t").encode("latin-1")
    except UnicodeEncodeError:
        encoded = b"", b""
    if not _TOKEN.fullmatch(encoded[0]) or not _FIELD_VALUE.fullmatch(encoded[1]):
        raise StartupError(f"Header {f'{name}:{value}'!r} is not a valid response header.")
    return encoded


def without_effect(config: "Config") -> list[str]:
    """A line for each option that was set and changes nothing."""
    defaults = {field.name: field.default for field in fields(config)} | {"workers": 1}
    changed = [name for name in WITHOUT_EFFECT if getattr(config, name) != defaults[name]]
    return [f"Option {name} has no effect in this version." for name in changed]


def web_concurrency() -> int:
    text = os.environ.get("WEB_CONCURRENCY", "1")
    try:
        return int(text)
    except ValueError:
        raise StartupError(f"WEB_CONCURRENCY is {text!r}, which is not a number.") from None


def own_address(config: "Config") -> Address:
    """The listener that host, port, uds and fd describe."""
    if config.fd is not None:
        return Inherited(config.fd)
    if config.uds is not None:
        return Unix(os.fspath(config.uds))
    return Tcp(config.host or "", config.port)


def _endpoints(config: "Config") -> tuple[Endpoint, ...]:
    plain, secure = _several(config.bind), _several(config.tls_bind)
    if config.ssl_keyfile and not config.ssl_certfile:
        raise StartupError("ssl_keyfile needs ssl_certfile.")
    if secure and not config.is_ssl:
        raise StartupError("tls_bind needs ssl_certfile and ssl_keyfile.")
    if plain and not secure and config.is_ssl:
        raise StartupError("bind listens in clear text and would leave ssl_certfile unused; for TLS use tls_bind.")
    if not plain and not secure:
        return (Endpoint(address=own_address(config), tls=config.is_ssl),)
    return (
        *(Endpoint(address=parse_address(text), tls=False) for text in plain),
        *(Endpoint(address=parse_address(text), tls=True) for text in secure),
    )


def _several(texts: Sequence[str] | str) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts)


def _protocols(names: Sequence[str] | str) -> tuple[str, ...]:
    chosen = names.split(",") if isinstance(names, str) else list(names)
    stripped = [name.strip() for name in chosen]
    if not stripped or not set(stripped) <= ALPN.keys():
        raise StartupError(f"protocols {names!r}: give h1, h2 or h1,h2.")
    return tuple(stripped)


def tls_arguments(config: "Config", protocols: Sequence[str]) -> dict[str, Any]:
    """The keyword arguments of `_core.TlsContext`."""
    if config.ssl_min_version not in TLS_VERSIONS:
        raise StartupError(f"ssl_min_version {config.ssl_min_version!r} is not one of {', '.join(TLS_VERSIONS)}.")
    if config.ssl_version not in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS, ssl.PROTOCOL_TLSv1_2):
        raise StartupError(f"ssl_version {int(config.ssl_version)} is not supported; use ssl_min_version.")
    if config.ssl_cert_reqs and not config.ssl_ca_certs:
        raise StartupError("ssl_cert_reqs needs ssl_ca_certs: without them no client certificate can be verified.")
    return {
        "certfile": _path(config.ssl_certfile),
        "keyfile": _path(config.ssl_keyfile),
        "keyfile_password": config.ssl_keyfile_password,
        "ca_certs": _path(config.ssl_ca_certs),
        "verify_mode": int(config.ssl_cert_reqs),
        "min_version": config.ssl_min_version,
        "ciphers": config.ssl_ciphers,
        "alpn": [alpn for name, alpn in ALPN.items() if name in protocols],
    }


def _path(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)


def _limit_connections(config: "Config") -> int:
    """What the user says, else what the descriptors of this process allow."""
    if config.limit_connections is not None:
        return _count(config, "limit_connections")
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return min(MAX_CONNECTIONS, int(soft * DESCRIPTORS_FOR_CONNECTIONS))


def _count(config: "Config", name: str) -> int:
    value = getattr(config, name) or 0
    least, most = LEAST.get(name, 0), MOST.get(name, MOST_OTHERWISE)
    if not isinstance(value, int) or not least <= value <= most:
        raise StartupError(f"{name} is {value!r}; it must be a whole number from {least} to {most}.")
    return value


def _seconds(config: "Config", name: str) -> float:
    value = getattr(config, name) or 0
    if not isinstance(value, int | float) or not 0 <= value <= MOST_SECONDS:
        raise StartupError(f"{name} is {value!r}; it must be a number of seconds from 0 to {MOST_SECONDS}.")
    return float(value)
