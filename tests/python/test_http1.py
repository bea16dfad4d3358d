"""HTTP/1 on the wire: connections, framing, interim answers, odd heads."""

import json
import time

import pytest

from tests.conftest import Serve
from tests.support import raw
from tests.support.serving import Served
from tests.support.steps import body, receive, seen, start, target

GET = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"


@pytest.fixture(scope="module")
def server(serve_module: Serve) -> Served:
    return serve_module("web")


@pytest.fixture(scope="module")
def scripted(serve_module: Serve) -> Served:
    return serve_module("script", app_errors=True)


# --- connections ---


def test_connection_is_kept(server: Served) -> None:
    with raw.connect(server) as client:
        for _ in range(1000):
            assert client.get("/").body == b"Hello, world!"


@pytest.mark.parametrize("value", [b"close", b"Close", b"keep-alive, close", b"te,CLOSE"])
def test_close_is_answered_and_done(server: Served, value: bytes) -> None:
    with raw.connect(server) as client:
        response = client.get("/", headers=[(b"connection", value)])
        assert response.value(b"connection") == b"close"
        assert client.ends()


def test_application_may_ask_to_close(scripted: Served) -> None:
    with raw.connect(scripted) as client:
        client.get(target(start(headers=[(b"connection", b"Close")]), body(b"x")))
        assert client.ends()


def test_idle_connection_is_closed_after_its_time(serve: Serve) -> None:
    server = serve("web", timeout_keep_alive=1)
    with raw.connect(server) as client:
        client.get("/")
        began = time.monotonic()
        assert client.ends()
        assert time.monotonic() - began > 0.9


def test_slow_head_is_closed_after_its_time(serve: Serve) -> None:
    server = serve("web", timeout_request_header=1)
    with raw.connect(server) as client:
        client.send(b"GET / HTTP/1.1\r\nhost: ")
        answer = client.rest()
        assert answer == b"" or answer.startswith(b"HTTP/1.1 408 ")
    assert raw.get(server, "/").status == 200


def test_pipelined_requests_are_answered_in_order(server: Served) -> None:
    with raw.connect(server) as client:
        client.send(
            b"GET /sleep?seconds=0.2&text=first HTTP/1.1\r\nhost: a\r\n\r\n"
            b"POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 6\r\n\r\nsecond"
            b"POST /echo HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nthird\r\n0\r\n\r\n"
            b"HEAD / HTTP/1.1\r\nhost: a\r\n\r\n"
            b"GET /stream HTTP/1.1\r\nhost: a\r\n\r\n"
            b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
        )
        bodies = [client.response(method).body for method in ("GET", "POST", "POST", "HEAD", "GET", "GET")]
        assert bodies == [b"first", b"second", b"third", b"", b"000001111122222", b"Hello, world!"]
        assert client.ends()


def test_hundreds_of_pipelined_requests_are_all_answered(server: Served) -> None:
    with raw.connect(server) as client:
        client.send(GET * 500)
        assert [client.response().status for _ in range(500)] == [200] * 500


def test_request_may_arrive_octet_by_octet(server: Served) -> None:
    head = b"POST /echo?a=%20b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    request = head + b"3;x=y\r\nabc\r\n0\r\nx-t: 1\r\n\r\n"
    with raw.connect(server) as client:
        for octet in request + GET:
            client.send(bytes([octet]))
        assert client.response().body == b"abc"
        assert client.response().body == b"Hello, world!"


# --- framing ---


def test_response_of_unknown_length_is_chunked(server: Served) -> None:
    response = raw.get(server, "/stream")
    assert response.value(b"transfer-encoding") == b"chunked"
    assert b"".join(response.chunks) == b"000001111122222"


def test_each_piece_is_sent_when_the_application_sends_it(server: Served) -> None:
    with raw.connect(server) as client:
        client.request("/stream?count=2&delay=0.5")
        client.head()
        assert client.chunk() == b"00000"
        assert client.silent(0.1)
        assert client.chunk() == b"11111"


def test_transfer_encoding_of_the_application_is_ignored(scripted: Served) -> None:
    with raw.connect(scripted) as client:
        response = client.get(target(start(headers=[(b"transfer-encoding", b"chunked")]), body(b"hello")))
        assert response.body == b"hello"
        assert client.get("/").status == 200


def test_head_has_the_fields_and_no_body(server: Served, scripted: Served) -> None:
    with raw.connect(server) as client:
        assert client.get("/", "HEAD").value(b"content-length") == b"13"
        assert client.get("/stream", "HEAD").body == b""
        assert client.get("/").body == b"Hello, world!"
    with raw.connect(scripted) as client:
        response = client.get(target(start(headers=[(b"content-length", b"5")]), body(b"hello")), "HEAD")
        assert response.value(b"content-length") == b"5"
        assert client.get("/").body == b"Hello, world!"


@pytest.mark.parametrize("status", [204, 304])
def test_status_without_body_has_neither_body_nor_framing(scripted: Served, status: int) -> None:
    with raw.connect(scripted) as client:
        response = client.get(target(start(status), body()))
        assert response.status == status
        assert not {b"transfer-encoding", b"content-length"} & dict(response.headers).keys()
        assert client.get("/").body == b"Hello, world!"


def test_not_modified_may_tell_a_length(scripted: Served) -> None:
    with raw.connect(scripted) as client:
        response = client.get(target(start(304, headers=[(b"content-length", b"7")]), body()))
        assert response.value(b"content-length") == b"7"
        assert client.get("/").body == b"Hello, world!"


def test_http10_gets_no_chunks_and_closes(server: Served) -> None:
    with raw.connect(server) as client:
        client.send(b"GET /stream HTTP/1.0\r\n\r\n")
        response = client.response()
        assert response.value(b"transfer-encoding") is None
        assert response.body == b"000001111122222"


def test_http10_keep_alive_is_granted_where_the_length_is_known(server: Served) -> None:
    with raw.connect(server) as client:
        client.send(b"GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n")
        response = client.response()
        assert response.body == b"Hello, world!"
        assert (response.value(b"connection") or b"").lower() == b"keep-alive"
        assert client.get("/").status == 200


def test_chunked_request_arrives_whole_without_extensions_and_trailers(server: Served) -> None:
    with raw.connect(server) as client:
        client.send(
            b"POST /echo HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n"
            b'4;name="va;lue"\r\nwiki\r\nA\r\n0123456789\r\n0\r\nx-sum: 1\r\nx-more: 2\r\n\r\n'
        )
        assert client.response().body == b"wiki0123456789"
        assert client.get("/").status == 200


def test_trailers_go_out_where_the_request_takes_them(server: Served) -> None:
    with raw.connect(server) as client:
        response = client.get("/trailers", headers=[(b"te", b"trailers"), (b"connection", b"te")])
        assert response.body == b"part whole"
        assert response.trailers == [(b"x-sum", b"42"), (b"x-more", b"yes")]
        assert client.get("/").status == 200


def test_trailers_are_left_out_where_it_does_not(server: Served) -> None:
    with raw.connect(server) as client:
        response = client.get("/trailers")
        assert (response.body, response.trailers) == (b"part whole", [])
        assert client.get("/").status == 200


def test_early_hints_come_before_the_answer(server: Served) -> None:
    with raw.connect(server) as client:
        client.request("/hints")
        hint = client.head()
        assert (hint.status, hint.reason) == (103, b"Early Hints")
        assert [value for name, value in hint.headers if name == b"link"] == [
            b"</style.css>; rel=preload; as=style",
            b"</script.js>; rel=preload; as=script",
        ]
        assert client.response().body == b"page"


def test_early_hints_are_not_for_http10(server: Served) -> None:
    with raw.connect(server) as client:
        client.send(b"GET /hints HTTP/1.0\r\n\r\n")
        assert client.head().status == 200


# --- Expect ---


def test_continue_is_said_when_the_application_asks_for_the_body(scripted: Served) -> None:
    path = target({"sleep": 0.3}, receive(), start(), body(b"thanks"), key="continue")
    with raw.connect(scripted) as client:
        client.request(path, "POST", headers=[(b"expect", b"100-Continue"), (b"content-length", b"4")])
        assert client.silent(0.1)
        assert client.head().status == 100
        client.send(b"body")
        assert client.response().body == b"thanks"
        assert client.get("/").status == 200
    assert seen(scripted, "continue")[0]["body"] in ("b:body", "b:")


def test_continue_is_not_said_when_the_answer_is_already_no(server: Served) -> None:
    with raw.connect(server) as client:
        client.request("/unread", "POST", headers=[(b"expect", b"100-continue"), (b"content-length", b"4")])
        assert client.head().status == 403


def test_other_expectations_fail(server: Served) -> None:
    with raw.connect(server) as client:
        client.request("/echo", "POST", headers=[(b"expect", b"200-maybe")], body=b"x")
        assert client.head().status in (200, 417)


# --- large and odd heads ---


def test_large_fields_arrive(server: Served) -> None:
    fields = [(b"x-%d" % n, b"v" * 6000) for n in range(10)]
    scope = json.loads(raw.get(server, "/scope", headers=fields).body)
    assert {"tuple": ["b:x-9", "b:" + "v" * 6000]} in scope["headers"]


def test_upgrade_to_something_unknown_is_served_as_plain_request(server: Served) -> None:
    with raw.connect(server) as client:
        response = client.get("/", headers=[(b"connection", b"upgrade"), (b"upgrade", b"foo/2")])
        assert response.body == b"Hello, world!"


def test_absolute_form_is_understood(server: Served) -> None:
    with raw.connect(server) as client:
        client.send(b"GET http://example.test/scope?x=1 HTTP/1.1\r\nhost: example.test\r\n\r\n")
        scope = json.loads(client.response().body)
    assert (scope["path"], scope["query_string"]) == ("/scope", "b:x=1")


def test_options_may_ask_about_the_whole_server(server: Served) -> None:
    with raw.connect(server) as client:
        client.send(b"OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n")
        assert client.response().status == 404  # the application's
