"""Unary calls that the core answers itself: the same answers as by connectrpc's own path, `--rpc asgi`."""

import base64
import gzip
import json
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from examples.greet.gen.greet.v1.greet_pb import GreetRequest
from tests.apps.rpc import READ_MAX
from tests.conftest import Serve
from tests.support import frames, raw
from tests.support.serving import Served, eventually, resident

GREET = "/greet.v1.GreetService/Greet"
KINDS = {
    "connect proto": "application/proto",
    "connect json": "application/json",
    "grpc": "application/grpc+proto",
    "grpc json": "application/grpc+json",
    "grpc-web": "application/grpc-web+proto",
}
PASSED_OVER = {b"date", b"server"}


@dataclass(frozen=True)
class Call:
    """A request of the matrix: `fields` and `body` are what goes on the wire."""

    fields: list[tuple[bytes, bytes]]
    body: bytes
    method: str = "POST"
    path: str = GREET


@dataclass(frozen=True)
class Answer:
    """What matters of an answer."""

    status: int
    fields: list[tuple[bytes, bytes]]
    body: bytes
    trailers: list[tuple[bytes, bytes]]


def is_connect(kind: str) -> bool:
    return kind.startswith("connect")


def message(kind: str, name: str) -> bytes:
    return json.dumps({"name": name}).encode() if kind.endswith("json") else GreetRequest(name=name).to_binary()


def envelope(data: bytes, flags: int = 0) -> bytes:
    return bytes([flags]) + len(data).to_bytes(4) + data


def call(kind: str, name: str, *more: tuple[bytes, bytes]) -> Call:
    data = message(kind, name)
    return Call([(b"content-type", KINDS[kind].encode()), *more], data if is_connect(kind) else envelope(data))


def zipped(kind: str, name: str, *more: tuple[bytes, bytes]) -> Call:
    data = gzip.compress(message(kind, name))
    header = b"content-encoding" if is_connect(kind) else b"grpc-encoding"
    body = data if is_connect(kind) else envelope(data, 1)
    return Call([(b"content-type", KINDS[kind].encode()), (header, b"gzip"), *more], body)


def broken(kind: str, body: bytes, *more: tuple[bytes, bytes]) -> Call:
    return Call([(b"content-type", KINDS[kind].encode()), *more], body)


HANDLERS = (
    "hello:world",
    "fill:5000",
    "later:0.01",
    "changed:",
    "stubborn:",
    "sleep:",
    "cancel:",
    "interrupt:",
    "error:",
    "error:details",
    "bug:",
    "timeout_error:",
    "http_error:",
    "metadata:",
    "not_a_message:",
    "raise_at_once:",
    "not_awaitable:",
    "context:",
    "task:",
)
CODES = ("canceled", "unknown", "deadline_exceeded", "not_found", "unauthenticated", "data_loss", "out_of_range")


def timeout_of(kind: str, name: str) -> list[tuple[bytes, bytes]]:
    """A deadline that strikes only handlers that would sleep for a minute; one in three gets none."""
    short = name.partition(":")[0] in ("changed", "stubborn", "sleep")
    if is_connect(kind):
        return [(b"connect-timeout-ms", b"30" if short else b"30000")]
    return [(b"grpc-timeout", b"30m" if short else b"30S")]


def good(kind: str) -> Iterator[tuple[str, Call]]:
    """Requests that reach the handler."""
    accept = b"accept-encoding" if is_connect(kind) else b"grpc-accept-encoding"
    for name in HANDLERS:
        yield name, call(kind, name, (b"x-probe", b"1"), (b"x-probe", b"2"), *timeout_of(kind, name))
    for code in CODES:
        yield f"code:{code}", call(kind, f"code:{code}")
    for name in ("hello:gzip", "fill:100000", "bug:", "error:details", "metadata:"):
        yield f"{name} zipped", zipped(kind, name, (accept, b"br, gzip"))
        yield f"{name} accepts gzip", call(kind, name, (accept, b"gzip"))
        yield f"{name} sends gzip", zipped(kind, name)
    yield "accepts nothing known", call(kind, "hello:x", (accept, b"snappy,identity;q=0.5"))
    yield "no deadline", call(kind, "context:")


def bad(kind: str) -> Iterator[tuple[str, Call]]:
    """Requests with a fault."""
    encoding = b"content-encoding" if is_connect(kind) else b"grpc-encoding"
    deadline = b"connect-timeout-ms" if is_connect(kind) else b"grpc-timeout"
    wrap = bytes if is_connect(kind) else envelope
    yield "empty body", broken(kind, b"")
    yield "empty message", broken(kind, wrap(b""))
    yield "not a message", broken(kind, wrap(b"\xff\xff\xff{"))
    yield "unknown encoding", broken(kind, wrap(b""), (encoding, b"snappy"))
    yield "not gzip", broken(kind, b"abc" if is_connect(kind) else envelope(b"abc", 1), (encoding, b"gzip"))
    cut = gzip.compress(message(kind, "hello:x"))[:-6]
    yield "cut gzip", broken(kind, cut if is_connect(kind) else envelope(cut, 1), (encoding, b"gzip"))
    bomb = gzip.compress(bytes(READ_MAX * 100))
    yield "bomb", broken(kind, bomb if is_connect(kind) else envelope(bomb, 1), (encoding, b"gzip"))
    yield (
        "as large as may be",
        broken(kind, wrap(message(kind, "x" * (READ_MAX - len(message(kind, "x" * 1000)) + 1000)))),
    )
    yield "one too large", broken(kind, wrap(bytes(READ_MAX + 1)))
    for value in (b"", b"x", b"-1", b"99999999999", b"1_0", b"0"):
        yield f"timeout {value!r}", call(kind, "later:0.01", (deadline, value))
    yield "longest timeout", call(kind, "hello:x", (deadline, b"9999999999" if is_connect(kind) else b"99999999H"))
    yield "other octets in a field", call(kind, "hello:x", (b"x-probe", b"caf\xc3\xa9"))
    yield "query", Call(call(kind, "hello:x").fields, call(kind, "hello:x").body, path=GREET + "?a=b")
    yield "PUT", Call(call(kind, "hello:x").fields, call(kind, "hello:x").body, method="PUT")
    yield "unknown codec", Call([(b"content-type", KINDS[kind].encode() + b"x")], b"")


def bad_envelopes(kind: str) -> Iterator[tuple[str, Call]]:
    one = envelope(message(kind, "hello:x"))
    yield "two messages", broken(kind, one + one)
    yield "two messages, one cut", broken(kind, one + one[:-2])
    yield "two messages, one's head cut", broken(kind, one + one[:3])
    yield "cut head", broken(kind, one[:3])
    yield "cut message", broken(kind, one[:-1])
    yield "unknown flags", broken(kind, b"\x04" + one[1:])
    yield "compressed without encoding", broken(kind, b"\x01" + one[1:])
    yield "more than the limit behind it", broken(kind, one + bytes(2 * READ_MAX))
    yield "promises too much", broken(kind, b"\x00\xff\xff\xff\xff")


def others() -> Iterator[tuple[str, Call]]:
    data = GreetRequest(name="hello:x").to_binary()
    yield "no content type", Call([], b"")
    yield "connect version", call("connect json", "hello:x", (b"connect-protocol-version", b"1"))
    yield "other connect version", call("connect json", "hello:x", (b"connect-protocol-version", b"2"))
    yield "content type with charset", Call([(b"content-type", b"Application/JSON; charset=utf-8")], b"{}")
    yield "bare application/grpc", Call([(b"content-type", b"application/grpc")], envelope(data))
    yield "bare application/grpc-web", Call([(b"content-type", b"application/grpc-web")], envelope(data))
    yield "escaped path", Call([(b"content-type", b"application/proto")], data, path=GREET.replace("Greet", "Gr%65et"))
    query = f"?connect=v1&encoding=proto&base64=1&message={base64.urlsafe_b64encode(data).decode()}"
    yield "GET with side effects", Call([], b"", method="GET", path=GREET + query)


def matrix() -> Iterator[tuple[str, Call]]:
    for kind in KINDS:
        cases = [*good(kind), *bad(kind), *([] if is_connect(kind) else bad_envelopes(kind))]
        yield from ((f"{kind} / {name}", asked) for name, asked in cases)
    yield from others()


def speaks_grpc(asked: Call) -> bool:
    kind = dict(asked.fields).get(b"content-type", b"")
    return kind.startswith(b"application/grpc") and not kind.startswith(b"application/grpc-web")


def by_http1(server: Served, asked: Call) -> Answer:
    with raw.connect(server) as connection:
        connection.request(asked.path, asked.method, asked.fields, asked.body)
        got = connection.response(asked.method)
    return Answer(got.status, mattering(got.headers), got.body, sorted(got.trailers))


def by_http2(server: Served, asked: Call) -> Answer:
    """With `te: trailers`: without it the ASGI path sends none, and a gRPC client always says it."""
    fields = [*asked.fields, (b"te", b"trailers")]
    with frames.connect(server) as connection:
        got = connection.response(connection.request(asked.path, asked.method, fields, asked.body))
        assert got.reset in (None, 0), got.reset
    return Answer(got.status, mattering(got.headers), bytes(got.body), sorted(got.trailers))


def mattering(fields: raw.Fields) -> list[tuple[bytes, bytes]]:
    """Without the length, which either path may leave out, and the connection's own."""
    passed_over = PASSED_OVER | {b"content-length", b"transfer-encoding", b"connection"}
    return sorted((name.lower(), value) for name, value in fields if name.lower() not in passed_over)


def plain(answer: Answer) -> Answer:
    """With what gzip made taken apart: its octets may differ by a time."""
    fields = dict(answer.fields)
    body = answer.body
    if fields.get(b"content-encoding") == b"gzip":
        body = gzip.decompress(body)
    elif fields.get(b"grpc-encoding") == b"gzip":
        body = b"".join(bytes([flags]) + (gzip.decompress(data) if flags & 1 else data) for flags, data in unwrap(body))
    return Answer(answer.status, answer.fields, body, answer.trailers)


def unwrap(body: bytes) -> Iterator[tuple[int, bytes]]:
    while body:
        size = int.from_bytes(body[1:5])
        yield body[0], body[5 : 5 + size]
        body = body[5 + size :]


@pytest.fixture(scope="module")
def native(serve_module: Serve) -> Served:
    server = serve_module("rpc", app_errors=True)
    assert "Native RPC for 1 method\n" in server.log()
    return server


@pytest.fixture(scope="module")
def by_asgi(serve_module: Serve) -> Served:
    server = serve_module("rpc", rpc="asgi", app_errors=True)
    assert "RPC" not in server.log()
    return server


@pytest.mark.parametrize("ask", [by_http1, by_http2], ids=["h1", "h2c"])
def test_both_paths_answer_alike(native: Served, by_asgi: Served, ask: Callable[[Served, Call], Answer]) -> None:
    cases = dict(matrix())
    assert len(cases) > 300
    differences = []
    for name, asked in cases.items():
        if ask is by_http1 and speaks_grpc(asked):
            continue
        ours, theirs = plain(ask(native, asked)), plain(ask(by_asgi, asked))
        if ours != theirs:
            differences.append(f"{name}:\n  native {ours}\n  asgi   {theirs}")
    assert not differences, "\n".join(differences)


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_the_cuts(native: Served, kind: str) -> None:
    """The body arrives octet by octet, while the connection is used for others too."""
    asked = zipped(kind, "hello:cut")
    whole = by_http2(native, asked)
    assert whole.status == 200
    with frames.connect(native) as connection:
        stream = connection.request(GREET, "POST", asked.fields, end=False)
        for octet in asked.body:
            connection.send(stream, bytes([octet]))
        connection.send(stream, b"", end=True)
        assert connection.response(stream).body == whole.body


@pytest.mark.parametrize("kind", KINDS)
def test_deadline_passes_while_the_body_is_missing(native: Served, kind: str) -> None:
    asked = call(kind, "hello:x", timeout_of(kind, "sleep")[0])
    with frames.connect(native) as connection:
        stream = connection.request(GREET, "POST", asked.fields, asked.body[:4], end=False)
        got = connection.response(stream)
    assert (
        (got.status == 504)
        if is_connect(kind)
        else (b"grpc-status", b"4") in got.trailers or b"grpc-status: 4" in got.body
    )


def test_handler_is_cancelled_when_the_client_leaves(native: Served) -> None:
    asked = call("grpc", "sleep:h2")
    with frames.connect(native) as connection:
        stream = connection.request(GREET, "POST", asked.fields, asked.body)
        assert connection.get("/", "GET").status == 404
        connection.reset(stream)
        eventually(lambda: said(native, "last:") == "h2 cleaned up", "the handler's end")


def test_handler_is_cancelled_when_the_connection_closes(native: Served) -> None:
    asked = call("connect json", "sleep:h1")
    with raw.connect(native) as connection:
        connection.request(GREET, "POST", asked.fields, asked.body)
        time.sleep(0.05)
    eventually(lambda: said(native, "last:") == "h1 cleaned up", "the handler's end")


def test_client_that_only_stops_sending_gets_its_error(native: Served, by_asgi: Served) -> None:
    asked = call("connect json", "sleep:half")
    answers = []
    for server in (native, by_asgi):
        with raw.connect(server) as connection:
            connection.request(GREET, "POST", asked.fields, asked.body)
            connection.sock.shutdown(socket.SHUT_WR)
            got = connection.response()
            answers.append((got.status, got.body))
    assert answers[0] == answers[1]
    assert answers[0][0] == 499


def said(server: Served, name: str) -> str:
    return json.loads(by_http1(server, call("connect json", name)).body)["greeting"]


def test_context_outlives_its_call(native: Served, by_asgi: Served) -> None:
    kept = []
    for server in (native, by_asgi):
        assert said(server, "keep:") == "kept"
        for _ in range(100):
            said(server, "hello:again")
        kept.append(said(server, "kept:"))
    assert kept[0] == kept[1]
    assert "('content-type', 'application/json')" in kept[0]


@pytest.mark.parametrize("name", ["bad_header:", "length:3", "length:3000"])
def test_answer_that_cannot_be_sent_is_an_error(native: Served, name: str) -> None:
    got = raw_answer(native, name)
    assert got in (500, None)
    assert said(native, "hello:on") == "Hello, on!"


def raw_answer(server: Served, name: str) -> int | None:
    try:
        return by_http1(server, call("connect json", name)).status
    except (EOFError, ConnectionError):
        return None


def test_large_messages_both_ways(serve: Serve) -> None:
    server = serve("examples.greet.server:app", access_log=False)
    name = "n" * (3 << 20)
    for kind in KINDS:
        got = by_http2(server, call(kind, name))
        assert got.status == 200
        assert len(got.body) > len(name)


def test_server_stops_while_handlers_wait(serve: Serve) -> None:
    server = serve("rpc", timeout_graceful_shutdown=0.2, app_errors=True)
    asked = call("grpc-web", "sleep:")
    with frames.connect(server) as connection:
        stream = connection.request(GREET, "POST", asked.fields, asked.body)
        assert connection.get("/").status == 404
        server.send_signal(15)
        assert b"grpc-status: 1" in connection.response(stream).body
    server.wait()


def test_access_log_has_its_line(native: Served) -> None:
    said(native, "hello:logged")
    native.wait_for_access_log(f'"POST {GREET} HTTP/1.1" 200')


def test_errors_of_handlers_are_logged_with_their_traceback(native: Served) -> None:
    by_http1(native, call("connect json", "bug:"))
    assert "ValueError: a bug" in native.wait_for_log('raise ValueError("a bug")')


@pytest.mark.timing
def test_calls_leave_nothing_behind(native: Served) -> None:
    def many() -> None:
        with frames.connect(native) as connection:
            for number in range(1500):
                kind = ("connect proto", "grpc", "grpc-web")[number % 3]
                name = ("fill:3000", "bug:", "context:", "error:details", "later:0")[number % 5]
                asked = zipped(kind, name, *timeout_of(kind, name))
                connection.response(connection.request(GREET, "POST", asked.fields, asked.body))

    many()
    before = resident(native)
    many()
    assert resident(native) - before < 2 << 20


def test_start_line_says_why_not(serve: Serve) -> None:
    server = serve("rpc", root_path="/api")
    assert "The application answers its RPCs itself: root_path is set" in server.log()


@pytest.mark.parametrize("how", ["close", "send", "throw"])
def test_handler_that_drives_its_own_coroutine_gets_an_error(native: Served, how: str) -> None:
    answer = by_http1(native, call("connect json", f"reenter:{how}"))
    assert answer.status == 500
    assert b"coroutine already executing" in answer.body
    assert by_http1(native, call("connect json", "greet:all")).status == 200
