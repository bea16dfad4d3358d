"""Where a server listens: addresses as the user writes them, sockets as the core takes them."""

import contextlib
import errno
import os
import socket
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tricorn.errors import StartupError

UDS_MODE = 0o666
MAX_PORT = 65_535
_PORT_0_ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class Tcp:
    """A host, which may resolve to several addresses, and a port. An empty host is every interface."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Unix:
    """A path in the file system."""

    path: str


@dataclass(frozen=True, slots=True)
class Inherited:
    """A descriptor that the parent process has bound."""

    fd: int


Address = Tcp | Unix | Inherited


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One address, in clear text or with TLS."""

    address: Address
    tls: bool


def parse_address(text: str) -> Address:
    """Read `host:port`, `[v6]:port`, `unix:path` or `fd://number`."""
    if text.startswith("unix:"):
        return Unix(text.removeprefix("unix:"))
    if text.startswith("fd://"):
        return Inherited(_number(text, text.removeprefix("fd://")))
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or (":" in host and not bracketed):
        raise _not_an_address(text)
    number = _number(text, port)
    if number > MAX_PORT:
        raise _not_an_address(text)
    return Tcp(host[1:-1] if bracketed else host, number)


def _number(text: str, digits: str) -> int:
    if not (digits.isascii() and digits.isdigit()):
        raise _not_an_address(text)
    return int(digits)


def _not_an_address(text: str) -> StartupError:
    return StartupError(f"{text!r} is not an address: give host:port, [v6]:port, unix:path or fd://number.")


def listen(address: Address, backlog: int) -> list[socket.socket]:
    """Bound, listening, non-blocking sockets; several where a host has several addresses. Raises OSError."""
    sockets = bind(address)
    try:
        for sock in sockets:
            start_listening(sock, backlog)
    except OSError as error:
        close_all(sockets)
        raise _bind_error(error, sockets[0].getsockname() if sockets[0].fileno() >= 0 else address) from None
    return sockets


def start_listening(sock: socket.socket, backlog: int) -> None:
    sock.setblocking(False)
    sock.listen(backlog)


def bind(address: Address) -> list[socket.socket]:
    """Bound sockets of the address. Raises OSError."""
    match address:
        case Tcp(host, port):
            return _bind_tcp(host, port)
        case Unix(path):
            return [_bind_unix(path)]
        case Inherited(fd):
            return [_adopt(fd)]


def describe(address: Address, sock: socket.socket, *, tls: bool) -> str:
    """The end of the line `... running on`."""
    match address:
        case Tcp(host, _):
            shown = host or sock.getsockname()[0]
            shown = f"[{shown}]" if ":" in shown else shown
            return f"{'https' if tls else 'http'}://{shown}:{sock.getsockname()[1]}"
        case Unix(path):
            return f"unix socket {path}"
        case Inherited(_):
            return f"socket {sock.getsockname()}"


def close_all(sockets: list[socket.socket]) -> None:
    for sock in sockets:
        sock.close()


def remove_path(path: str, inode: int | None) -> None:
    """Remove a Unix socket, unless somebody else has put another one there."""
    with contextlib.suppress(OSError):
        if Path(path).stat().st_ino == inode:
            Path(path).unlink()


def inode_of(path: str) -> int | None:
    try:
        return Path(path).stat().st_ino
    except OSError:
        return None


def _bind_tcp(host: str, port: int) -> list[socket.socket]:
    attempts = 1 if port else _PORT_0_ATTEMPTS
    for attempt in range(1, attempts + 1):
        try:
            return _bind_every(host, port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or attempt == attempts:
                raise
    raise AssertionError("unreachable")


def _bind_every(host: str, port: int) -> list[socket.socket]:
    """One socket for each address of the host, all on one port, also when that is for the system to choose."""
    found = _resolve(host, port)
    alone = len({family for family, _ in found}) == 1
    sockets: list[socket.socket] = []
    missing: OSError | None = None
    for family, (ip, _, *scope) in found:
        address = (ip, sockets[0].getsockname()[1] if sockets else port, *scope)
        try:
            sockets.append(_bind_one(family, address, dual_stack=alone and ip == "::"))
        except OSError as error:
            missing = error
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                close_all(sockets)
                raise
    if not sockets and missing is not None:
        raise missing
    return sockets


def _resolve(host: str, port: int) -> list[tuple[int, tuple[Any, ...]]]:
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:
        number, reason = (error.errno, error.strerror) if isinstance(error, OSError) else (errno.EINVAL, str(error))
        raise OSError(number, f"error while resolving host {host!r}: {reason}") from None
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))


def _bind_one(family: int, address: tuple[Any, ...], *, dual_stack: bool) -> socket.socket:
    sock: socket.socket | None = None
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, not dual_stack)
        sock.bind(address)
    except (OSError, OverflowError) as error:
        if sock is not None:
            sock.close()
        raise _bind_error(error, address) from None
    return sock


def _bind_unix(path: str) -> socket.socket:
    """Bind the path, in place of a socket there on which nobody listens."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        mode = _remove_stale(path)
        sock.bind(path)
        Path(path).chmod(mode)
    except OSError as error:
        sock.close()
        raise _bind_error(error, path) from None
    return sock


def _remove_stale(path: str) -> int:
    """The mode the socket is to have: that of the one removed, else uvicorn's for a new one."""
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        return UDS_MODE
    if not stat.S_ISSOCK(mode) or _answers(path):
        raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
    Path(path).unlink()
    return stat.S_IMODE(mode)


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        return probe.connect_ex(path) in (0, errno.EAGAIN, errno.EINPROGRESS)


def _adopt(fd: int) -> socket.socket:
    """A socket of our own for the descriptor; its family comes from the descriptor itself."""
    try:
        sock = socket.socket(fileno=os.dup(fd))
    except OSError as error:
        raise OSError(error.errno, f"error while using file descriptor {fd}: {_reason(error)}") from None
    if sock.type != socket.SOCK_STREAM:
        sock.close()
        raise OSError(errno.EINVAL, f"error while using file descriptor {fd}: not a stream socket")
    return sock


def _bind_error(error: Exception, address: object) -> OSError:
    number = error.errno if isinstance(error, OSError) and error.errno is not None else errno.EINVAL
    return OSError(number, f"error while attempting to bind on address {address!r}: {_reason(error)}")


def _reason(error: Exception) -> str:
    return ((error.strerror if isinstance(error, OSError) else None) or str(error)).lower()
