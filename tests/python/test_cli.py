"""The `tricorn` command as a process: start line, exit codes, signals, and one clear line for each mistake."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import tricorn
from tricorn import cli
from tricorn.logging import PRODUCT

APP = """
import asyncio, time

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        print("lifespan ended")
        await send({"type": "lifespan.shutdown.complete"})
        return
    path = scope["path"]
    if path == "/slow":
        await asyncio.sleep(0.7)
    if path == "/told":
        while (await receive())["type"] != "http.disconnect":
            pass
        print("told", flush=True)
    if path == "/endless":
        await asyncio.sleep(3600)
    while path == "/immortal":
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass
    body = path.encode()
    await send({"type": "http.response.start", "status": 200,
                "headers": [(b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body})

def factory():
    return app

def broken_factory():
    raise KeyError("inside")

async def refuses(scope, receive, send):
    await receive()
    await send({"type": "lifespan.startup.failed", "message": "no database"})

async def hangs(scope, receive, send):
    await asyncio.sleep(3600)
"""


class Process:
    """A running command whose output is collected in a file."""

    def __init__(self, directory: Path, arguments: list[str], fds: tuple[int, ...] = ()) -> None:
        self.log = directory / "log"
        environment = {**os.environ, "PYTHONUNBUFFERED": "", "PYTHONDONTWRITEBYTECODE": "1"}
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tricorn", *arguments],
                cwd=directory,
                env=environment,
                stdout=out,
                stderr=subprocess.STDOUT,
                pass_fds=fds,
            )

    def output(self) -> str:
        return self.log.read_text()

    def wait_for(self, pattern: str, seconds: float = 10) -> re.Match[str]:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := re.search(pattern, self.output()):
                return found
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"no {pattern!r} in: {self.output()}")

    def port(self) -> int:
        return int(self.wait_for(rf"{PRODUCT} running on http://\S+:(\d+)").group(1))

    def get(self, path: str) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self.port(), timeout=10)
        try:
            connection.request("GET", path)
            return connection.getresponse().read()
        finally:
            connection.close()

    def stop(self, sig: signal.Signals, seconds: float = 10) -> int:
        self.process.send_signal(sig)
        return self.process.wait(seconds)


Start = Callable[..., Process]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    (tmp_path / "cliapp.py").write_text(APP)
    (tmp_path / "failing.py").write_text("1 / 0\n")
    running: list[Process] = []

    def launch(*arguments: str, fds: tuple[int, ...] = ()) -> Process:
        running.append(Process(tmp_path, list(arguments), fds))
        return running[-1]

    yield launch
    for process in running:
        if process.process.poll() is None:
            process.process.kill()
            process.process.wait()


@pytest.fixture
def in_background() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def test_serves_and_dies_of_sigterm_after_a_whole_shutdown(start: Start) -> None:
    server = start("cliapp:app", "--port", "0")
    assert server.get("/a") == b"/a"
    pid = server.process.pid
    assert server.stop(signal.SIGTERM) == -signal.SIGTERM
    expected = [
        f"Started server process [{pid}]",
        "Waiting for application startup.",
        "Application startup complete.",
        "Tricorn running on http://127.0.0.1:",
        '"GET /a HTTP/1.1" 200 OK',
        "Shutting down",
        "Waiting for application shutdown.",
        "Application shutdown complete.",
        f"Finished server process [{pid}]",
    ]
    output = server.output()
    assert all(line in output for line in expected), output
    assert "lifespan ended" in output, "what was printed is flushed before the signal kills"


def test_sigint_ends_with_0(start: Start) -> None:
    server = start("cliapp:app", "--port", "0")
    server.port()
    assert server.stop(signal.SIGINT) == 0
    assert "Traceback" not in server.output()


@pytest.mark.parametrize("loop", ["auto", "asyncio", "uvloop", "none", "asyncio:SelectorEventLoop"])
def test_each_loop_serves_sleeps_and_is_woken_by_a_signal(loop: str, start: Start) -> None:
    server = start("cliapp:app", "--port", "0", "--loop", loop)
    assert server.get("/slow") == b"/slow"
    started = time.monotonic()
    assert server.stop(signal.SIGTERM) == -signal.SIGTERM
    assert time.monotonic() - started < 2


def test_a_request_in_flight_finishes(start: Start, in_background: ThreadPoolExecutor) -> None:
    server = start("cliapp:app", "--port", "0")
    port = server.port()
    answer = in_background.submit(server.get, "/slow")
    time.sleep(0.3)
    assert server.stop(signal.SIGTERM) == -signal.SIGTERM
    assert answer.result() == b"/slow"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=1)


def test_a_waiting_request_is_told_shortly_before_the_end(start: Start, in_background: ThreadPoolExecutor) -> None:
    server = start("cliapp:app", "--port", "0", "--timeout-graceful-shutdown", "1")
    server.port()
    answer = in_background.submit(server.get, "/told")
    time.sleep(0.3)
    server.stop(signal.SIGTERM)
    assert answer.result() == b"/told"
    assert "told" in server.output()


@pytest.mark.parametrize("path", ["/endless", "/immortal"])
def test_a_request_without_end_is_cancelled(path: str, start: Start, in_background: ThreadPoolExecutor) -> None:
    server = start("cliapp:app", "--port", "0", "--timeout-graceful-shutdown", "0.4")
    server.port()
    answer = in_background.submit(server.get, path)
    time.sleep(0.3)
    started = time.monotonic()
    assert server.stop(signal.SIGINT) == 0
    assert time.monotonic() - started < 6
    assert answer.exception() is not None or answer.result() == b"Internal Server Error"
    assert "Cancel 1 running task(s), timeout graceful shutdown exceeded" in server.output()
    assert "lifespan ended" in server.output()


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_forces(sig: signal.Signals, start: Start, in_background: ThreadPoolExecutor) -> None:
    server = start("cliapp:app", "--port", "0", "--timeout-graceful-shutdown", "0")
    server.port()
    in_background.submit(server.get, "/endless")
    time.sleep(0.3)
    server.process.send_signal(sig)
    server.wait_for("Waiting for connections to close")
    assert server.stop(sig, 3) == (0 if sig == signal.SIGINT else -sig)
    assert "lifespan ended" not in server.output()


def test_a_signal_ends_a_startup_that_hangs(start: Start) -> None:
    server = start("cliapp:hangs", "--port", "0")
    server.wait_for("Waiting for application startup")
    assert server.stop(signal.SIGTERM, 3) == -signal.SIGTERM


def test_a_startup_that_hangs_ends_at_its_limit(start: Start) -> None:
    server = start("cliapp:hangs", "--port", "0", "--timeout-startup", "0.2")
    assert server.process.wait(10) == 3
    assert "Application startup failed. Exiting." in server.output()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["cliapp:nope"], 'ERROR:    Error loading ASGI app. Attribute "nope" not found in module "cliapp".'),
        (["cliapp"], 'ERROR:    Error loading ASGI app. Import string "cliapp" must be in format'),
        (["nosuch:app"], 'ERROR:    Error loading ASGI app. Could not import module "nosuch".'),
        (["cliapp:refuses"], "ERROR:    no database"),
        (["cliapp:app", "--fd", "77"], "ERROR:    [Errno 9] error while using file descriptor 77"),
        (["cliapp:app", "--host", "no-such-host.invalid"], "error while resolving host 'no-such-host.invalid'"),
        (["cliapp:app", "--ssl-certfile", "none.pem"], "none.pem"),
        (["cliapp:app", "--loop", "nosuch:loop"], "ERROR:    Cannot use event loop 'nosuch:loop'."),
        (["cliapp:app", "--limit-header-size", "-1"], "ERROR:    limit_header_size is -1"),
        (["cliapp:app", "--log-config", "none.json"], "Cannot use the log configuration: "),
    ],
)
def test_what_cannot_start_is_one_line_and_exit_code_3(arguments: list[str], line: str, start: Start) -> None:
    server = start(*arguments)
    assert server.process.wait(20) == 3
    assert line in server.output()
    assert "Traceback" not in server.output()


def test_a_taken_port_is_one_line_and_exit_code_3(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = start("cliapp:app", "--port", str(port))
        assert server.process.wait(20) == 3
    line = f"error while attempting to bind on address ('127.0.0.1', {port}): address already in use\n"
    assert line in server.output()
    assert "lifespan ended" in server.output()
    assert "Traceback" not in server.output()


@pytest.mark.parametrize(
    ("target", "error"),
    [("failing:app", "ZeroDivisionError: division by zero"), ("cliapp:broken_factory", "KeyError: 'inside'")],
)
def test_a_fault_of_the_users_shows_only_the_users_frames(target: str, error: str, start: Start) -> None:
    server = start(target)
    assert server.process.wait(20) == 3
    assert error in server.output()
    assert str(Path(tricorn.__file__).parent) not in server.output()
    assert "importlib" not in server.output()


def test_factory_and_app_dir(start: Start, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "cliapp.py").rename(tmp_path / "below" / "moved.py")
    server = start("moved:factory", "--factory", "--app-dir", "below", "--port", "0")
    assert server.get("/f") == b"/f"
    assert "WARNING" not in server.output()


def test_several_listeners(start: Start, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as inherited:
        fd = inherited.fileno()
        binds = ["--bind", "127.0.0.1:0", "--bind", "unix:s", "--bind", f"fd://{fd}"]
        server = start("cliapp:app", *binds, fds=(fd,))
        assert server.get("/tcp") == b"/tcp"
        server.wait_for(f"{PRODUCT} running on unix socket s ")
        server.wait_for(f"{PRODUCT} running on socket ")
        for address in (str(tmp_path / "s"), inherited.getsockname()):
            family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
            with socket.socket(family) as client:
                client.settimeout(5)
                client.connect(address)
                client.sendall(b"GET /other HTTP/1.1\r\nhost: x\r\n\r\n")
                assert client.recv(1000).startswith(b"HTTP/1.1 200 OK\r\n")
    server.stop(signal.SIGTERM)
    assert not (tmp_path / "s").exists()


def test_environment_gives_options_tricorns_before_uvicorns(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UVICORN_APP", "cliapp:app")
    monkeypatch.setenv("UVICORN_PORT", "1")
    monkeypatch.setenv("TRICORN_PORT", "0")
    monkeypatch.setenv("UVICORN_ACCESS_LOG", "0")
    server = start()
    assert server.get("/e") == b"/e"
    server.stop(signal.SIGINT)
    assert "GET /e" not in server.output()


def test_the_limit_of_requests_ends_the_process(start: Start) -> None:
    server = start("cliapp:app", "--port", "0", "--limit-max-requests", "1")
    assert server.get("/last") == b"/last"
    assert server.process.wait(10) == 0
    assert "Maximum request limit of 1 exceeded. Terminating process." in server.output()


# Without a process


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "Missing argument 'APP'"),
        (["a:b", "--bind", ":1", "--port", "2"], "--port cannot be combined with --bind or --tls-bind."),
        (["a:b", "--loop", "fast"], "'fast' is not one of auto, asyncio, uvloop, none, and not module:factory."),
        (["a:b", "--header", "nocolon"], "'nocolon' is not Name:Value."),
        (["a:b", "--port", "x"], "'x' is not a valid integer"),
    ],
)
def test_a_wrong_command_line_is_a_usage_error(arguments: list[str], text: str) -> None:
    result = CliRunner().invoke(cli.main, arguments)
    assert result.exit_code == 2
    assert text in " ".join(result.output.split())


def test_options_reach_config_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}
    monkeypatch.setattr(cli, "run", lambda app, **options: seen.update(options, app=app))
    arguments = ["a:b", "--no-access-log", "--header", "A:b: c", "--header", "d:", "--timeout-write", "1.5"]
    assert CliRunner().invoke(cli.main, arguments).exit_code == 0
    assert seen["app"] == "a:b"
    assert seen["access_log"] is False
    assert seen["headers"] == (("A", "b: c"), ("d", ""))
    assert seen["timeout_write"] == 1.5
    assert seen["app_dir"] == ""
    assert "log_config" not in seen, "Config's own default stands"
    tricorn.Config("a:b", log_config=None, **{name: seen[name] for name in seen.keys() - {"app", "app_dir"}})


def test_help_has_a_heading_for_each_group() -> None:
    lines = CliRunner().invoke(cli.main, ["--help"]).output.splitlines()
    headings = [line for line in lines if re.fullmatch(r"\S.*:", line)]
    assert headings[:3] == ["Listening:", "Application:", "Logging:"]
    assert headings[-2:] == ["HTTP/2:", "Other:"]


def test_version() -> None:
    output = CliRunner().invoke(cli.main, ["--version"]).output
    assert output.startswith(f"Running tricorn {tricorn.__version__} with CPython 3.")
