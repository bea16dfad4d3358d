"""Everything an application does on asyncio works, whichever loop the server runs in."""

import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

from tests.apps.features import features
from tests.conftest import Serve
from tests.support import frames, raw
from tests.support.certificates import Certificates
from tests.support.serving import IN_OUR_LOOP, Served, eventually

LOOPS: dict[str, dict[str, object]] = {
    "auto": {"loop": "auto"},
    "asyncio": {"loop": "asyncio"},
    "uvloop": {"loop": "uvloop"},
    "none": {"loop": "none"},
    "own asyncio": {"command": (*IN_OUR_LOOP, "asyncio")},
    "own uvloop": {"command": (*IN_OUR_LOOP, "uvloop")},
    "auto, debug": {"loop": "auto", "python": ("-X", "dev")},
}
NOT_ON_UVLOOP = {
    "blocking_stdin_stays_blocking": "uvloop makes every descriptor it watches non-blocking",
    "descriptor_closed_while_registered": "uvloop's libuv wants descriptors removed before they are closed",
    "descriptor_number_used_again": "the same",
}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return sock.getsockname()[1]


@pytest.fixture(scope="module", params=LOOPS)
def server(request: pytest.FixtureRequest, serve_module: Serve, certs: Certificates) -> Served:
    """Stopped by a signal in the end, which shows that the features left the server's handlers alone."""
    port = free_port()
    env = {"CERTS": str(certs.folder), "PORT": str(port)}
    return serve_module("features", port=port, env=env, stdin=subprocess.PIPE, **LOOPS[request.param])


@pytest.mark.parametrize("name", features)
def test_application_can_use(server: Served, request: pytest.FixtureRequest, name: str) -> None:
    if "uvloop" in request.node.name and name in NOT_ON_UVLOOP:
        pytest.skip(NOT_ON_UVLOOP[name])
    if name == "blocking_stdin_stays_blocking":
        assert server.process.stdin is not None
        server.process.stdin.write(b"typed\n")
        server.process.stdin.flush()
    assert raw.get(server, f"/{name}").status == 200, server.log()


def test_features_work_side_by_side(server: Served) -> None:
    alone = (*NOT_ON_UVLOOP, "signal_handlers_come_and_go", "ready_callbacks_run_before_timers")
    names = [name for name in features if name not in alone]
    with frames.connect(server) as client:
        streams = [client.request(f"/{name}") for name in names]
        answers = {name: client.response(stream).status for name, stream in zip(names, streams, strict=True)}
    assert answers == dict.fromkeys(names, 200), server.log()


@pytest.mark.parametrize("loop", LOOPS)
def test_requests_and_large_bodies_flow_on_every_loop(serve: Serve, loop: str) -> None:
    server = serve("web", **LOOPS[loop])
    data = os.urandom(2_000_000)
    with raw.connect(server) as client:
        for _ in range(100):
            assert client.get("/").body == b"Hello, world!"
        client.request("/echo", "POST", body=data)
        assert client.response().body == data
    with frames.connect(server) as client:
        stream = client.request("/echo", "POST", body=data)
        assert client.response(stream).body == data
        assert client.get("/stream?count=10&delay=0.01").ended


@pytest.mark.timing
@pytest.mark.parametrize("loop", LOOPS)
def test_idle_server_uses_no_processor_time(serve: Serve, loop: str) -> None:
    server = serve("web", **LOOPS[loop])
    with raw.connect(server) as idle:
        idle.get("/")
        before = processor_seconds(server)
        assert idle.silent(2)
        assert processor_seconds(server) - before < 0.5


def processor_seconds(server: Served) -> float:
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_senders_and_receivers_may_be_freed_on_any_thread(serve: Serve) -> None:
    """Garbage collection in threads drops what the core gave to Python."""
    server = serve("garbage", app_errors=True)
    with frames.connect(server) as h2:
        for _ in range(20):
            streams = [h2.request("/cycle") for _ in range(50)]
            assert {h2.response(stream).status for stream in streams} == {200}
    with raw.connect(server) as client:
        for path in ("/cycle", "/keep", "/drop-in-thread") * 50:
            assert client.get(path).status == 200
        assert json.loads(client.get("/send-from-thread").body) == "RuntimeError"
    for number in range(20):
        with raw.connect(server) as client:
            client.request("/keep" if number % 2 else "/stall")
            client.reset()
    assert eventually(lambda: raw.get(server, "/collect").status == 200, "alive")
