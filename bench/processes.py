"""Process trees by pid: which they are, the CPU time they used, how they are ended."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
STOP_SECONDS = 10
# fields of /proc/PID/stat behind the command, which may hold anything (man 5 proc: 4, 14 to 17 and 22)
PARENT_FIELD = 1
CPU_FIELDS = slice(11, 15)  # utime, stime, and those of children that ended
START_FIELD = 19


def stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the process's state on; OSError when it is gone."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def tree(pid: int) -> list[int]:
    """A process and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        child = int(entry.name)
        with contextlib.suppress(OSError):
            children.setdefault(int(stat(child)[PARENT_FIELD]), []).append(child)
    pids = [pid]
    for parent in pids:  # grows while it is read
        pids += children.get(parent, [])
    return pids


def cpu_seconds(pid: int) -> float:
    """User and system time of the process tree so far."""
    ticks = 0
    for each in tree(pid):
        with contextlib.suppress(OSError):
            ticks += sum(map(int, stat(each)[CPU_FIELDS]))
    return ticks / TICKS_A_SECOND


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ends a process and all that it started: politely first, by pid, and never a stranger that got the number."""
    started = {}
    for pid in tree(process.pid):
        with contextlib.suppress(OSError):
            started[pid] = stat(pid)[START_FIELD]
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    deadline = time.monotonic() + 1
    while any(_is(pid, start) for pid, start in started.items()) and time.monotonic() < deadline:
        time.sleep(0.01)
    for pid, start in started.items():
        if _is(pid, start):
            os.kill(pid, signal.SIGKILL)


def _is(pid: int, start: str) -> bool:
    try:
        return stat(pid)[START_FIELD] == start
    except OSError:
        return False
