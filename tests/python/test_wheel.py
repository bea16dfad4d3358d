"""The repaired wheel carries its libraries and serves from a virtual environment that has nothing else."""

import re
import signal
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HELLO = """
async def app(scope, receive, send):
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"Hello, world!"})
"""

pytestmark = [pytest.mark.wheel, pytest.mark.slow]


@pytest.fixture(scope="module")
def wheel() -> Path:
    wheels = sorted((ROOT / "dist").glob("tricorn-*.whl"))
    if not wheels:
        pytest.skip("no wheel in dist/: run ./dev wheel")
    return wheels[-1]


def test_wheel_carries_its_libraries(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for library in ("libuv", "libnghttp2", "libssl", "libcrypto"):
        assert any(name.startswith(f"tricorn.libs/{library}") for name in names), library


def test_wheel_serves_from_a_clean_environment(wheel: Path, tmp_path: Path) -> None:
    python = tmp_path / "venv/bin/python"
    uv = (sys.executable, "-m", "uv", "--quiet")
    subprocess.run([*uv, "venv", "--python", sys.executable, python.parents[1]], check=True)
    subprocess.run([*uv, "pip", "install", "--python", python, wheel], check=True)
    (tmp_path / "hello.py").write_text(HELLO)

    command = [python.with_name("tricorn"), "hello:app", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, env={}, stderr=subprocess.PIPE, text=True) as server:
        try:
            url = started_at(server)
            with urllib.request.urlopen(url, timeout=10) as answer:
                assert answer.read() == b"Hello, world!"
            server.send_signal(signal.SIGTERM)
            _, rest = server.communicate(timeout=10)
        finally:
            server.kill()
    assert server.returncode == -signal.SIGTERM, rest  # raised again after an orderly stop, as uvicorn does
    assert "Finished server process" in rest


def started_at(server: subprocess.Popen[str]) -> str:
    """The address in the server's start line."""
    assert server.stderr is not None
    lines = []
    for line in server.stderr:
        if found := re.search(r"http://127\.0\.0\.1:\d+", line):
            return found[0]
        lines.append(line)
    pytest.fail(f"no start line: {''.join(lines)}")
