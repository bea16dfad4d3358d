"""Where a server's CPU goes in one scenario: `./dev profile SCENARIO`.

Runs perf on the server under the same load as the comparison and writes its functions, most expensive first, into
build/profile. C and C++ functions have names where the symbols are (a wheel built with `install.strip` has none).
Python functions have names on CPython 3.12 and newer, which tells perf; on older ones they are the interpreter's.
"""

import argparse
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

if not __package__:  # run as a file: imports start at the project root, not in this folder
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from bench import processes
from bench.compare import CLIENT_CORE, SERVER_CORE, WARM_UP_SECONDS, keep_to_client_core
from bench.load import generator, require_tools
from bench.scenarios import SCENARIOS, Scenario, check
from bench.servers import ROOT, SERVERS, BenchError, Server, running

FOLDER = ROOT / "build/profile"
FREQUENCY = 2999  # samples a second; not a divisor of what the kernel does by the clock
LEAST_PERCENT = 0.2
SHOWN_LINES = 50
LINE_LENGTH = 160
STACK_BYTES = 8192  # of each sample, for perf to unwind


def main() -> int:
    """Profiles one server in one scenario and prints the top of the report."""
    options = parse()
    require_tools()
    if not shutil.which("perf"):
        sys.exit("bench: perf missing (apt-get install linux-perf)")
    scenario = next(each for each in SCENARIOS if each.name == options.scenario)
    server = next(each for each in SERVERS if each.name == options.server)
    if scenario.protocol not in server.protocols:
        sys.exit(f"bench: {server.name} does not speak {scenario.protocol}")
    keep_to_client_core()
    FOLDER.mkdir(parents=True, exist_ok=True)
    data = FOLDER / f"{scenario.name}-{server.name}.data"
    try:
        cost = record(scenario, server, data, options)
    except BenchError as error:
        sys.exit(f"bench: {server.name}: {error}")
    text = f"{scenario.title}: {server.name}, {cost:.1f} us a request while profiled\n\n{report(data, options)}"
    data.with_suffix(".txt").write_text(text)
    print(*text.splitlines()[:SHOWN_LINES], sep="\n")
    print(f"all of it: {data.with_suffix('.txt').relative_to(ROOT)}")
    return 0


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="./dev profile", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scenario", choices=[each.name for each in SCENARIOS])
    parser.add_argument("--server", default="tricorn", choices=[each.name for each in SERVERS])
    parser.add_argument("--seconds", type=int, default=5, help="of samples (default 5)")
    parser.add_argument("--event", help="for perf (default: cycles, or cpu-clock where the machine counts none)")
    parser.add_argument("--inclusive", action="store_true", help="each function with what it calls (slows the server)")
    return parser.parse_args()


def record(scenario: Scenario, server: Server, data: Path, options: argparse.Namespace) -> float:
    """Samples the server under load; gives its CPU microseconds a request meanwhile."""
    stacks = ["--call-graph", f"dwarf,{STACK_BYTES}"] if options.inclusive else []
    os.environ["PYTHONPERFSUPPORT"] = "1"  # the server inherits it
    with generator(scenario) as load, running(server, scenario.app, SERVER_CORE) as process:
        check(scenario, process.port)
        load.run(process.port, WARM_UP_SECONDS)
        pids = ",".join(map(str, processes.tree(process.pid)))
        what = ["-e", options.event or default_event(), "-F", str(FREQUENCY), *stacks, "-p", pids, "-o", str(data)]
        perf = ["taskset", "-c", str(CLIENT_CORE), "perf", "record", "-q", *what, "--", "sleep", str(options.seconds)]
        sampling = threading.Thread(target=subprocess.run, args=(perf,))
        before = processes.cpu_seconds(process.pid)
        sampling.start()
        seen = load.run(process.port, options.seconds + 1)  # perf takes a moment to begin
        used = processes.cpu_seconds(process.pid) - before
        sampling.join()
    if not seen.good or not data.exists():
        raise BenchError(f"nothing to see: {seen.good} good answers, {seen.errors} errors")
    return used / seen.good * 1e6


def default_event() -> str:
    """Cycles where the machine counts them; few virtual ones do."""
    counts = subprocess.run(
        ["perf", "stat", "-x,", "-e", "cycles", "--", "true"], capture_output=True, text=True, check=False
    )
    return "cpu-clock" if "not supported" in counts.stderr else "cycles"


def report(data: Path, options: argparse.Namespace) -> str:
    """The shares of each library and then of each function, and of each function with what it calls."""
    reports = [["--no-children", "--sort", "dso"], ["--no-children", "--sort", "dso,symbol"]]
    if options.inclusive:
        reports.append(["--children", "--sort", "dso,symbol"])
    always = ["perf", "report", "-i", str(data), "--stdio", "-g", "none", "--percent-limit", str(LEAST_PERCENT)]
    texts = [subprocess.run([*always, *each], capture_output=True, text=True, check=False).stdout for each in reports]
    return "\n".join(table(text) for text in texts)


def table(text: str) -> str:
    """A report of perf without its comments and its empty columns."""
    lines = [line.rstrip(" -")[:LINE_LENGTH] for line in text.splitlines() if line and not line.startswith("#")]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
