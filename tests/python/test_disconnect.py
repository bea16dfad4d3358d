"""What an application is told when its client goes: half, orderly, or by a reset."""

import pytest

from tests.conftest import Serve
from tests.support import raw
from tests.support.certificates import Certificates
from tests.support.serving import Served, eventually
from tests.support.steps import saw, seen


@pytest.fixture(scope="module")
def server(serve_module: Serve) -> Served:
    return serve_module("web")


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_waiting_application_is_told_each_time_it_asks(server: Served, how: str, method: str) -> None:
    key = f"waiting-{how}-{method}"
    with raw.connect(server) as client:
        client.request(f"/wait?key={key}", method, body=b"body" if method == "POST" else None)
        saw(server, key, "started")
        if how == "reset":
            client.reset()
    eventually(lambda: seen(server, key) == ["started", "http.disconnect", "http.disconnect"], key)


@pytest.mark.parametrize("how", ["close", "reset"])
def test_application_reading_a_body_is_told(server: Served, how: str) -> None:
    key = f"reading-{how}"
    with raw.connect(server) as client:
        client.request(f"/sink?key={key}", "POST", headers=[(b"content-length", b"100")])
        client.send(b"only this")
        saw(server, key, "started")
        if how == "reset":
            client.reset()
    saw(server, key, "http.disconnect")


@pytest.mark.parametrize("reads", [True, False], ids=["reading client", "stalled client"])
def test_sending_application_gets_an_oserror(server: Served, *, reads: bool) -> None:
    key = f"sending-{reads}"
    with raw.connect(server) as client:
        client.request(f"/endless?key={key}")
        client.head()
        if reads:
            for _ in range(10):
                client.chunk()
        client.reset()
    assert seen_end(server, key) == ["started", "OSError True", "ended"]
    assert "Exception in ASGI" not in server.log()


def seen_end(server: Served, key: str) -> list[object]:
    return saw(server, key, "ended")


def test_sending_application_over_tls_gets_an_oserror(serve: Serve, certs: Certificates) -> None:
    server = serve("web", bind="127.0.0.1:0", tls_bind="127.0.0.1:0", **certs.options())
    plain, secure = server.addresses
    server.addresses = [secure]
    with raw.connect(server, tls=certs.context()) as client:
        client.request("/endless?key=tls")
        client.head()
        client.reset()
    server.addresses = [plain]
    assert seen_end(server, "tls") == ["started", "OSError True", "ended"]


def test_half_close_after_the_request_still_gets_the_answer(server: Served) -> None:
    with raw.connect(server) as client:
        client.request("/sleep?seconds=0.3")
        client.half_close()
        assert client.response().body == b"slept"
        assert client.ends()


def test_half_close_is_a_disconnect_and_the_answer_is_still_written(server: Served) -> None:
    with raw.connect(server) as client:
        client.request("/answer-after-disconnect?key=half")
        client.half_close()
        assert client.response().body == b"still here"
        assert client.ends()
    assert seen(server, "half") == ["http.disconnect", "answered"]


def test_half_close_within_a_body_is_a_disconnect(server: Served) -> None:
    with raw.connect(server) as client:
        client.request("/sink?key=half-body", "POST", headers=[(b"content-length", b"100")])
        client.send(b"only this")
        saw(server, "half-body", "started")
        client.half_close()
        client.rest()
    saw(server, "half-body", "http.disconnect")


def test_half_close_after_pipelined_requests_answers_all(server: Served) -> None:
    with raw.connect(server) as client:
        for number in range(3):
            client.request(f"/sleep?seconds=0.1&text={number}")
        client.half_close()
        assert [client.response().body for _ in range(3)] == [b"0", b"1", b"2"]
        assert client.ends()


def test_connections_that_die_while_handlers_run_harm_nobody(server: Served) -> None:
    for number in range(60):
        with raw.connect(server) as client:
            path = ("/sleep?seconds=0.2", "/stream?count=100&size=100000", "/sink", "/wait", "/duplex")[number % 5]
            client.request(path, "POST", headers=[(b"content-length", b"1000")])
            client.send(b"x" * (number * 10))
            if number % 2:
                client.reset()
    assert raw.get(server, "/").body == b"Hello, world!"
