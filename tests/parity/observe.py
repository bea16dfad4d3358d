"""Sends the same octets to a server and writes down what the application and the client saw."""

import json
from collections.abc import Iterator
from typing import Any

from tests.support import frames, raw, steps
from tests.support.raw import Fields
from tests.support.serving import Served
from tests.support.steps import body, receive, seen, start, target

Observation = dict[str, str]

FORM = [(b"x-first", b"1"), (b"X-Second", b"2"), (b"x-first", b"3")]
SCOPES: dict[str, bytes] = {
    "scope": b"GET /scope?a=1&b=%20 HTTP/1.1\r\nHost: example.test\r\nX-One: 1\r\nx-two:  2 \r\nX-ONE: 3\r\n\r\n",
    "scope, escaped path": b"GET /%73cope?%c3%bc=%FF HTTP/1.1\r\nhost: a\r\n\r\n",
    "scope, HTTP/1.0": b"GET /scope HTTP/1.0\r\nhost: a\r\n\r\n",
    "scope, POST": b"POST /scope HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc",
    "scope, te": b"GET /scope HTTP/1.1\r\nhost: a\r\nte: trailers\r\n\r\n",
}
JSON = [(b"content-type", b"application/json"), (b"content-length", b"2")]
SCRIPTS: dict[str, tuple[str, list[steps.Step]]] = {
    "fixed length": ("GET", [start(headers=JSON), body(b"{}")]),
    "chunked": ("GET", [start(headers=FORM), body(b"one", more=True), body(b"", more=True), body(b"two")]),
    "empty": ("GET", [start(headers=[(b"content-length", b"0")]), body()]),
    "no content": ("GET", [start(204), body()]),
    "not modified": ("GET", [start(304, headers=[(b"etag", b'"x"')]), body()]),
    "created": ("POST", [receive(), start(201, headers=JSON), body(b"{}")]),
    "head": ("HEAD", [start(headers=JSON), body(b"{}")]),
    "head, chunked": ("HEAD", [start(), body(b"x", more=True), body()]),
    "receive": ("POST", [receive(), start(headers=JSON), body(b"{}"), receive()]),
    "error before start": ("GET", [{"raise": "boom"}]),
    "no start": ("GET", []),
    "body first": ("GET", [{**body(b"x"), "catch": True}, start(headers=JSON), body(b"{}")]),
    "start twice": ("GET", [start(headers=JSON), {**start(), "catch": True}, body(b"{}")]),
    "after the end": ("GET", [start(headers=JSON), body(b"{}"), {**body(b"more"), "catch": True}]),
    "too long": ("GET", [start(headers=JSON), {**body(b"{}}"), "catch": True}]),
    "too short": ("GET", [start(headers=JSON), {**body(b"{"), "catch": True}]),
    "error after start": ("GET", [start(), body(b"part", more=True), {"raise": "boom"}]),
    "unfinished": ("GET", [start(), body(b"part", more=True)]),
}
NOT_OVER_HTTP2 = ("too long", "too short")  # hypercorn sends these as they are: no client takes them
MALFORMED = {
    "noise": b"\x00\x01\x02\r\n\r\n",
    "bad length": b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: x\r\n\r\n",
    "bad field": b"GET / HTTP/1.1\r\nhost: a\r\nx y: 1\r\n\r\n",
}


def observe(server: Served) -> Iterator[tuple[str, Observation]]:
    """Every case by name, and what was seen in it, as text by key."""
    for name, request in SCOPES.items():
        with raw.connect(server) as client:
            client.send(request)
            yield name, flat("", json.loads(client.response().body))
    for name, (method, script) in SCRIPTS.items():
        with raw.connect(server) as client:
            client.request(target(*script, key=name), method, body=b"data" if method == "POST" else None)
            answer = read(client, method)
        yield name, answer | flat("seen", seen(server, name))
    for name, request in MALFORMED.items():
        with raw.connect(server) as client:
            client.send(request)
            yield name, read(client, "GET")


def observe_http2(server: Served) -> Iterator[tuple[str, Observation]]:
    with frames.connect(server) as client:
        stream = client.get("/scope?a=1", headers=[(b"x-first", b"1"), (b"x-first", b"2")])
        yield "h2: scope", flat("", json.loads(stream.body))
    for name, (method, script) in SCRIPTS.items():
        if name in NOT_OVER_HTTP2:
            continue
        key = f"h2: {name}"
        with frames.connect(server) as client:
            number = client.request(target(*script, key=key), method, body=b"data" if method == "POST" else None)
            answer = client.streams[number]
            while not answer.over and not client.closed:
                client.read()
        end = "reset" if answer.reset is not None else "ended" if answer.ended else "connection closed"
        yield (
            key,
            {**fields(answer.headers), "body": repr(bytes(answer.body)), "end": end} | flat("seen", seen(server, key)),
        )


def read(client: raw.Raw, method: str) -> Observation:
    """The answer, and whether the connection stays open behind it."""
    try:
        head = client.head()
    except (EOFError, ConnectionResetError):
        return {"answer": "none"}
    observed = {"version": head.version.decode(), "status": str(head.status), "reason": head.reason.decode()}
    observed |= fields(head.headers)
    try:
        observed["body"] = repr(client.body_of(head, method).body)
    except (EOFError, ConnectionResetError):
        observed["body"] = "cut"
    observed["connection"] = "open" if client.silent(0.5) else "closed"
    return observed


def fields(headers: Fields) -> Observation:
    """One key for each name; repeated ones keep their order."""
    found: Observation = {"order": " ".join(name.decode() for name, _ in headers)}
    for name, value in headers:
        key = f"header.{name.decode().lower()}"
        shown = "a date" if key == "header.date" else value.decode("latin-1")
        found[key] = f"{found[key]}, {shown}" if key in found else shown
    return found


def flat(prefix: str, value: Any) -> Observation:
    """Nested values as dotted keys."""
    if isinstance(value, dict) and value and "tuple" not in value:
        return {
            key: text for name, one in value.items() for key, text in flat(f"{prefix}.{name}".strip("."), one).items()
        }
    if isinstance(value, list) and prefix.startswith("seen"):
        return {key: text for number, one in enumerate(value) for key, text in flat(f"{prefix}.{number}", one).items()}
    return {prefix or "value": json.dumps(value)}
