"""An HTTP/1 client that sends exactly the octets it is told to, and reads answers strictly."""

import contextlib
import select
import socket
import ssl
import struct
from collections.abc import Generator
from dataclasses import dataclass, field

from tests.support.serving import GUARD, Served

Fields = list[tuple[bytes, bytes]]


@dataclass
class Response:
    """An answer as it was on the wire; field names as sent."""

    version: bytes
    status: int
    reason: bytes
    headers: Fields
    body: bytes = b""
    chunks: list[bytes] = field(default_factory=list)
    trailers: Fields = field(default_factory=list)

    def values(self, name: bytes) -> list[bytes]:
        return [value for key, value in self.headers if key.lower() == name]

    def value(self, name: bytes) -> bytes | None:
        found = self.values(name)
        assert len(found) <= 1, self.headers
        return found[0] if found else None


class Raw:
    """One connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.sock.settimeout(GUARD)
        self.buffer = b""

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def request(
        self, target: str, method: str = "GET", headers: Fields | None = None, body: bytes | None = None
    ) -> None:
        """A plain request; with a body, its length is said too."""
        fields = [(b"host", b"example.test"), *(headers or [])]
        if body is not None:
            fields.append((b"content-length", b"%d" % len(body)))
        head = b"".join(b"%s: %s\r\n" % pair for pair in fields)
        self.send(b"%s %s HTTP/1.1\r\n%s\r\n" % (method.encode(), target.encode(), head) + (body or b""))

    def get(self, target: str, method: str = "GET", headers: Fields | None = None) -> Response:
        self.request(target, method, headers)
        return self.response(method)

    def response(self, method: str = "GET") -> Response:
        """The next final answer."""
        response = self.head()
        while response.status < 200:
            response = self.head()
        return self.body_of(response, method)

    def head(self) -> Response:
        """The next head, final or not."""
        version, status, reason = [*self.line().split(b" ", 2), b""][:3]
        assert version.startswith(b"HTTP/1."), version
        return Response(version, int(status), reason, self.fields())

    def fields(self) -> Fields:
        found: Fields = []
        while line := self.line():
            name, colon, value = line.partition(b":")
            assert colon, line
            found.append((name, value.strip(b" \t")))
        return found

    def body_of(self, response: Response, method: str = "GET") -> Response:
        coding, length = response.value(b"transfer-encoding"), response.value(b"content-length")
        if method == "HEAD" or response.status in (204, 304):
            return response
        assert coding is None or length is None, response.headers
        if coding is not None:
            assert coding == b"chunked", coding
            while chunk := self.chunk():
                response.chunks.append(chunk)
            response.trailers = self.fields()
            response.body = b"".join(response.chunks)
        elif length is not None:
            response.body = self.exactly(int(length))
        else:
            response.body = self.rest()
        return response

    def chunk(self) -> bytes:
        """The next chunk; of the last one its own line only."""
        size = int(self.line(), 16)
        chunk = self.exactly(size)
        if size:
            assert self.exactly(2) == b"\r\n"
        return chunk

    def line(self) -> bytes:
        while b"\r\n" not in self.buffer:
            self.more()
        line, _, self.buffer = self.buffer.partition(b"\r\n")
        return line

    def exactly(self, size: int) -> bytes:
        parts, missing = [self.buffer[:size]], size - len(self.buffer)
        self.buffer = self.buffer[size:]
        while missing > 0:
            part = self.sock.recv(min(missing, 1 << 20))
            if not part:
                raise EOFError(f"{missing} octets of {size} are missing")
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def more(self) -> None:
        part = self.sock.recv(1 << 16)
        if not part:
            raise EOFError(f"closed after {self.buffer!r}")
        self.buffer += part

    def rest(self) -> bytes:
        """All until the end of the connection."""
        with contextlib.suppress(EOFError):
            while True:
                self.more()
        rest, self.buffer = self.buffer, b""
        return rest

    def ends(self) -> bool:
        """Whether the server closes now, with nothing more to say."""
        try:
            return self.rest() == b""
        except (ConnectionResetError, ssl.SSLEOFError):
            return True

    def silent(self, seconds: float) -> bool:
        """Whether the connection is open and nothing arrives for that long."""
        return not self.buffer and not select.select([self.sock], [], [], seconds)[0]

    def half_close(self) -> None:
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


def dial(server: Served, *, receive_buffer: int | None = None) -> socket.socket:
    """A TCP connection to the first address of the server."""
    _, host, port = server.addresses[0]
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    if receive_buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.settimeout(GUARD)
    sock.connect((host.strip("[]"), port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


@contextlib.contextmanager
def connect(server: Served, *, tls: ssl.SSLContext | None = None, receive_buffer: int | None = None) -> Generator[Raw]:
    """An HTTP/1 connection to the first address of the server."""
    with contextlib.closing(dial(server, receive_buffer=receive_buffer)) as sock:
        if tls is None:
            yield Raw(sock)
            return
        with tls.wrap_socket(sock, server_hostname="localhost") as wrapped:
            yield Raw(wrapped)


def get(server: Served, target: str, method: str = "GET", headers: Fields | None = None) -> Response:
    """One request on a connection of its own."""
    with connect(server) as raw:
        return raw.get(target, method, headers)
