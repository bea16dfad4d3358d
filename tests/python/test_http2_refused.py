"""HTTP/2 peers with small windows, and those that break the protocol or go over a limit."""

import h2.events
import pytest

from tests.conftest import Serve
from tests.support import frames, raw
from tests.support.frames import H2, Code, Setting
from tests.support.serving import Served


@pytest.fixture(scope="module")
def server(serve_module: Serve) -> Served:
    return serve_module("web")


@pytest.mark.parametrize("size", [1, 100, 5000])
def test_small_windows_of_the_client_are_kept(server: Served, size: int) -> None:
    with frames.connect(server, flow=False, settings={Setting.INITIAL_WINDOW_SIZE: size}) as client:
        stream = client.request("/source?size=20000")
        answer, given = client.streams[stream], size
        while len(answer.body) < 20_000:
            client.wait(lambda: len(answer.body) >= min(given, 20_000))  # noqa: B023 read at once
            assert len(answer.body) <= given
            if answer.over:
                break
            client.h2.increment_flow_control_window(max(size, 500), stream)
            given += max(size, 500)
            client.flush()
        assert client.response(stream).ended


def test_window_may_shrink_below_zero(server: Served) -> None:
    with frames.connect(server, flow=False) as client:
        stream = client.request("/source?size=200000")
        answer = client.streams[stream]
        client.wait(lambda: len(answer.body) == 65_535)
        client.h2.update_settings({Setting.INITIAL_WINDOW_SIZE: 100})
        client.flush()
        client.h2.increment_flow_control_window(300_000)
        client.h2.increment_flow_control_window(30_000, stream)
        client.flush()
        client.drain(0.3)
        assert len(answer.body) == 65_535
        client.h2.increment_flow_control_window(200_000, stream)
        client.flush()
        assert len(client.response(stream).body) == 200_000


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (b"\x00\x00\x01\x00\x00\x00\x00\x00\x00x", Code.PROTOCOL_ERROR),  # DATA on stream 0
        (b"\x00\x00\x05\x06\x00\x00\x00\x00\x00hello", Code.FRAME_SIZE_ERROR),  # PING of 5 octets
        (b"\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00", Code.PROTOCOL_ERROR),  # WINDOW_UPDATE of 0
        (b"\x00\x00\x04\x08\x00\x00\x00\x00\x00\x7f\xff\xff\xff", Code.FLOW_CONTROL_ERROR),
        (b"\x00\x00\x05\x01\x05\x00\x00\x00\x01\xff\xff\xff\xff\xff", Code.COMPRESSION_ERROR),
        (b"\x00\x00\x00\x09\x04\x00\x00\x00\x01", Code.PROTOCOL_ERROR),  # CONTINUATION of nothing
        (b"\x01\x00\x00\x04\x00\x00\x00\x00\x00", Code.FRAME_SIZE_ERROR),
    ],
)
def test_protocol_error_gets_goaway_with_its_code(server: Served, frame: bytes, code: Code) -> None:
    with frames.connect(server) as client:
        client.wait(lambda: client.saw(h2.events.RemoteSettingsChanged))
        client.sock.sendall(frame)
        client.wait_closed()
        assert client.goaways[-1][0] == code
    assert raw.get(server, "/").status == 200


def test_malformed_request_is_reset_alone(server: Served) -> None:
    with frames.connect(server) as client:
        other = client.request("/sleep?seconds=0.5")
        bad = send_unchecked(client, [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), (b"Upper", b"x")])
        assert client.response(bad).reset == Code.PROTOCOL_ERROR
        assert client.response(other).status == 200


@pytest.mark.parametrize("path", [b"", b"no-slash", b"/a b"])
def test_path_that_is_none_gets_an_error(server: Served, path: bytes) -> None:
    with frames.connect(server) as client:
        pairs = [(b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"a"), (b":path", path)]
        stream = client.response(send_unchecked(client, pairs))
        assert stream.reset == Code.PROTOCOL_ERROR or stream.status == 400
        assert client.get("/").status == 200


def send_unchecked(client: H2, pairs: list[tuple[bytes, bytes]]) -> int:
    """A request that the library would refuse to send."""
    client.h2.config.validate_outbound_headers = False
    client.h2.config.normalize_outbound_headers = False
    stream = client.h2.get_next_available_stream_id()
    client.streams[stream] = frames.Stream()
    client.h2.send_headers(stream, pairs, end_stream=True)
    client.flush()
    return stream


def test_large_head_is_refused_with_431(server: Served) -> None:
    with frames.connect(server) as client:
        stream = client.response(client.request("/", headers=[(b"x-%d" % n, b"v" * 10_000) for n in range(8)]))
        assert stream.status == 431 or stream.reset is not None
        assert client.get("/").status == 200


def test_body_over_a_limit_gets_413_or_a_reset(serve: Serve) -> None:
    server = serve("web", limit_request_body=1000)
    with frames.connect(server) as client:
        stream = client.response(client.request("/echo", "POST", body=bytes(2000)))
        assert stream.status == 413 or stream.reset is not None
        assert client.response(client.request("/echo", "POST", body=bytes(1000))).status == 200


def test_rapid_resets_end_the_connection(serve: Serve) -> None:
    server = serve("web", h2_reset_burst=100, h2_reset_rate=10)
    with frames.connect(server) as client:
        try:
            for _ in range(2000):
                client.reset(client.request("/sleep?seconds=1"))
        except OSError:
            pass
        client.wait_closed()
        assert client.goaways[-1][0] == Code.ENHANCE_YOUR_CALM
    assert raw.get(server, "/").status == 200
