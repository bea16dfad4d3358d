"""Starts a server as a user does and stops it as an operator would: the real command, in its own process."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
GUARD = 90.0  # seconds: only against a hang, never a measure

# Another server for the same tests, to see what is particular to ours: TEST_SERVER=uvicorn.
COMMAND = ("-m", os.environ.get("TEST_SERVER", "tricorn"))
IN_OUR_LOOP = ("-m", "tests.support.in_our_loop")

RUNNING = re.compile(r"running on (https?)://(\[[^]]+\]|[^:\s]+):(\d+)", re.IGNORECASE)
STARTED = re.compile(r"running on ", re.IGNORECASE)
OURS = re.compile(r'File "[^"]*/tricorn/')
SANITIZER = re.compile(r"(Address|Leak|Thread|UndefinedBehavior)Sanitizer|runtime error: ")
BROKEN = re.compile(r"terminate called|Fatal Python error|was never (awaited|retrieved)|Exception ignored|SystemError")


@dataclass
class Served:
    """A running server."""

    process: subprocess.Popen[bytes]
    log_file: Path
    access_file: Path
    listeners: int
    app_errors: bool
    addresses: list[tuple[str, str, int]] = field(default_factory=list)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def port(self) -> int:
        return self.addresses[0][2]

    @property
    def url(self) -> str:
        scheme, host, port = self.addresses[0]
        return f"{scheme}://{host}:{port}"

    def url_of(self, scheme: str) -> str:
        """The first address with that scheme."""
        return next(f"{scheme}://{host}:{port}" for found, host, port in self.addresses if found == scheme)

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def access_log(self) -> str:
        return self.access_file.read_text(errors="replace")

    def wait_for_log(self, text: str) -> str:
        """The log, once the text is in it."""
        return eventually(lambda: self.log() if text in self.log() else None, f"{text!r} in the log", self.log)

    def wait_for_access_log(self, text: str) -> str:
        return eventually(lambda: self.access_log() if text in self.access_log() else None, text, self.access_log)

    def send_signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        """The exit code; negative for a signal."""
        try:
            return self.process.wait(GUARD)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the server did not end:\n{self.log()}") from None

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ends the server and checks what it leaves in its log."""
        self.send_signal(number)
        code = self.wait()
        self.check_log()
        return code

    def check_log(self) -> None:
        log = self.log()
        assert not SANITIZER.search(log), log
        assert not BROKEN.search(log), log
        assert not OURS.search(log), f"a traceback of ours:\n{log}"
        assert self.app_errors or "Traceback" not in log, log

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def eventually(probe: Callable[[], T | None], what: str, detail: Callable[[], object] = str) -> T:
    """What the probe gives, as soon as it gives anything."""
    end = time.monotonic() + GUARD
    while (found := probe()) is None or found is False:
        assert time.monotonic() < end, f"not seen: {what}\n{detail()}"
        time.sleep(0.01)
    return found


def app_name(app: str) -> str:
    """`web` is the application of tests/apps/web.py; anything with a colon is as the user would write it."""
    return app if ":" in app else f"tests.apps.{app}:app"


def flags(options: dict[str, object]) -> Iterator[str]:
    """Keyword options as switches: name=True is --name, False is --no-name, a list repeats it."""
    for name, value in options.items():
        switch = name.replace("_", "-")
        if isinstance(value, bool):
            yield f"--{switch}" if value else f"--no-{switch}"
            continue
        for one in value if isinstance(value, list | tuple) else (value,):
            yield from (f"--{switch}", str(one))


def environment(extra: dict[str, str] | None = None) -> dict[str, str]:
    """Ours, without what would change a server's defaults."""
    foreign = re.compile(r"(UVICORN|TRICORN|HYPERCORN)_|WEB_CONCURRENCY$|FORWARDED_ALLOW_IPS$")
    kept = {name: value for name, value in os.environ.items() if not foreign.match(name)}
    return kept | {"PYTHONDONTWRITEBYTECODE": "1"} | (extra or {})


def foreign_environment() -> dict[str, str]:
    """For programs that are not ours: the sanitizer's library, which the server may need, is not for them."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def start(
    app: str,
    folder: Path,
    *,
    command: Sequence[str] = COMMAND,
    env: dict[str, str] | None = None,
    python: Sequence[str] = (),
    app_errors: bool = False,
    pass_fds: Sequence[int] = (),
    stdin: int = subprocess.DEVNULL,
    **options: object,
) -> Served:
    """Starts the command without waiting for anything."""
    folder.mkdir(parents=True, exist_ok=True)
    log_file, access_file = folder / "stderr", folder / "stdout"
    if not {"port", "uds", "fd", "bind", "tls_bind"} & options.keys():
        options["port"] = 0
    listeners = sum(len(list(flags({"": options[name]}))) // 2 for name in ("bind", "tls_bind") if name in options) or 1
    with log_file.open("wb") as stderr, access_file.open("wb") as stdout:
        process = subprocess.Popen(
            [sys.executable, *python, *command, app_name(app), *flags(options)],
            cwd=ROOT,
            env=environment(env),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=pass_fds,
        )
    return Served(process, log_file, access_file, listeners, app_errors)


def wait_until_started(server: Served) -> None:
    """Until the start lines are there; they say which ports were chosen."""

    def started() -> bool:
        assert server.process.poll() is None, f"the server ended with {server.process.returncode}:\n{server.log()}"
        return len(STARTED.findall(server.log())) >= server.listeners

    eventually(started, "a start line", server.log)
    server.addresses = [(scheme.lower(), host, int(port)) for scheme, host, port in RUNNING.findall(server.log())]


@contextlib.contextmanager
def serving(app: str, folder: Path, **options: Any) -> Generator[Served]:
    """A server for the length of a test; unless the test has ended it itself, it has to end well on SIGTERM."""
    server = start(app, folder, **options)
    try:
        wait_until_started(server)
        yield server
        if server.process.poll() is None:
            assert server.stop() == -signal.SIGTERM, server.log()
        else:
            server.check_log()
    finally:
        server.kill()
        if server.process.stdin is not None:
            server.process.stdin.close()


def resident(server: Served, field_name: str = "VmRSS") -> int:
    """Octets of memory the server has, or with VmHWM the most it had."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    found = re.search(rf"{field_name}:\s+(\d+) kB", status)
    assert found, status
    return int(found[1]) * 1024


def forget_peak(server: Served) -> None:
    """Makes VmHWM start again from what is resident now."""
    Path(f"/proc/{server.pid}/clear_refs").write_text("5")
