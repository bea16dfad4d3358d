"""Events of an ASGI HTTP call: what receive gives, what send takes, and what it refuses."""

from typing import Any

import pytest

from tests.conftest import Serve
from tests.support import frames, raw, steps
from tests.support.serving import Served
from tests.support.steps import body, receive, saw, seen, send, start, target


@pytest.fixture(scope="module")
def server(serve_module: Serve) -> Served:
    """Applications that fail are expected here."""
    return serve_module("script", app_errors=True)


def test_request_without_body_is_one_empty_event(server: Served) -> None:
    raw.get(server, target(receive(), start(), body(), key="empty"))
    assert seen(server, "empty")[0] == {"type": "http.request", "body": "b:", "more_body": False}


def test_body_pieces_come_one_by_one_and_the_last_says_so(server: Served) -> None:
    with raw.connect(server) as client:
        path = target(receive(), receive(), start(), body(), key="pieces")
        client.request(path, "POST", headers=[(b"content-length", b"6")])
        client.send(b"abc")
        saw(server, "pieces", {"type": "http.request", "body": "b:abc", "more_body": True})
        client.send(b"def")
        assert client.response().status == 200
    assert seen(server, "pieces")[1] == {"type": "http.request", "body": "b:def", "more_body": False}


def test_body_that_waited_is_joined(server: Served) -> None:
    with raw.connect(server) as client:
        path = target({"sleep": 0.3}, receive(), start(), body(), key="joined")
        client.request(path, "POST", headers=[(b"transfer-encoding", b"chunked")])
        for piece in (b"1\r\na\r\n", b"1\r\nb\r\n", b"0\r\n\r\n"):
            client.send(piece)
        client.response()
    assert seen(server, "joined")[0] == {"type": "http.request", "body": "b:ab", "more_body": False}


def test_receive_after_the_response_is_a_disconnect_each_time(server: Served) -> None:
    with raw.connect(server) as client:
        client.get(target(receive(), start(), body(), receive(2), key="after"))
        notes = saw(server, "after", {"type": "http.disconnect"})
        assert client.get("/").body == b"Hello, world!"
    assert notes[-2:] == [{"type": "http.disconnect"}] * 2


@pytest.mark.parametrize("kind", ["bytes", "bytearray", "memoryview", "empty"])
def test_body_may_be_any_octets_or_missing(serve_module: Serve, kind: str) -> None:
    server = serve_module("octets")
    assert raw.get(server, f"/{kind}").body == (b"" if kind == "empty" else b"octets octets")
    with frames.connect(server) as client:
        assert client.get(f"/{kind}").body == (b"" if kind == "empty" else b"octets octets")


def test_start_needs_no_headers_and_default_ones_come_first(server: Served) -> None:
    response = raw.get(server, target(send("start", status=200), body(b"x")))
    assert [name for name, _ in response.headers] == [b"date", b"server", b"transfer-encoding"]
    assert response.value(b"server") == b"tricorn"
    assert response.reason == b"OK"


def test_header_names_are_lower_cased_and_values_kept(server: Served) -> None:
    fields = [(b"X-Mixed", b"Value"), (b"Set-Cookie", b"a=1"), (b"Set-Cookie", b"b=2"), (b"x-latin", b"caf\xe9")]
    response = raw.get(server, target(start(headers=fields), body(b"x")))
    assert [pair for pair in response.headers if pair[0].startswith((b"x-", b"set-"))] == [
        (b"x-mixed", b"Value"),
        (b"set-cookie", b"a=1"),
        (b"set-cookie", b"b=2"),
        (b"x-latin", b"caf\xe9"),
    ]


def test_default_headers_can_be_changed(serve: Serve) -> None:
    server = serve("script", server_header=False, date_header=False, header=["X-Frame-Options:DENY", "server:mine"])
    headers = raw.get(server, "/").headers
    assert headers[:2] == [(b"x-frame-options", b"DENY"), (b"server", b"mine")]
    assert b"date" not in dict(headers)


def test_unknown_status_has_no_reason(server: Served) -> None:
    response = raw.get(server, target(start(299), body(b"x")))
    assert (response.status, response.reason) == (299, b"")


# --- what send refuses: the text is uvicorn's ---

EXPECTED_START = "RuntimeError: Expected ASGI message 'http.response.start', but got 'http.response.{}'."
EXPECTED_BODY = "RuntimeError: Expected ASGI message 'http.response.body', but got 'http.response.start'."
COMPLETED = "RuntimeError: Unexpected ASGI message 'http.response.body' sent, after response already completed."
THREE_OCTETS = [(b"content-length", b"3")]
REFUSED: dict[str, tuple[list[steps.Step], str]] = {
    "body first": ([body(b"x")], EXPECTED_START.format("body")),
    "unknown": ([send("nonsense")], EXPECTED_START.format("nonsense")),
    "start twice": ([start(), start()], EXPECTED_BODY),
    "body after the end": ([start(), body(), body()], COMPLETED),
    "too long": (
        [start(headers=THREE_OCTETS), body(b"four")],
        "RuntimeError: Response content longer than Content-Length",
    ),
    "too short": (
        [start(headers=THREE_OCTETS), body(b"2")],
        "RuntimeError: Response content shorter than Content-Length",
    ),
    "bad name": ([start(headers=[(b"a b", b"c")])], "RuntimeError: Invalid HTTP header name."),
    "bad value": ([start(headers=[(b"x-a", b"1\r\nx-injected: 1")])], "RuntimeError: Invalid HTTP header value."),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_message_raises_at_send(server: Served, name: str) -> None:
    script, text = REFUSED[name]
    with raw.connect(server) as client:
        client.request(target(*script, key=name), headers=[(b"connection", b"close")])
        saw(server, name, text)
        assert b"x-injected" not in client.rest()
    assert seen(server, name)[-1] == text


@pytest.mark.parametrize("name", ["body first", "bad name", "bad value", "unknown"])
def test_wrong_message_before_the_start_is_a_500(server: Served, name: str) -> None:
    script, _ = REFUSED[name]
    assert raw.get(server, target(*script)).status == 500
    with frames.connect(server) as client:
        assert client.get(target(*script)).status == 500


@pytest.mark.parametrize(
    "message",
    [
        {"type": "http.response.start"},
        {"type": "http.response.start", "status": "200"},
        {"type": "http.response.start", "status": 42},
        {"type": "http.response.start", "status": 101},
        {"type": "http.response.start", "status": 600},
        {"type": "http.response.start", "status": 200, "headers": 3},
        {"type": "http.response.start", "status": 200, "headers": [["text", "b:value"]]},
        {"type": "http.response.start", "status": 200, "headers": [["b:name"]]},
        {"type": 7},
        {},
    ],
    ids=str,
)
def test_malformed_start_is_a_500_and_the_server_lives(server: Served, message: dict[str, object]) -> None:
    step = {"send": message, "catch": False}
    assert raw.get(server, target(step)).status == 500
    with frames.connect(server) as client:
        assert client.get(target(step)).status == 500
        assert client.get("/").body == b"Hello, world!"


@pytest.mark.parametrize("content", [{"body": "text"}, {"body": 3}], ids=str)
def test_malformed_body_cuts_the_response(server: Served, content: dict[str, Any]) -> None:
    with raw.connect(server) as client:
        client.request(target(start(), send("body", **content), key=f"cut {content}"))
        assert b"0\r\n\r\n" not in client.rest()
    assert seen(server, f"cut {content}")[-1].startswith(("TypeError", "AttributeError", "RuntimeError"))


def test_refused_message_can_be_mended(server: Served) -> None:
    script = [send("start", caught=True, status=200, headers=[["b:a b", "b:c"]]), start(), body(b"mended")]
    assert raw.get(server, target(*script)).body == b"mended"


def test_messages_after_the_client_left_raise_oserror_and_log_nothing(server: Served) -> None:
    before = server.log()
    with raw.connect(server) as client:
        client.request(target(receive(2), start(), body(b"x" * 10, more=True), key="gone"))
        saw(server, "gone", {"type": "http.request", "body": "b:", "more_body": False})
        client.reset()
    saw(server, "gone", {"type": "http.disconnect"})
    steps.eventually(lambda: len(seen(server, "gone")) == 3, "the failed send")
    assert seen(server, "gone")[2].startswith(("ClientDisconnected", "OSError", "ConnectionResetError", "BrokenPipe"))
    assert server.log() == before
