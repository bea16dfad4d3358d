"""Applications that fail: the answer, the connection and the log lines are uvicorn's."""

import pytest

from tests.conftest import Serve
from tests.support import frames, raw
from tests.support.frames import Code
from tests.support.serving import Served
from tests.support.steps import body, receive, send, start, target

INTERNAL_ERROR = b"Internal Server Error"


@pytest.fixture
def server(serve: Serve) -> Served:
    return serve("script", app_errors=True)


def assert_internal_error(server: Served, *script: dict[str, object]) -> None:
    """500 and a close on HTTP/1; on HTTP/2 the connection goes on."""
    with raw.connect(server) as client:
        response = client.get(target(*script))
        assert client.ends()
    assert (response.status, response.body) == (500, INTERNAL_ERROR)
    assert response.value(b"content-type") == b"text/plain; charset=utf-8"
    assert response.value(b"content-length") == b"21"
    assert response.value(b"connection") == b"close"
    with frames.connect(server) as h2:
        stream = h2.get(target(*script))
        assert (stream.status, bytes(stream.body)) == (500, INTERNAL_ERROR)
        assert h2.get("/").status == 200


def assert_cut(server: Served, *script: dict[str, object]) -> None:
    """A visibly incomplete answer: on HTTP/1 no last chunk and a close, on HTTP/2 a reset of that stream only."""
    with raw.connect(server) as client:
        client.request(target(*script))
        client.head()
        assert not client.rest().endswith(b"0\r\n\r\n")
    with frames.connect(server) as h2:
        stream = h2.get(target(*script))
        assert stream.status == 200
        assert stream.reset == Code.INTERNAL_ERROR
        assert h2.get("/").status == 200


@pytest.mark.parametrize(
    ("step", "trace"),
    [
        ({"raise": "boom"}, "ValueError: boom"),
        ({"raise_odd": "odd"}, "Odd: odd"),
        ({"cancel": True}, "CancelledError"),
    ],
    ids=["exception", "base exception", "cancelled"],
)
def test_exception_before_the_start_is_a_500(server: Served, step: dict[str, object], trace: str) -> None:
    assert_internal_error(server, step)
    log = server.wait_for_log(trace)
    assert "ERROR:    Exception in ASGI application\nTraceback (most recent call last):\n" in log


def test_exception_after_the_start_cuts_the_response(server: Served) -> None:
    assert_cut(server, start(), body(b"part", more=True), {"raise": "boom"})
    assert "ValueError: boom" in server.wait_for_log("ERROR:    Exception in ASGI application\n")


def test_exception_after_a_start_that_declared_a_length_cuts_too(server: Served) -> None:
    with raw.connect(server) as client:
        client.request(target(start(headers=[(b"content-length", b"10")]), body(b"part", more=True), {"raise": "boom"}))
        client.head()
        assert client.rest() == b"part"


def test_exception_after_the_end_is_only_logged(server: Served) -> None:
    with raw.connect(server) as client:
        assert client.get(target(start(), body(b"whole"), {"raise": "late"})).body == b"whole"
    server.wait_for_log("ValueError: late")


def test_return_without_a_start_is_a_500(server: Served) -> None:
    assert_internal_error(server)
    assert "ERROR:    ASGI callable returned without starting response.\n" in server.log()
    assert "Traceback" not in server.log()


def test_return_without_the_end_cuts_the_response(server: Served) -> None:
    assert_cut(server, start(), body(b"part", more=True))
    server.wait_for_log("ERROR:    ASGI callable returned without completing response.\n")


def test_return_of_a_value_is_logged(server: Served) -> None:
    assert raw.get(server, target(start(), body(b"whole"), {"return": "text"})).body == b"whole"
    server.wait_for_log("ERROR:    ASGI callable should return None, but returned 'text'.\n")


def test_start_alone_is_sent_at_once(server: Served) -> None:
    with raw.connect(server) as client:
        client.request(target(start(), receive(2)))
        assert client.head().status == 200


def test_wrong_length_ends_the_connection(server: Served) -> None:
    with raw.connect(server) as client:
        client.request(target(start(headers=[(b"content-length", b"10")]), body(b"short")))
        client.request("/")
        client.head()
        assert client.rest() == b"short"
    with frames.connect(server) as h2:
        assert h2.get(target(start(headers=[(b"content-length", b"10")]), body(b"short"))).reset is not None


def test_failing_application_leaves_the_next_request_alone(server: Served) -> None:
    with frames.connect(server) as h2:
        steps = [send("start", status=200), {"raise": "boom"}]
        streams = [h2.request(target(steps[n % 2], body())) for n in range(20)]
        answers = [h2.response(stream) for stream in streams]
    assert [answer.status for answer in answers] == [200, 500] * 10


def test_request_body_that_nobody_read_does_not_become_a_request(server: Served) -> None:
    hidden = b"GET /script?steps=hidden HTTP/1.1\r\nhost: a\r\n\r\n"
    with raw.connect(server) as client:
        client.request(target({"raise": "boom"}), "POST", body=hidden)
        assert client.response().status == 500
        assert client.ends()
    assert "hidden" not in server.access_log()
