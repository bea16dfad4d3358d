"""HTTP/1 requests that are malformed or over a limit: a status, a close, and a server that goes on."""

import pytest

from tests.conftest import Serve
from tests.support import raw
from tests.support.serving import Served
from tests.support.steps import saw


@pytest.fixture(scope="module")
def server(serve_module: Serve) -> Served:
    return serve_module("web")


POST = b"POST / HTTP/1.1\r\nhost: a\r\n"
MALFORMED = {
    "noise": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "no version": b"GET /\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
    "space before colon": b"GET / HTTP/1.1\r\nhost: a\r\nx : 1\r\n\r\n",
    "folded field": b"GET / HTTP/1.1\r\nhost: a\r\nx: 1\r\n 2\r\n\r\n",
    "control in value": b"GET / HTTP/1.1\r\nhost: a\r\nx: \x00\r\n\r\n",
    "bare CR": b"GET / HTTP/1.1\r\nhost: a\r\nx: 1\rsmuggled: 1\r\n\r\n",
    "length and chunked": POST + b"content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
    "signed length": b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: +1\r\n\r\na",
    "huge length": b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999999999999999\r\n\r\na",
    "chunked not last": b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_request_gets_400_and_a_close(server: Served, name: str) -> None:
    with raw.connect(server) as client:
        client.send(MALFORMED[name])
        response = client.response()
        assert response.status in (400, 501)
        assert response.value(b"connection") == b"close"
        assert client.ends()
    assert "WARNING:  Invalid HTTP request received.\n" in server.log()
    assert raw.get(server, "/").status == 200


def test_bad_chunk_in_a_running_request_disconnects_the_application(server: Served) -> None:
    with raw.connect(server) as client:
        client.request("/wait?key=bad-chunk", "POST", headers=[(b"transfer-encoding", b"chunked")])
        saw(server, "bad-chunk", "started")
        client.send(b"3\r\nabc\r\nnot a size\r\n")
        answer = client.rest()
        assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")
    saw(server, "bad-chunk", "http.disconnect")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nhost: a\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nhost: a\r\nx: " + b"v" * 70_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nhost: a\r\n" + b"x: 1\r\n" * 200 + b"\r\n", 431),
    ],
    ids=["target", "field", "fields"],
)
def test_head_over_a_limit_is_refused(server: Served, request_: bytes, status: int) -> None:
    with raw.connect(server) as client:
        client.send(request_)
        assert client.response().status == status
        assert client.ends()


def test_body_over_a_limit_is_refused(serve: Serve) -> None:
    server = serve("web", limit_request_body=1000)
    with raw.connect(server) as client:
        client.request("/echo", "POST", body=bytes(1000))
        assert client.response().status == 200
        client.request("/echo", "POST", headers=[(b"content-length", b"1001")])
        assert client.response().status == 413
        assert client.ends()


def test_limit_of_concurrent_requests_answers_503(serve: Serve) -> None:
    server = serve("web", limit_concurrency=1)
    with raw.connect(server) as busy, raw.connect(server) as refused:
        busy.request("/wait?key=busy")
        busy.sock.settimeout(None)
        server_says = refused.get("/")
        while server_says.status == 200:  # the first one may not have arrived yet
            server_says = raw.get(server, "/")
    assert (server_says.status, server_says.body) == (503, b"Service Unavailable")
    server.wait_for_log("WARNING:  Exceeded concurrency limit.\n")
