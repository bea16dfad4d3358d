"""The load generators, wrk and h2load: bounded in time, to this machine only, each run as one process."""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.scenarios import BODIES, Scenario
from bench.servers import HOST, BenchError

GRACE_SECONDS = 15
TOOLS = ("wrk", "h2load", "taskset")
INSTALL = "apt-get install wrk nghttp2-client util-linux"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one run of a load generator saw and cost."""

    good: int  # answers with status 2xx
    errors: int
    seconds: float
    cpu_seconds: float  # the generator's own


def require_tools() -> None:
    """Ends the program when a tool is missing, with how to get it."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        sys.exit(f"bench: {' and '.join(missing)} missing ({INSTALL})")


@contextmanager
def generator(scenario: Scenario) -> Generator["LoadGenerator"]:
    """A generator for the scenario, with its bodies in files."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for number, body in enumerate(scenario.bodies):
            files.append(Path(folder) / f"body{number}")
            files[-1].write_bytes(body)
        kind = Wrk if scenario.protocol == "h1" else H2load
        yield kind(scenario, Path(folder), files)


class LoadGenerator:
    """Base of the two: runs a command line and reads what it printed."""

    def __init__(self, scenario: Scenario, folder: Path, bodies: list[Path]) -> None:
        self.scenario = scenario
        self.folder = folder
        self.bodies = bodies
        self.runs = 0

    def run(self, port: int, seconds: int) -> Load:
        """Loads the server for so many seconds."""
        command = self.command(f"http://{HOST}:{port}{self.scenario.path}", seconds)
        self.runs += 1
        began = time.monotonic()
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
            try:
                usage, status = _wait(process, seconds + GRACE_SECONDS)
            finally:
                if process.returncode is None:
                    process.kill()
            elapsed = time.monotonic() - began
            output.seek(0)
            text = output.read().decode(errors="replace")
        if status:
            last = text.strip().rpartition("\n")[2]
            raise BenchError(f"{command[0]} ended with {status}: {last}")
        good, errors = self.counts(text)
        return Load(good=good, errors=errors, seconds=elapsed, cpu_seconds=usage.ru_utime + usage.ru_stime)

    def command(self, url: str, seconds: int) -> list[str]:
        raise NotImplementedError

    def counts(self, text: str) -> tuple[int, int]:
        """Good answers and errors in the output."""
        raise NotImplementedError


class Wrk(LoadGenerator):
    """HTTP/1.1; rotate.lua rotates the bodies and a header."""

    def command(self, url: str, seconds: int) -> list[str]:
        script = Path(__file__).with_name("rotate.lua")
        what = [self.scenario.method, self.scenario.content_type, *map(str, self.bodies)]
        connections = f"-c{self.scenario.in_flight}"
        return ["wrk", "-t1", connections, f"-d{seconds}s", "--timeout=5s", f"-s{script}", url, "--", *what]

    def counts(self, text: str) -> tuple[int, int]:
        seen = json.loads(text.strip().rpartition("\n")[2])
        return seen["answers"] - seen["bad_status"], seen["bad_status"] + seen["socket_errors"]


class H2load(LoadGenerator):
    """HTTP/2; it can send only one body in a run, so the path rotates in its query, and the body with each run."""

    def command(self, url: str, seconds: int) -> list[str]:
        targets = self.folder / "targets"
        targets.write_text("".join(f"{url}?n={number}\n" for number in range(BODIES)))
        command = ["h2load", "-t1", "-c1", f"-m{self.scenario.in_flight}", f"-D{seconds}", f"-i{targets}"]
        if self.bodies:
            body = self.bodies[self.runs % len(self.bodies)]
            command += [f"-d{body}", f"-Hcontent-type:{self.scenario.content_type}"]
        return command

    def counts(self, text: str) -> tuple[int, int]:
        if not (seen := re.search(r"(\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout", text)):
            raise BenchError(f"h2load: {text.strip()[-80:]}")
        good, failed, _errored, _timeout = map(int, seen.groups())  # the last two are part of failed
        return good, failed


def _wait(process: subprocess.Popen[bytes], seconds: float) -> tuple[resource.struct_rusage, int]:
    """Waits for the end and gives what the process used; kills it when it takes too long."""
    deadline = time.monotonic() + seconds
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage, process.returncode
        if time.monotonic() > deadline:
            process.kill()
        time.sleep(0.01)
