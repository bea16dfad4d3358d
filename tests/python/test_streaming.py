"""Bodies that flow both ways at once, wait for a slow side, and never pile up in memory."""

import contextlib
import hashlib
import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Serve
from tests.support import frames, raw
from tests.support.certificates import Certificates
from tests.support.frames import H2, Setting
from tests.support.raw import Raw
from tests.support.serving import Served, eventually
from tests.support.sizes import LARGE, MIB, bounded_memory, swallow
from tests.support.steps import saw, seen


@pytest.fixture(scope="module")
def server(serve_module: Serve) -> Served:
    return serve_module("web")


# --- full duplex ---


def test_http1_answers_while_the_request_still_arrives(server: Served) -> None:
    with raw.connect(server) as client:
        client.request("/duplex", "POST", headers=[(b"transfer-encoding", b"chunked")])
        assert client.head().status == 200
        for number in range(100):
            client.send(b"3\r\n%03d\r\n" % number)
            assert client.chunk() == b"%03d" % number
        client.send(b"0\r\n\r\n")
        assert client.chunk() == b""
        assert client.fields() == []
        assert client.get("/").status == 200


def test_http2_answers_while_the_request_still_arrives(server: Served) -> None:
    with frames.connect(server) as client:
        stream = client.request("/duplex", "POST", end=False)
        answer = client.streams[stream]
        client.wait(lambda: answer.status == 200)
        for number in range(100):
            client.send(stream, b"%03d" % number)
            client.wait(lambda: answer.body[-3:] == b"%03d" % number)  # noqa: B023 read at once
        client.send(stream, b"", end=True)
        assert client.response(stream).ended


def test_large_body_passes_through_and_back(server: Served) -> None:
    data = os.urandom(8 * MIB)
    with raw.connect(server) as client:
        client.request("/duplex", "POST", headers=[(b"content-length", b"%d" % len(data))])
        upload = threading.Thread(target=client.send, args=(data,))
        upload.start()
        assert client.response().body == data
        upload.join()


# --- very large bodies ---


@pytest.mark.slow
@pytest.mark.timing
@pytest.mark.timeout(600)
@pytest.mark.parametrize("length", ["&length", ""], ids=["length", "chunked"])
def test_very_large_download_over_http1(server: Served, length: str) -> None:
    with bounded_memory(server), raw.connect(server) as client:
        client.request(f"/source?size={LARGE}{length}")
        response = client.head()
        if response.value(b"content-length"):
            assert swallow(client, LARGE) == LARGE
        else:
            assert sum(iter(lambda: len(client.chunk()), 0)) == LARGE


@pytest.mark.slow
@pytest.mark.timing
@pytest.mark.timeout(600)
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_very_large_upload_over_http1(server: Served, *, chunked: bool) -> None:
    piece = os.urandom(MIB)
    digest = hashlib.sha256(piece * (LARGE // MIB)).hexdigest()
    framing = (b"transfer-encoding", b"chunked") if chunked else (b"content-length", b"%d" % LARGE)
    with bounded_memory(server), raw.connect(server) as client:
        client.request("/sink", "POST", headers=[framing])
        for _ in range(LARGE // MIB):
            client.send(b"100000\r\n" + piece + b"\r\n" if chunked else piece)
        client.send(b"0\r\n\r\n" if chunked else b"")
        assert json.loads(client.response().body) == {"size": LARGE, "sha256": digest}


@pytest.mark.slow
@pytest.mark.timing
@pytest.mark.timeout(600)
@pytest.mark.parametrize("tls", [False, True], ids=["clear", "tls"])
def test_very_large_bodies_over_http2(serve: Serve, certs: Certificates, tmp_path: Path, *, tls: bool) -> None:
    server = serve("web", **(certs.options() if tls else {}))
    version = ["--http2", "--cacert", certs.ca] if tls else ["--http2-prior-knowledge"]
    sent = tmp_path / "sent"
    with sent.open("wb") as file:
        file.truncate(LARGE)
    with bounded_memory(server):
        up = subprocess.run(
            ["curl", "-sS", *version, "-T", sent, "-X", "POST", f"{server.url}/sink"], check=True, capture_output=True
        )
        assert json.loads(up.stdout)["size"] == LARGE
        down = subprocess.run(
            ["curl", "-sS", *version, "-o", os.devnull, "-w", "%{size_download} %{http_version}",
             f"{server.url}/source?size={LARGE}"], check=True, capture_output=True, text=True,
        )  # fmt: skip
        assert down.stdout == f"{LARGE} 2"


# --- backpressure ---


def test_slow_reader_holds_the_application_back(server: Served) -> None:
    with raw.connect(server, receive_buffer=65_536) as client:
        client.request(f"/source?size={LARGE}&key=slow-reader")
        client.head()
        held = settled(server, "slow-reader")
        assert held < 16 * MIB
        client.exactly(32 * MIB)
        eventually(lambda: progress(server, "slow-reader") > held, "progress after reading")


def progress(server: Served, key: str) -> Any:
    return (seen(server, key) or [0])[-1]


def settled(server: Served, key: str) -> Any:
    """How far the application came once it comes no further."""
    last: list[Any] = [None, None, None, None]

    def same() -> bool:
        last.append(progress(server, key))
        return last[-1] == last[-2] == last[-3] == last[-4] != 0

    eventually(same, f"{key} held back", lambda: last)
    return last[-1]


def test_slow_reader_on_one_stream_stalls_no_other(server: Served) -> None:
    with frames.connect(server, flow=False, settings={Setting.INITIAL_WINDOW_SIZE: 20_000}) as client:
        client.h2.increment_flow_control_window(64 * MIB)
        stalled = [client.request(f"/source?size={LARGE}&piece=16384&key=stalled{n}") for n in range(4)]
        client.wait(lambda: all(len(client.streams[stream].body) == 20_000 for stream in stalled))
        stream = client.request("/source?size=2000000")
        answer, given = client.streams[stream], 0
        while not answer.over:
            client.h2.increment_flow_control_window(20_000, stream)
            given += 20_000
            client.flush()
            client.wait(lambda: answer.over or len(answer.body) >= min(given, 2_000_000))  # noqa: B023
        assert len(answer.body) == 2_000_000
        for number in range(4):
            assert settled(server, f"stalled{number}") < 16 * MIB


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_application_that_does_not_read_holds_an_http1_client_back(server: Served, *, chunked: bool) -> None:
    key = f"held-h1-{chunked}"
    size = 64 * MIB
    framing = (b"transfer-encoding", b"chunked") if chunked else (b"content-length", b"%d" % size)
    with raw.connect(server) as client:
        client.request(f"/gated?key={key}", "POST", headers=[framing])
        saw(server, key, "waiting")
        data = b"%x\r\n%b\r\n0\r\n\r\n" % (size, bytes(size)) if chunked else bytes(size)
        taken = push(client, data)
        assert taken < 16 * MIB
        assert raw.get(server, f"/open?key={key}").status == 200
        client.send(data[taken:])
        assert client.response().body == b"%d" % size


def push(client: Raw, data: bytes) -> int:
    """Sends until the server takes no more; gives how much it took."""
    client.sock.settimeout(1)
    taken = 0
    with contextlib.suppress(TimeoutError):
        while taken < len(data):
            taken += client.sock.send(data[taken : taken + MIB])
    client.sock.settimeout(60)
    return taken


def test_application_that_does_not_read_holds_only_its_stream_back(server: Served) -> None:
    """The connection's credit comes back, so that the neighbour's body arrives."""
    with frames.connect(server) as client:
        client.wait(lambda: client.saw(frames.h2.events.RemoteSettingsChanged))
        stalled = [client.request(f"/gated?key=held{n}", "POST", end=False) for n in range(4)]
        taken = [fill(client, stream) for stream in stalled]
        assert all(0 < size < 2 * MIB for size in taken)
        body = os.urandom(2 * MIB)
        stream = client.request("/sink", "POST", body=body)
        assert json.loads(client.response(stream).body)["sha256"] == hashlib.sha256(body).hexdigest()
        for number, (held, size) in enumerate(zip(stalled, taken, strict=True)):
            client.get(f"/open?key=held{number}")
            client.send(held, bytes(1000), end=True)
            assert client.response(held).body == b"%d" % (size + 1000)


def fill(client: H2, stream: int) -> int:
    """Sends on the stream until its window stays closed."""
    sent = 0
    while True:
        client.drain(0.3)
        part = client.send_what_fits(stream, bytes(4 * MIB - sent))
        sent += part
        if not part:
            return sent


@pytest.mark.slow
@pytest.mark.timing
def test_two_mebibyte_message_takes_no_pauses(server: Served) -> None:
    """At 16 KiB a delayed acknowledgement, 2 MiB would take seconds."""
    with frames.connect(server) as client:
        body = bytes(2 * MIB)
        for _ in range(20):
            stream = client.request("/echo", "POST", body=body)
            assert len(client.response(stream).body) == 2 * MIB
