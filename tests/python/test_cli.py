"""The `tricorn` command as a process: start line, exit codes, signals, and one clear line for each mistake."""

import http.client
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
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


def test_factory_and_app_dir(start: Start, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "cliapp.py").rename(tmp_path / "below" / "moved.py")
    server = start("moved:factory", "--factory", "--app-dir", "below", "--port", "0")
    assert server.get("/f") == b"/f"
    assert "WARNING" not in server.output()


def test_environment_gives_options_tricorns_before_uvicorns(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UVICORN_APP", "cliapp:app")
    monkeypatch.setenv("UVICORN_PORT", "1")
    monkeypatch.setenv("TRICORN_PORT", "0")
    monkeypatch.setenv("UVICORN_ACCESS_LOG", "0")
    server = start()
    assert server.get("/e") == b"/e"
    server.stop(signal.SIGINT)
    assert "GET /e" not in server.output()


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
