"""Hostile HTTP/1 and HTTP/2 from ../shared/attacks: each case is refused or survived as the RFCs want."""

import re

import pytest

from tests.conftest import Serve
from tests.support import shared
from tests.support.certificates import Certificates
from tests.support.serving import Served

pytestmark = [pytest.mark.wire, pytest.mark.slow, pytest.mark.timeout(900)]

ATTACKS = shared.folder("attacks")


@pytest.fixture(scope="module")
def server(serve_module: Serve, certs: Certificates) -> Served:
    """Deadlines short enough for the slow cases."""
    return serve_module(
        "app:app",
        app_dir=ATTACKS,
        bind="127.0.0.1:0",
        tls_bind="127.0.0.1:0",
        app_errors=True,
        access_log=False,
        **certs.options(),
    )


def assert_passed(server: Served, script: str, scheme: str, *switches: str) -> None:
    port = server.url_of(scheme).rpartition(":")[2]
    done = shared.run_script(ATTACKS / script, "127.0.0.1", port, *switches)
    bad = [line for line in done.stdout.splitlines() if not line.startswith(("PASS", "ok "))]
    assert re.search(r"^\d+ passed, 0 failed", done.stdout, re.MULTILINE), "\n".join(bad) + done.stderr
    server.check_log()


def test_http1(server: Served) -> None:
    assert_passed(server, "h1_attacks.py", "http", "--strict", "--slow", "70")


def test_http2_in_clear_text(server: Served) -> None:
    assert_passed(server, "h2_attacks.py", "http", "--slow", "70")


def test_http2_over_tls(server: Served) -> None:
    assert_passed(server, "h2_attacks.py", "https", "--tls", "--slow", "70")
