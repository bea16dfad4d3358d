"""Faults that users of other servers met, from ../shared/cases."""

import sys
from pathlib import Path

import pytest

from tests.conftest import Serve
from tests.support import shared
from tests.support.certificates import Certificates
from tests.support.serving import Served

pytestmark = [pytest.mark.wire, pytest.mark.slow]

CASES = shared.folder("cases")
WEBSOCKETS = "05"  # a later version's
SKIPPED = 77
PROCESSES = ("p100", "p103", "p105", "p111", "p113", "p114")


@pytest.fixture(scope="module")
def server(serve_module: Serve, certs: Certificates) -> Served:
    return serve_module(
        "app:app", app_dir=CASES, bind="127.0.0.1:0", tls_bind="127.0.0.1:0", app_errors=True, **certs.options()
    )


def scripts() -> list[Path]:
    return sorted(path for path in CASES.glob("[0-9][0-9][0-9]_*.py") if not path.name.startswith(WEBSOCKETS))


@pytest.mark.parametrize("script", scripts(), ids=lambda path: path.stem)
def test_case(server: Served, script: Path) -> None:
    scheme = "https" if script.name.startswith("12") else "http"
    done = shared.run_script(script, "127.0.0.1", server.url_of(scheme).rpartition(":")[2])
    assert done.returncode != SKIPPED, done.stdout
    assert done.returncode == 0, done.stdout + done.stderr
    server.check_log()


@pytest.mark.parametrize("case", PROCESSES)
def test_case_of_processes(case: str) -> None:
    command = f"{sys.executable} -m tricorn {{app}} --host {{host}} --port {{port}} --timeout-graceful-shutdown 3"
    done = shared.run_script(CASES / "proc_cases.py", command, case)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("PASS"), done.stdout
