"""HTTP/2 on the wire: versions, streams, resets, GOAWAY, PING, SETTINGS."""

import json
import signal

import h2.events
import pytest

from tests.conftest import Serve
from tests.support import frames, raw
from tests.support.certificates import Certificates
from tests.support.frames import Code, Setting
from tests.support.serving import Served
from tests.support.steps import body, receive, saw, seen, start, target

LAST_POSSIBLE_STREAM = 2**31 - 1


@pytest.fixture(scope="module")
def server(serve_module: Serve) -> Served:
    return serve_module("web")


@pytest.fixture(scope="module")
def scripted(serve_module: Serve) -> Served:
    return serve_module("script", app_errors=True)


def test_both_versions_are_spoken_on_one_port(server: Served) -> None:
    with frames.connect(server) as h2, raw.connect(server) as h1:
        assert h2.get("/").body == b"Hello, world!"
        assert h1.get("/").body == b"Hello, world!"


def test_alpn_chooses_the_version(serve: Serve, certs: Certificates) -> None:
    server = serve("web", **certs.options())
    with frames.connect(server, tls=certs.context("h2", "http/1.1")) as client:
        assert json.loads(client.get("/scope").body)["scheme"] == "https"
    for offered in (("http/1.1",), ()):
        with raw.connect(server, tls=certs.context(*offered)) as client:
            assert client.get("/").body == b"Hello, world!"


def test_protocols_can_be_limited(serve: Serve) -> None:
    only_h2 = serve("web", protocols="h2")
    with frames.connect(only_h2) as client:
        assert client.get("/").status == 200
    with raw.connect(only_h2) as client:
        client.request("/")
        assert b"200 OK" not in client.rest()
    only_h1 = serve("web", protocols="h1")
    assert raw.get(only_h1, "/").status == 200
    with raw.connect(only_h1) as client:
        client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
        assert client.response().status in (400, 505)


def test_response_fields_are_lower_case_and_fit_for_http2(scripted: Served) -> None:
    fields = [(b"X-Upper", b"1"), (b"Connection", b"close"), (b"Keep-Alive", b"timeout=5"), (b"Upgrade", b"x"),
              (b"Transfer-Encoding", b"chunked")]  # fmt: skip
    with frames.connect(scripted) as client:
        stream = client.get(target(start(headers=fields), body(b"x")))
        assert [name for name, _ in stream.headers] == [b":status", b"date", b"server", b"x-upper"]
        assert stream.value(b"server") == b"tricorn"
        assert client.get("/").status == 200


def test_many_streams_run_at_once(server: Served) -> None:
    with frames.connect(server) as client:
        slow = [client.request(f"/sleep?seconds=0.5&text={n}") for n in range(99)]
        assert client.get("/").body == b"Hello, world!"
        assert not any(client.streams[stream].over for stream in slow)
        assert [client.response(stream).body for stream in slow] == [b"%d" % n for n in range(99)]


def test_a_connection_has_no_cap_of_requests(server: Served) -> None:
    with frames.connect(server) as client:
        for _ in range(60):
            streams = [client.request("/") for _ in range(100)]
            assert {client.response(stream).status for stream in streams} == {200}
            for stream in streams:
                del client.streams[stream]
        assert client.goaways == []


def test_streams_over_the_limit_are_refused_alone(serve: Serve) -> None:
    server = serve("web", h2_max_concurrent_streams=5)
    with frames.connect(server) as client:
        client.wait(lambda: client.saw(h2.events.RemoteSettingsChanged))
        assert client.h2.remote_settings.max_concurrent_streams == 5
        client.h2.remote_settings.update({Setting.MAX_CONCURRENT_STREAMS: 100})
        client.h2.remote_settings.acknowledge()
        streams = [client.request("/sleep?seconds=0.5") for _ in range(8)]
        answers = [client.response(stream) for stream in streams]
        assert [answer.status for answer in answers[:5]] == [200] * 5
        assert {answer.reset for answer in answers[5:]} == {Code.REFUSED_STREAM}
        assert client.get("/").status == 200


def test_body_arrives_in_pieces_and_the_end_is_told(scripted: Served) -> None:
    with frames.connect(scripted) as client:
        stream = client.request(target(receive(2), start(), body(b"thanks"), key="h2"), "POST", end=False)
        client.send(stream, b"abc")
        saw(scripted, "h2", {"type": "http.request", "body": "b:abc", "more_body": True})
        client.send(stream, b"", end=True)
        assert client.response(stream).body == b"thanks"
    assert seen(scripted, "h2")[1] == {"type": "http.request", "body": "b:", "more_body": False}


def test_head_and_empty_answers_end_the_stream(scripted: Served, server: Served) -> None:
    with frames.connect(server) as client:
        answer = client.get("/", "HEAD")
        assert (answer.value(b"content-length"), answer.body, answer.ended) == (b"13", b"", True)
        assert client.get("/stream", "HEAD").body == b""
    with frames.connect(scripted) as client:
        for status in (204, 304):
            answer = client.get(target(start(status), body()))
            assert (answer.status, answer.body, answer.ended) == (status, b"", True)


def test_trailers_end_the_stream(server: Served) -> None:
    with frames.connect(server) as client:
        answer = client.get("/trailers", headers=[(b"te", b"trailers")])
    assert answer.body == b"part whole"
    assert answer.trailers == [(b"x-sum", b"42"), (b"x-more", b"yes")]


def test_early_hints_come_first(server: Served) -> None:
    with frames.connect(server) as client:
        answer = client.get("/hints")
    (hint,) = answer.informational
    assert dict(hint)[b":status"] == b"103"
    assert (b"link", b"</style.css>; rel=preload; as=style") in hint
    assert answer.body == b"page"


def test_request_trailers_are_dropped(server: Served) -> None:
    with frames.connect(server) as client:
        stream = client.request("/echo", "POST", end=False)
        client.send(stream, b"body")
        client.h2.send_headers(stream, [(b"x-sum", b"1")], end_stream=True)
        client.flush()
        assert client.response(stream).body == b"body"
        assert client.get("/").status == 200


def test_expect_continue_is_answered_when_the_body_is_asked_for(scripted: Served) -> None:
    with frames.connect(scripted) as client:
        stream = client.request(
            target(receive(), start(), body(b"x")), "POST", headers=[(b"expect", b"100-continue")], end=False
        )
        client.wait(lambda: bool(client.streams[stream].informational))
        client.send(stream, b"body", end=True)
        assert client.response(stream).status == 200


@pytest.mark.parametrize("path", ["/wait", "/sink", "/endless"])
def test_reset_of_a_stream_is_a_disconnect(server: Served, path: str) -> None:
    key = f"reset{path[1:]}"
    with frames.connect(server, flow=False) as client:
        stream = client.request(f"{path}?key={key}", "POST", end=path != "/sink")
        if path == "/sink":
            client.send(stream, b"some")
        saw(server, key, "started")
        client.reset(stream)
        saw(server, key, "ended" if path == "/endless" else "http.disconnect")
        assert client.get("/").body == b"Hello, world!"


def test_answer_before_the_end_of_the_body_stops_the_upload(server: Served) -> None:
    with frames.connect(server) as client:
        stream = client.request("/unread", "POST", end=False)
        answer = client.response(stream)
        assert (answer.status, answer.body) == (403, b"not interested")
        client.drain(0.2)
        assert client.streams[stream].reset in (None, Code.NO_ERROR)
        assert client.get("/").status == 200


def test_goaway_comes_in_two_steps_and_the_stream_is_answered(serve: Serve) -> None:
    server = serve("web")
    with frames.connect(server) as client:
        slow = client.request("/sleep?seconds=1&text=done&key=slow")
        saw(server, "slow", "started")
        server.send_signal(signal.SIGTERM)
        client.wait(lambda: bool(client.goaways))
        assert client.goaways[0] == (Code.NO_ERROR, LAST_POSSIBLE_STREAM)
        assert not client.streams[slow].over
        client.wait_closed()
        assert client.streams[slow].body == b"done"
        assert client.goaways[-1] == (Code.NO_ERROR, slow)
    assert server.wait() == -signal.SIGTERM


def test_idle_connection_gets_goaway_and_a_close(serve: Serve) -> None:
    server = serve("web", timeout_h2_idle=1)
    with frames.connect(server) as client:
        client.get("/")
        client.wait_closed()
        assert client.goaways[-1][0] == Code.NO_ERROR


def test_ping_is_answered_at_once_also_while_busy(server: Served) -> None:
    with frames.connect(server) as client:
        stream = client.request("/sleep?seconds=1")
        for number in range(50):
            client.h2.ping(b"%08d" % number)
        client.flush()
        client.wait(lambda: sum(isinstance(event, h2.events.PingAckReceived) for event in client.events) == 50)
        assert not client.streams[stream].over
        assert client.response(stream).status == 200


def test_settings_are_acknowledged_and_announced(server: Served) -> None:
    with frames.connect(server) as client:
        client.wait(lambda: client.saw(h2.events.SettingsAcknowledged))
        remote = client.h2.remote_settings
        assert remote.max_concurrent_streams == 100
        assert remote.initial_window_size == 262_144
        client.h2.update_settings({Setting.HEADER_TABLE_SIZE: 0, Setting.MAX_FRAME_SIZE: 65_536})
        client.flush()
        assert client.get("/stream?count=5&size=50000").body[-1:] == b"4"


def test_priority_hints_are_taken_without_harm(server: Served) -> None:
    with frames.connect(server) as client:
        client.h2.prioritize(1, weight=256, depends_on=3, exclusive=True)
        client.flush()
        answer = client.get("/", headers=[(b"priority", b"u=1, i")])
        assert answer.status == 200
        priority_update = b"\x00\x00\x08\x10\x00\x00\x00\x00\x00" + b"\x00\x00\x00\x05u=7x"
        client.sock.sendall(priority_update)
        assert client.get("/").status == 200


def test_connection_that_dies_in_the_middle_of_streams_leaves_nothing(server: Served) -> None:
    with frames.connect(server) as client:
        for number in range(10):
            client.request(f"/wait?key=dies{number}")
        saw(server, "dies9", "started")
    for number in range(10):
        saw(server, f"dies{number}", "http.disconnect")
