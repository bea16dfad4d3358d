"""The servers that are compared: how each is started, on one core, and ended."""

import contextlib
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from bench import processes

ROOT = Path(__file__).resolve().parents[1]
HOST = "127.0.0.1"
START_SECONDS = 15
REASON_LENGTH = 160


class BenchError(Exception):
    """A server or load generator did not do its part; the text says how."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server in its fastest usual set-up: one worker, no access log."""

    name: str
    command: str  # of the Python interpreter; {app}, {port} and {bench} are filled in
    protocols: frozenset[str]
    note: str = ""

    def argv(self, app: str, port: int) -> list[str]:
        return [sys.executable, *self.command.format(app=app, port=port, bench=ROOT / "bench").split()]


SERVERS = (
    Server(
        name="tricorn",
        command="-m tricorn {app} --host 127.0.0.1 --port {port} --no-access-log --log-level warning",
        protocols=frozenset({"h1", "h2c"}),
    ),
    Server(
        name="uvicorn",
        command="-m uvicorn {app} --host 127.0.0.1 --port {port} --http httptools --loop uvloop "
        "--no-access-log --log-level warning",
        protocols=frozenset({"h1"}),
        note="httptools, uvloop",
    ),
    Server(
        name="granian",
        command="-m granian {app} --host 127.0.0.1 --port {port} --interface asgi --workers 1 --loop uvloop "
        "--no-access-log --log-level warning",
        protocols=frozenset({"h1", "h2c"}),
        note="uvloop",
    ),
    Server(
        name="hypercorn",
        command="-m hypercorn {app} --bind 127.0.0.1:{port} --workers 1 --worker-class uvloop "
        "--log-level warning --config {bench}/hypercorn.toml",
        protocols=frozenset({"h1", "h2c"}),
        note="uvloop",
    ),
)
OURS = SERVERS[0]


@dataclass(frozen=True, slots=True)
class Running:
    """A server that listens."""

    pid: int
    port: int


@contextlib.contextmanager
def running(server: Server, app: str, core: int) -> Generator[Running]:
    """Starts the server pinned to the core, and ends it with all its children."""
    port = _free_port()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            ["taskset", "-c", str(core), *server.argv(app, port)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            if not _listens(process, port):
                log.seek(0)
                state = f"not listening after {START_SECONDS} s" if process.poll() is None else "did not start"
                raise BenchError(f"{state}: {_reason(log.read().decode(errors='replace'))}")
            yield Running(process.pid, port)
        finally:
            processes.stop(process)


def _reason(log: str) -> str:
    """The line of the log that says most: the last exception, else the last line; short, without our paths."""
    lines = [line for line in log.splitlines() if line.strip()] or ["no output"]
    best = next((line for line in reversed(lines) if re.search(r"\w(Error|Exception): ", line)), lines[-1])
    return best.strip().replace(f"{ROOT}/", "")[:REASON_LENGTH]


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as probe:
        return probe.getsockname()[1]


def _listens(process: subprocess.Popen[bytes], port: int) -> bool:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if any(line.split()[1].endswith(f":{port:04X}") for line in _tcp_listeners()):
            return True
        time.sleep(0.05)
    return False


def _tcp_listeners() -> list[str]:
    """Their lines of /proc/net/tcp: a look there disturbs nobody, and no free port can connect to itself."""
    return [line for line in Path("/proc/net/tcp").read_text().splitlines()[1:] if line.split()[3] == "0A"]
