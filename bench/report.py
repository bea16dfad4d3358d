"""Turns what was measured into a table in Markdown and into JSON, with the machine and the versions beside it."""

import importlib.metadata
import json
import os
import platform
import re
import statistics
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.scenarios import Scenario
from bench.servers import OURS, ROOT, Server

RESULTS = ROOT / "bench/results"
CLIENT_LIMIT = 0.8  # of its core: beyond it the load generator is what was measured
CLIENT_MARK = "†"
COLUMNS = (
    "server",
    "CPU µs a request",
    "least to most",
    "to tricorn's",
    "requests a second",
    "errors",
    "server's core",
    "client's core",
)
PACKAGES = ("tricorn", "uvicorn", "httptools", "uvloop", "granian", "hypercorn", "connectrpc", "protobuf-py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One measurement of one server."""

    cpu_us: float  # a request: user and system time of the server's process tree
    rate: float  # good answers a second
    errors: int
    server_core: float  # share of its core that the server used
    client_core: float  # and the load generator of its own

    @property
    def by_client(self) -> bool:
        return self.client_core > CLIENT_LIMIT


@dataclass(slots=True)
class Row:
    """A server in one scenario: its rounds, some of which may be missing, and why."""

    server: Server
    rounds: list[Round | None]
    failure: str = ""

    @property
    def done(self) -> list[Round]:
        return [each for each in self.rounds if each]

    @property
    def least(self) -> float:
        return min(each.cpu_us for each in self.done)

    def median(self, field: str) -> float:
        return statistics.median(getattr(each, field) for each in self.done)

    def ratio_to(self, other: "Row") -> float | None:
        """Median over the rounds that both have of this server's CPU a request to the other's."""
        both = [a.cpu_us / b.cpu_us for a, b in zip(self.rounds, other.rounds, strict=True) if a and b]
        return statistics.median(both) if both else None


@dataclass(slots=True)
class Table:
    """All servers in one scenario."""

    scenario: Scenario
    rows: list[Row]

    def row(self, name: str) -> Row | None:
        return next((row for row in self.rows if row.server.name == name and row.done), None)


def facts(arguments: Iterable[str]) -> dict[str, Any]:
    """Where, when and with what: what a figure needs beside it."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(["bench/compare.py", *arguments]),
        "commit": _commit(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "system": f"{_distribution()}, Linux {platform.release()}",
        "load_average": os.getloadavg()[0],
        "interpreter": _interpreter(),
        "versions": {**{name: _version(name) for name in PACKAGES}, **_tool_versions()},
    }


def markdown(tables: list[Table], about: dict[str, Any]) -> str:
    """The report, as a person reads it."""
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    lines = [
        f"# Comparison of {about['date']}",
        "",
        f"- Interpreter: {about['interpreter']}",
        f"- Machine: {about['cpu']}, {about['cores']} cores, {about['system']}",
        f"- Load average before: {about['load_average']:.1f}",
        f"- Versions: {versions}",
        f"- Commit: {about['commit']}; command: `{about['command']}`",
        "",
        "Medians of interleaved rounds. CPU: user and system time of the server's process tree over good answers.",
    ]
    for table in tables:
        lines += ["", *_section(table)]
    if any(each.by_client for table in tables for row in table.rows for each in row.done):
        lines += ["", f"{CLIENT_MARK} The load generator used more than {CLIENT_LIMIT:.0%} of its core: its figure."]
    return "\n".join(lines) + "\n"


def save(name: str, tables: list[Table], about: dict[str, Any]) -> Path:
    """Writes results/NAME.md and NAME.json; gives the first."""
    RESULTS.mkdir(exist_ok=True)
    document = {**about, "scenarios": [_as_json(table) for table in tables]}
    (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=2) + "\n")
    path = RESULTS / f"{name}.md"
    path.write_text(markdown(tables, about))
    return path


def _section(table: Table) -> list[str]:
    ours = table.row(OURS.name)
    lines = [
        f"## {table.scenario.name}: {table.scenario.title}",
        "",
        f"| {' | '.join(COLUMNS)} |",
        f"|---|{'--:|' * (len(COLUMNS) - 1)}",
        *(_line(row, ours) for row in table.rows),
    ]
    return lines + _verdict(table, ours)


def _verdict(table: Table, ours: Row | None) -> list[str]:
    target = table.scenario.target
    peer = table.row(target.peer) if target else None
    if not target or not peer or not ours or not (ratio := ours.ratio_to(peer)):
        return []
    verdict = "met" if ratio <= target.ratio else "missed"
    least = f"least to least {ours.least / peer.least:.2f}"
    return ["", f"tricorn to {peer.server.name}: {ratio:.2f} ({least}); target at most {target.ratio:.2f}: {verdict}."]


def _line(row: Row, ours: Row | None) -> str:
    name = f"{row.server.name} ({row.server.note})" if row.server.note else row.server.name
    if not row.done:
        return f"| {name} | {row.failure} {'| ' * (len(COLUMNS) - 1)}"
    mark = f" {CLIENT_MARK}" if row.median("client_core") > CLIENT_LIMIT else ""
    ratio = row.ratio_to(ours) if ours else None
    cells = [
        name,
        f"{row.median('cpu_us'):.1f}{mark}",
        f"{row.least:.1f} to {max(each.cpu_us for each in row.done):.1f}",
        f"{ratio:.2f}" if ratio else "",
        f"{row.median('rate'):,.0f}{mark}",
        str(sum(each.errors for each in row.done)) + (f"; {row.failure}" if row.failure else ""),
        f"{row.median('server_core'):.0%}",
        f"{row.median('client_core'):.0%}",
    ]
    return f"| {' | '.join(cells)} |"


def _as_json(table: Table) -> dict[str, Any]:
    ours = table.row(OURS.name)
    return {
        "name": table.scenario.name,
        "title": table.scenario.title,
        "target": asdict(table.scenario.target) if table.scenario.target else None,
        "servers": [
            {
                "name": row.server.name,
                "command": row.server.command,
                "failure": row.failure or None,
                "cpu_us": row.median("cpu_us") if row.done else None,
                "rate": row.median("rate") if row.done else None,
                "to_tricorn": row.ratio_to(ours) if ours else None,
                "rounds": [asdict(each) if each else None for each in row.rounds],
            }
            for row in table.rows
        ],
    }


def _first_line(*command: str) -> str:
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return (done.stdout or done.stderr).partition("\n")[0]


def _commit() -> str:
    try:
        commit = _git("rev-parse", "--short", "--verify", "HEAD")
        return f"{commit} and changes" if _git("status", "--porcelain", "src", "pysrc") else commit
    except (OSError, subprocess.CalledProcessError):
        return "none"


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _cpu_model() -> str:
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.machine()


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        return "Linux"


def _interpreter() -> str:
    path = str(Path(sys.executable).resolve()).replace(str(Path.home()), "~")
    return f"{platform.python_implementation()} {platform.python_version()}, {path}, {platform.python_compiler()}"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


def _tool_versions() -> dict[str, str]:
    tools = {"wrk": _first_line("wrk", "-v"), "h2load": _first_line("h2load", "--version")}
    return {name: (re.search(r"\d+\.[\d.]+\d", text) or ["?"])[0] for name, text in tools.items()}
