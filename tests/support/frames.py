"""An HTTP/2 client on the h2 library: one connection, every frame at the test's will."""

import contextlib
import socket
import ssl
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings

from tests.support.raw import Fields, dial
from tests.support.serving import GUARD, Served

Code = h2.errors.ErrorCodes
Setting = h2.settings.SettingCodes
FRAME_HEAD = 9  # octets


@dataclass
class Stream:
    """What has arrived on one stream."""

    informational: list[Fields] = field(default_factory=list)
    headers: Fields = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)
    trailers: Fields = field(default_factory=list)
    ended: bool = False
    reset: int | None = None

    @property
    def status(self) -> int:
        return int(dict(self.headers).get(b":status", b"0"))

    @property
    def over(self) -> bool:
        return self.ended or self.reset is not None

    def value(self, name: bytes) -> bytes | None:
        return dict(self.headers).get(name)


class H2:
    """One connection. With `flow=False` the test gives credit back itself."""

    def __init__(self, sock: socket.socket, *, flow: bool = True, settings: dict[int, int] | None = None) -> None:
        self.sock = sock
        self.sock.settimeout(GUARD)
        self.flow = flow
        config = h2.config.H2Configuration(client_side=True, header_encoding=None)
        self.h2 = h2.connection.H2Connection(config)
        self.streams: dict[int, Stream] = {}
        self.events: list[h2.events.Event] = []
        self.goaways: list[tuple[int, int]] = []
        self.closed = False
        self.unread = b""
        self.h2.initiate_connection()
        if settings:
            self.h2.update_settings(settings)
        self.flush()
        if settings:
            self.wait(lambda: sum(isinstance(event, h2.events.SettingsAcknowledged) for event in self.events) == 2)

    def flush(self) -> None:
        data = self.h2.data_to_send()
        if data:
            self.sock.sendall(data)

    def request(
        self,
        path: str,
        method: str = "GET",
        headers: Sequence[tuple[bytes, bytes]] = (),
        body: bytes | None = None,
        *,
        end: bool = True,
    ) -> int:
        """Sends a request; gives its stream. With `end=False` more body may follow."""
        stream = self.h2.get_next_available_stream_id()
        self.streams[stream] = Stream()
        pseudo = [
            (b":method", method.encode()),
            (b":scheme", b"https" if isinstance(self.sock, ssl.SSLSocket) else b"http"),
            (b":authority", b"example.test"),
            (b":path", path.encode()),
        ]
        self.h2.send_headers(stream, [*pseudo, *headers], end_stream=end and not body)
        self.flush()
        if body:
            self.send(stream, body, end=end)
        return stream

    def send(self, stream: int, body: bytes, *, end: bool = False) -> None:
        """Sends body as the windows allow."""
        view = memoryview(body)
        while view:
            self.wait(lambda: self.room(stream) > 0 or self.streams[stream].over)
            if self.streams[stream].over:
                return
            part, view = view[: self.room(stream)], view[self.room(stream) :]
            self.h2.send_data(stream, bytes(part))
            self.flush()
        if end:
            self.h2.end_stream(stream)
            self.flush()

    def send_what_fits(self, stream: int, body: bytes) -> int:
        """Sends only what the windows allow at once; gives how much that was."""
        sent = 0
        while sent < len(body) and (room := self.room(stream)) > 0:
            part = body[sent : sent + room]
            self.h2.send_data(stream, part)
            sent += len(part)
        self.flush()
        return sent

    def room(self, stream: int) -> int:
        return min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)

    def reset(self, stream: int, code: int = Code.CANCEL) -> None:
        self.h2.reset_stream(stream, code)
        self.flush()

    def response(self, stream: int) -> Stream:
        """The whole answer."""
        self.wait(lambda: self.streams[stream].over)
        return self.streams[stream]

    def get(self, path: str, method: str = "GET", headers: Sequence[tuple[bytes, bytes]] = ()) -> Stream:
        return self.response(self.request(path, method, headers))

    def wait(self, done: Callable[[], bool]) -> None:
        """Reads until the condition holds."""
        while not done():
            assert not self.closed, f"closed by the server; GOAWAY: {self.goaways}"
            self.read()

    def wait_closed(self) -> None:
        while not self.closed:
            self.read()

    def read(self) -> None:
        """One read from the socket and all that follows from it."""
        try:
            data = self.sock.recv(1 << 16)
        except (ConnectionResetError, ssl.SSLEOFError):
            data = b""
        if not data:
            self.closed = True
            return
        self.unread += data
        while len(self.unread) >= FRAME_HEAD and len(self.unread) >= (size := frame_size(self.unread)):
            frame, self.unread = self.unread[:size], self.unread[size:]
            for event in self.h2.receive_data(frame):
                self.events.append(event)
                self.take(event)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.flush()

    def drain(self, seconds: float) -> None:
        """Reads whatever comes until nothing has come for that long."""
        self.sock.settimeout(seconds)
        try:
            while not self.closed:
                self.read()
        except TimeoutError:
            pass
        finally:
            self.sock.settimeout(GUARD)

    def take(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.InformationalResponseReceived():
                self.stream_of(event).informational.append(fields_of(event))
            case h2.events.ResponseReceived():
                self.stream_of(event).headers = fields_of(event)
            case h2.events.DataReceived():
                self.stream_of(event).body += event.data
                if self.flow and event.flow_controlled_length:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case h2.events.TrailersReceived():
                self.stream_of(event).trailers = fields_of(event)
            case h2.events.StreamEnded():
                self.stream_of(event).ended = True
            case h2.events.StreamReset():
                self.stream_of(event).reset = int(event.error_code or 0)
            case h2.events.ConnectionTerminated():
                self.goaways.append((int(event.error_code or 0), event.last_stream_id or 0))
                # the library would now refuse the answers to the streams that go on
                self.h2.state_machine.state = h2.connection.ConnectionState.CLIENT_OPEN

    def stream_of(self, event: h2.events.Event) -> Stream:
        return self.streams.setdefault(event.stream_id, Stream())  # ty: ignore[missing-attribute]

    def saw(self, kind: type[h2.events.Event]) -> bool:
        return any(isinstance(event, kind) for event in self.events)


def fields_of(event: h2.events.Event) -> Fields:
    return [(bytes(name), bytes(value)) for name, value in event.headers]  # ty: ignore[missing-attribute]


def frame_size(data: bytes) -> int:
    return FRAME_HEAD + int.from_bytes(data[:3])


@contextlib.contextmanager
def connect(
    server: Served,
    *,
    tls: ssl.SSLContext | None = None,
    flow: bool = True,
    settings: dict[int, int] | None = None,
) -> Generator[H2]:
    """With prior knowledge, or over TLS."""
    with contextlib.closing(dial(server)) as sock:
        if tls is None:
            yield H2(sock, flow=flow, settings=settings)
            return
        with tls.wrap_socket(sock, server_hostname="localhost") as wrapped:
            assert wrapped.selected_alpn_protocol() == "h2"
            yield H2(wrapped, flow=flow, settings=settings)
