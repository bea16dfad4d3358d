"""h2spec: every case passes and none is skipped, with TLS and in clear text."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Serve
from tests.support.certificates import Certificates
from tests.support.serving import ROOT, Served

pytestmark = [pytest.mark.wire, pytest.mark.slow, pytest.mark.timeout(900)]

CASES = {"": 145, "--strict": 146}


def h2spec() -> str:
    """From $H2SPEC, where ./dev puts it, the PATH, or where Go installs programs."""
    go_folder = os.environ.get("GOBIN") or Path(os.environ.get("GOPATH", Path.home() / "go")) / "bin"
    for place in (os.environ.get("H2SPEC"), ROOT / "build/tools/h2spec", Path(go_folder) / "h2spec"):
        if place and Path(place).is_file():
            return str(place)
    return shutil.which("h2spec") or pytest.skip("no h2spec: ./dev wire builds it, or set H2SPEC")


@pytest.fixture(scope="module")
def clear(serve_module: Serve) -> Served:
    return serve_module("conformance", protocols="h2")


@pytest.fixture(scope="module")
def secure(serve_module: Serve, certs: Certificates) -> Served:
    return serve_module("conformance", **certs.options())


@pytest.mark.parametrize("strict", CASES)
@pytest.mark.parametrize("kind", ["clear", "secure"])
def test_h2spec(request: pytest.FixtureRequest, kind: str, strict: str) -> None:
    server: Served = request.getfixturevalue(kind)
    command = [h2spec(), "-h", "127.0.0.1", "-p", str(server.port), "-P", "/text", "-o", "5", *filter(None, [strict])]
    if kind == "secure":
        command += ["-t", "-k"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"(\d+) tests, (\d+) passed, (\d+) skipped, (\d+) failed", done.stdout)
    assert found, done.stdout + done.stderr
    assert tuple(map(int, found.groups())) == (CASES[strict], CASES[strict], 0, 0), done.stdout
