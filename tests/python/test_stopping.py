"""How a server ends: signals, requests in flight, time limits, exit codes."""

import re
import signal
import socket
import subprocess
import sys
import time

import pytest

from tests.conftest import Serve
from tests.support import frames, raw
from tests.support.certificates import Certificates
from tests.support.serving import COMMAND, GUARD, IN_OUR_LOOP, ROOT, Served, environment, eventually

LOOPS = {
    "auto": {"loop": "auto"},
    "uvloop": {"loop": "uvloop"},
    "own asyncio": {"command": (*IN_OUR_LOOP, "asyncio")},
    "own uvloop": {"command": (*IN_OUR_LOOP, "uvloop")},
}
LAST_LINES = [
    r"INFO:     Shutting down",
    r"INFO:     Waiting for application shutdown\.",
    r"lifespan: shutdown",
    r"INFO:     Application shutdown complete\.",
    r"INFO:     Finished server process \[\d+\]",
]


@pytest.fixture(params=LOOPS)
def looped(request: pytest.FixtureRequest, serve: Serve) -> Served:
    return serve("stopping", **LOOPS[request.param])


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, -signal.SIGTERM)], ids=["INT", "TERM"]
)
def test_signal_stops_an_idle_server(looped: Served, number: int, code: int) -> None:
    with raw.connect(looped) as client:
        client.get("/")
        assert looped.stop(number) == code
        assert client.ends()
    assert re.search("\n".join(LAST_LINES) + "\n$", looped.log()), looped.log()


def test_shell_sees_143_after_sigterm(serve: Serve) -> None:
    """The command behind `tricorn` ends by the signal itself, as uvicorn's does."""
    server = serve("stopping")
    assert 128 - server.stop(signal.SIGTERM) == 143


def test_stop_may_be_asked_for_before_the_first_request_and_under_load(serve: Serve) -> None:
    server = serve("stopping")
    with raw.connect(server) as client:
        client.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n" * 50)
        client.response()
        assert server.stop(signal.SIGTERM) == -signal.SIGTERM


def test_request_in_flight_finishes_and_its_connection_closes(looped: Served) -> None:
    with raw.connect(looped) as client:
        client.request("/slow?seconds=1")
        looped.wait_for_log("slow: started")
        looped.send_signal(signal.SIGTERM)
        looped.wait_for_log("Waiting for connections to close. (CTRL+C to force quit)")
        with pytest.raises(OSError, match="refused"), socket.create_connection(("127.0.0.1", looped.port)):
            pass
        response = client.response()
        assert response.body == b"finished"
        assert response.value(b"connection") == b"close"
        assert client.ends()
    assert looped.wait() == -signal.SIGTERM
    assert "lifespan: shutdown" in looped.log()
    assert "Cancel" not in looped.log()


def test_stream_in_flight_finishes_over_tls(serve: Serve, certs: Certificates) -> None:
    server = serve("stopping", **certs.options())
    with frames.connect(server, tls=certs.context("h2")) as client:
        stream = client.request("/slow?seconds=1")
        server.wait_for_log("slow: started")
        server.send_signal(signal.SIGTERM)
        assert client.response(stream).body == b"finished"
        client.wait_closed()
    assert server.wait() == -signal.SIGTERM


def test_idle_connections_close_at_once(serve: Serve, certs: Certificates) -> None:
    server = serve("stopping", tls_bind="127.0.0.1:0", bind="127.0.0.1:0", **certs.options())
    with raw.connect(server) as h1, raw.connect(server), frames.connect(server) as h2:
        h1.get("/")
        h2.get("/")
        began = time.monotonic()
        server.stop(signal.SIGTERM)
        assert time.monotonic() - began < 10
        assert h1.ends()


@pytest.mark.parametrize("loop", LOOPS)
def test_time_limit_cancels_what_is_left(serve: Serve, loop: str) -> None:
    server = serve("stopping", timeout_graceful_shutdown=1, app_errors=True, **LOOPS[loop])
    with raw.connect(server) as client:
        client.request("/slow?seconds=1000")
        server.wait_for_log("slow: started")
        assert server.stop(signal.SIGTERM) == -signal.SIGTERM
        answer = client.rest()
    assert answer == b"" or answer.startswith(b"HTTP/1.1 500 ")
    assert "ERROR:    Cancel 1 running task(s), timeout graceful shutdown exceeded\n" in server.log()
    assert "slow: cancelled" in server.log()
    assert "Application shutdown complete." in server.log()


def test_application_that_swallows_cancellation_does_not_hold_the_end(serve: Serve) -> None:
    server = serve("stopping", timeout_graceful_shutdown=1, app_errors=True)
    with raw.connect(server) as client:
        client.request("/stubborn")
        server.wait_for_log("stubborn: started")
        assert server.stop(signal.SIGTERM) == -signal.SIGTERM
    assert "lifespan: shutdown" in server.log()


def test_event_stream_is_told_and_ends_by_itself(serve: Serve) -> None:
    server = serve("stopping", timeout_graceful_shutdown=3)
    with raw.connect(server) as client:
        client.request("/events")
        client.head()
        assert client.chunk() == b"data: hello\n\n"
        server.send_signal(signal.SIGTERM)
        assert client.chunk() == b"data: bye\n\n"
        assert client.chunk() == b""
    assert server.wait() == -signal.SIGTERM
    assert "events: told" in server.log()
    assert "Cancel" not in server.log()


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM], ids=["INT", "TERM"])
def test_second_signal_forces_the_end(serve: Serve, first: int) -> None:
    server = serve("stopping", timeout_graceful_shutdown=0, app_errors=True)
    with raw.connect(server) as client:
        client.request("/slow?seconds=1000")
        server.wait_for_log("slow: started")
        server.send_signal(first)
        server.wait_for_log("(CTRL+C to force quit)")
        server.send_signal(signal.SIGINT)
        server.wait()
    server.check_log()
    assert "lifespan: shutdown" not in server.log()  # uvicorn's: forced means at once


def test_without_a_limit_the_server_waits(serve: Serve) -> None:
    server = serve("stopping", timeout_graceful_shutdown=0)
    with raw.connect(server) as client:
        client.request("/slow?seconds=3")
        server.wait_for_log("slow: started")
        server.send_signal(signal.SIGTERM)
        assert client.response().body == b"finished"
    assert server.wait() == -signal.SIGTERM


def test_client_that_reads_nothing_does_not_hold_the_end(serve: Serve) -> None:
    server = serve("web", timeout_graceful_shutdown=2, app_errors=True)
    with raw.connect(server, receive_buffer=4096) as client:
        client.request("/source?size=500000000")
        client.head()
        assert server.stop(signal.SIGTERM) == -signal.SIGTERM


def test_failed_lifespan_shutdown_is_told(serve: Serve) -> None:
    server = serve("stopping", env={"SHUTDOWN_FAILS": "1"})
    server.stop(signal.SIGTERM)
    assert "ERROR:    could not say goodbye\nERROR:    Application shutdown failed. Exiting.\n" in server.log()


def test_maximum_of_requests_ends_the_server(serve: Serve) -> None:
    server = serve("stopping", limit_max_requests=3)
    for _ in range(3):
        assert raw.get(server, "/").status == 200
    assert server.wait() == 0
    assert "WARNING:  Maximum request limit of 3 exceeded. Terminating process.\n" in server.log()


def test_handlers_that_were_there_before_are_there_again() -> None:
    """A program that embeds the server gets its own handler called with the signal that ended serve()."""
    program = """
import asyncio, os, signal, tricorn
async def app(scope, receive, send): raise NotImplementedError
signal.signal(signal.SIGTERM, lambda number, frame: print("mine:", number, flush=True))
async def main():
    server = tricorn.Server(tricorn.Config(app, port=0, lifespan="off", log_level="critical"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    assert signal.getsignal(signal.SIGTERM).__self__ is server
    os.kill(os.getpid(), signal.SIGTERM)
    await serving
asyncio.run(main())
print("handler:", signal.getsignal(signal.SIGTERM).__name__)
"""
    done = run_program(program)
    assert done.stdout == "mine: 15\nhandler: <lambda>\n", done


def test_server_can_be_stopped_from_another_thread() -> None:
    program = """
import threading, time, tricorn, urllib.request
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": b"from a thread"})
server = tricorn.Server(tricorn.Config(app, port=0, lifespan="off", log_level="critical"))
thread = threading.Thread(target=server.run)
thread.start()
while not server.started:
    time.sleep(0.01)
port = server.servers[0].sockets[0].getsockname()[1]
print(urllib.request.urlopen(f"http://127.0.0.1:{port}/").read().decode())
server.should_exit = True
thread.join()
"""
    done = run_program(program)
    assert (done.returncode, done.stdout) == (0, "from a thread\n"), done


def test_serve_can_be_cancelled() -> None:
    program = """
import asyncio, tricorn
async def app(scope, receive, send):
    message = await receive()
    print(message["type"])
    await send({"type": message["type"] + ".complete"})
    print((await receive())["type"])
    await send({"type": "lifespan.shutdown.complete"})
async def main():
    server = tricorn.Server(tricorn.Config(app, port=0, log_level="critical"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    serving.cancel()
    try:
        await serving
    except asyncio.CancelledError:
        print("cancelled", server.servers[0].is_serving())
asyncio.run(main())
"""
    done = run_program(program)
    assert done.stdout == "lifespan.startup\nlifespan.shutdown\ncancelled False\n", done


def run_program(text: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", text], cwd=ROOT, env=environment(), capture_output=True, text=True,
        check=False, timeout=GUARD,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    assert "Warning" not in done.stderr, done.stderr
    return done


def test_signal_during_start_up_ends_the_server() -> None:
    command = [sys.executable, *COMMAND, "tests.apps.broken:startup_never_ends", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            log = ""
            while "Waiting for application startup." not in log:
                log += process.stderr.readline()
            process.send_signal(signal.SIGTERM)
            eventually(lambda: process.poll() is not None, "the end")
            assert "Traceback" not in process.stderr.read()
        finally:
            process.kill()
    assert process.returncode in (3, -signal.SIGTERM)
