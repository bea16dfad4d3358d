"""CPU a request of tricorn and of its peers, in one run: `./dev bench`.

Server on one core, load generator on another; rounds interleaved; answers checked before they are counted.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

if not __package__:  # run as a file: imports start at the project root, not in this folder
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from bench import processes, report
from bench.load import LoadGenerator, generator, require_tools
from bench.report import Round, Row, Table
from bench.scenarios import SCENARIOS, Scenario, check
from bench.servers import OURS, ROOT, SERVERS, BenchError, Server, running

SERVER_CORE, CLIENT_CORE = 0, 1
WARM_UP_SECONDS = 1


def main() -> int:
    """Runs all that was asked for; 0 when tricorn has a figure in each scenario it was asked for."""
    options = parse()
    require_tools()
    scenarios, servers = chosen(options.only)
    about = report.facts(sys.argv[1:])
    keep_to_client_core()
    tables = [Table(scenario, rows(scenario, servers, options.rounds)) for scenario in scenarios]
    for number in range(options.rounds):
        for table in tables:
            play(table, number, options.seconds)
    print(report.markdown(tables, about))
    print(f"saved: {report.save(options.save, tables, about).relative_to(ROOT)} and .json")
    return int(any(row.server is OURS and not row.done for table in tables for row in table.rows))


def parse() -> argparse.Namespace:
    """The command line."""
    names = ", ".join([each.name for each in SCENARIOS] + [each.name for each in SERVERS])
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("--seconds", type=int, default=3, help="of load for each measurement (default 3)")
    parser.add_argument("--rounds", type=int, default=3, help="of everything (default 3)")
    parser.add_argument("--only", default="", metavar="NAME,...", help=f"scenarios and servers to run, of: {names}")
    parser.add_argument("--save", default="latest", metavar="NAME", help="in bench/results (default latest, not kept)")
    options = parser.parse_args()
    if min(options.seconds, options.rounds) < 1:
        parser.error("--seconds and --rounds must be at least 1")
    return options


def chosen(only: str) -> tuple[list[Scenario], list[Server]]:
    """The scenarios and servers named, or all of a kind of which none is named."""
    names = set(filter(None, only.split(",")))
    if unknown := names - {each.name for each in (*SCENARIOS, *SERVERS)}:
        sys.exit(f"bench: unknown: {', '.join(sorted(unknown))} (see --help)")
    scenarios = [each for each in SCENARIOS if each.name in names] or list(SCENARIOS)
    servers = [each for each in SERVERS if each.name in names] or list(SERVERS)
    return scenarios, servers


def rows(scenario: Scenario, servers: list[Server], rounds: int) -> list[Row]:
    """Empty rows for the servers that speak the scenario's protocol."""
    return [Row(server, [None] * rounds) for server in servers if scenario.protocol in server.protocols]


def keep_to_client_core() -> None:
    """Keeps this program, and the load generators that inherit it, off the server's core; and tidies up when ended."""
    if not {SERVER_CORE, CLIENT_CORE} <= os.sched_getaffinity(0):
        sys.exit(f"bench: needs two cores, {SERVER_CORE} for the server and {CLIENT_CORE} for the load generator")
    os.sched_setaffinity(0, {CLIENT_CORE})
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def play(table: Table, number: int, seconds: int) -> None:
    """One round: every server in turn, beginning with another one each time."""
    first = number % len(table.rows) if table.rows else 0
    with generator(table.scenario) as load:
        for row in table.rows[first:] + table.rows[:first]:
            print(f"round {number + 1}: {table.scenario.name}: {row.server.name}", end=" ", flush=True, file=sys.stderr)
            try:
                row.rounds[number] = seen = measure(table.scenario, row.server, load, seconds)
                print(f"{seen.cpu_us:.1f} us", file=sys.stderr)
            except BenchError as error:
                row.failure = str(error)
                print(error, file=sys.stderr)


def measure(scenario: Scenario, server: Server, load: LoadGenerator, seconds: int) -> Round:
    """One server under one load."""
    with running(server, scenario.app, SERVER_CORE) as process:
        check(scenario, process.port)
        load.run(process.port, WARM_UP_SECONDS)
        before = processes.cpu_seconds(process.pid)
        seen = load.run(process.port, seconds)
        used = processes.cpu_seconds(process.pid) - before
    if not seen.good:
        raise BenchError(f"no good answer, {seen.errors} errors")
    return Round(
        cpu_us=used / seen.good * 1e6,
        rate=seen.good / seen.seconds,
        errors=seen.errors,
        server_core=used / seen.seconds,
        client_core=seen.cpu_seconds / seen.seconds,
    )


if __name__ == "__main__":
    sys.exit(main())
