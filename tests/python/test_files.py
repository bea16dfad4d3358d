"""Files that the application has the server send: ASGI Path Send and Zero Copy Send."""

import os
import re
from pathlib import Path

import pytest

from tests.conftest import Serve
from tests.support import frames, raw
from tests.support.certificates import Certificates
from tests.support.serving import Served
from tests.support.sizes import LARGE, MIB, bounded_memory, swallow


@pytest.fixture(scope="module")
def server(serve_module: Serve) -> Served:
    return serve_module("web")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "data"
    path.write_bytes(os.urandom(5 * MIB + 3))
    return path


@pytest.mark.parametrize("tls", [False, True], ids=["clear", "tls"])
def test_files_are_sent_whole_and_in_parts(serve: Serve, certs: Certificates, file: Path, *, tls: bool) -> None:
    server = serve("web", **(certs.options() if tls else {}))
    data = file.read_bytes()
    part = f"/file?path={file}&offset=1000&count=3000000"
    expected = b"<" + data[1000:3_001_000] + data + b">"
    with raw.connect(server, tls=certs.context() if tls else None) as client:
        assert client.get(f"/path?path={file}").body == data
        assert client.get(part).body == expected
        assert client.get(part, "HEAD").status == 200
        assert client.get("/").body == b"Hello, world!"
    with frames.connect(server, tls=certs.context("h2") if tls else None) as client:
        assert client.get(f"/path?path={file}").body == data
        assert client.get(part).body == expected


@pytest.mark.timing
def test_a_very_large_file_is_not_read_into_memory(server: Served, tmp_path: Path) -> None:
    sparse = tmp_path / "sparse"
    with sparse.open("wb") as file:
        file.truncate(LARGE)
    with bounded_memory(server), raw.connect(server) as client:
        client.request(f"/path?path={sparse}")
        response = client.head()
        if response.value(b"content-length"):
            assert swallow(client, LARGE) == LARGE
        else:
            assert sum(iter(lambda: len(client.chunk()), 0)) == LARGE


@pytest.mark.parametrize("path", ["/nonexistent", "relative", "/"])
def test_file_that_cannot_be_sent_is_an_error_of_the_application(serve: Serve, path: str) -> None:
    server = serve("web", app_errors=True)
    with raw.connect(server) as client:
        client.request(f"/path?path={path}")
        client.rest()
    server.wait_for_log("Exception in ASGI application")
    assert re.search(r"FileNotFoundError|IsADirectoryError|OSError|ValueError|RuntimeError", server.log())
    assert raw.get(server, "/").status == 200
