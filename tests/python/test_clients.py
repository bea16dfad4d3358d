"""Clients that others wrote, each with a version it is likely to be used with."""

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import aiohttp
import httpx
import pytest

from tests.conftest import Serve
from tests.support.certificates import Certificates
from tests.support.serving import GUARD, Served, foreign_environment

DATA = os.urandom(300_000)


@pytest.fixture(scope="module")
def server(serve_module: Serve, certs: Certificates) -> Served:
    return serve_module("web", bind="127.0.0.1:0", tls_bind="127.0.0.1:0", **certs.options())


def run(*command: object, stdin: bytes = b"") -> bytes:
    done = subprocess.run(
        [*map(str, command)], env=foreign_environment(), input=stdin, capture_output=True, check=False, timeout=GUARD
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.mark.parametrize(
    ("scheme", "http2", "version"),
    [("http", False, "HTTP/1.1"), ("http", True, "HTTP/2"), ("https", False, "HTTP/1.1"), ("https", True, "HTTP/2")],
)
async def test_httpx(server: Served, certs: Certificates, scheme: str, version: str, *, http2: bool) -> None:
    async with httpx.AsyncClient(
        base_url=server.url_of(scheme), http1=not http2, http2=http2, verify=certs.context(), timeout=GUARD
    ) as client:
        answers = await asyncio.gather(*(client.post("/echo", content=DATA) for _ in range(20)))
        assert {answer.http_version for answer in answers} == {version}
        assert all(answer.content == DATA for answer in answers)
        async with client.stream("GET", "/stream?count=20&size=10000") as streamed:
            assert len(await streamed.aread()) == 200_000


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_aiohttp(server: Served, certs: Certificates, scheme: str) -> None:
    async def pieces():  # noqa: ANN202 an asynchronous generator of bytes
        for start in range(0, len(DATA), 10_000):
            yield DATA[start : start + 10_000]

    url = server.url_of(scheme)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=certs.context())) as session:

        async def echo(*, chunked: bool) -> bytes:
            async with session.post(f"{url}/echo", data=pieces() if chunked else DATA) as answer:
                return await answer.read()

        assert set(await asyncio.gather(*(echo(chunked=bool(n % 2)) for n in range(20)))) == {DATA}
        async with session.post(f"{url}/echo", data=DATA, expect100=True) as answer:
            assert await answer.read() == DATA
    await asyncio.sleep(0.1)  # aiohttp closes TLS transports behind the session's end


@pytest.mark.parametrize(
    ("scheme", "switch", "version"),
    [
        ("http", "--http1.0", "1.0"),
        ("http", "--http1.1", "1.1"),
        ("http", "--http2-prior-knowledge", "2"),
        ("https", "--http1.1", "1.1"),
        ("https", "--http2", "2"),
    ],
)
def test_curl(server: Served, certs: Certificates, tmp_path: Path, *, scheme: str, switch: str, version: str) -> None:
    url, back = server.url_of(scheme), tmp_path / "back"
    common = ("curl", "-sS", "--fail", "--cacert", certs.ca, switch)
    told = run(*common, "--data-binary", "@-", "-o", back, "-w", "%{http_version}", f"{url}/echo", stdin=DATA)
    assert told.decode() == ("1.1" if version == "1.0" else version)
    assert back.read_bytes() == DATA
    if switch != "--http2-prior-knowledge":  # curl 7.88 then fails with its second request, whatever the server
        assert run(*common, *(f"{url}/" for _ in range(20))) == b"Hello, world!" * 20
    assert run(*common, "--head", f"{url}/").lower().startswith(b"http/" + told)
    if version != "1.0":
        assert run(*common, "-T", "-", f"{url}/echo", stdin=DATA) == DATA
    assert len(run(*common, f"{url}/stream?count=50&size=10000")) == 500_000


def test_curl_asks_to_upgrade_and_is_served_all_the_same(server: Served) -> None:
    assert run("curl", "-sS", "--http2", f"{server.url_of('http')}/") == b"Hello, world!"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_nghttp(server: Served, tmp_path: Path, scheme: str) -> None:
    url, data = server.url_of(scheme), tmp_path / "data"
    data.write_bytes(DATA)
    assert run("nghttp", "--no-verify-peer", "-d", data, f"{url}/echo") == DATA
    told = run("nghttp", "--no-verify-peer", "-nv", "-m", "50", "--trailer", "x-sum: 1", "-d", data, f"{url}/echo")
    assert told.count(b":status: 200") == 50
    assert b"RST_STREAM" not in told


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not there")
@pytest.mark.parametrize(("scheme", "version"), [("http", b"HTTP/1.1"), ("https", b"HTTP/2.0")])
def test_go(server: Served, certs: Certificates, scheme: str, version: bytes) -> None:
    source = Path(__file__).with_name("go_client") / "main.go"
    command = ["go", "run", source, server.url_of(scheme), certs.ca]
    done = subprocess.run(command, env=foreign_environment(), capture_output=True, check=False)
    assert done.stdout.strip() == version, done.stderr.decode()
