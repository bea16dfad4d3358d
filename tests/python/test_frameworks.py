"""A Starlette application runs unchanged."""

import os
from pathlib import Path

import httpx
import pytest

from tests.conftest import Serve
from tests.support import raw
from tests.support.serving import Served, eventually


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "data.bin"
    path.write_bytes(os.urandom(1_000_000))
    return path


@pytest.fixture(scope="module")
def server(serve_module: Serve, file: Path) -> Served:
    return serve_module("frameworks", env={"FILE": str(file)}, app_errors=True)


@pytest.fixture(params=["h1", "h2c"])
def client(request: pytest.FixtureRequest, server: Served):  # noqa: ANN201 a fixture
    over_h2 = request.param == "h2c"
    with httpx.Client(base_url=server.url, http1=not over_h2, http2=over_h2) as client:
        yield client


def test_lifespan_state_reaches_requests(client: httpx.Client) -> None:
    assert client.get("/state").text == "open"


def test_streams_files_and_bodies(client: httpx.Client, file: Path) -> None:
    pieces = (b"x" * 10_000 for _ in range(100))
    assert client.put("/upload?a=1", content=pieces).json() == {"size": 1_000_000, "query": {"a": "1"}, "client": True}
    assert client.post("/form", json={"é": ["ü"]}).json() == {"é": ["ü"]}
    assert client.get("/events").text == "".join(f"data: {number}\n\n" for number in range(5))
    assert client.get("/file").content == file.read_bytes()
    part = client.get("/file", headers={"range": "bytes=1000-1999"})
    assert (part.status_code, part.content) == (206, file.read_bytes()[1000:2000])


def test_background_task_runs_after_the_answer(client: httpx.Client) -> None:
    assert client.get("/background").text == "ok"
    eventually(lambda: "background" in client.get("/ran").json(), "the background task")


def test_failing_handler_is_a_500(client: httpx.Client, server: Served) -> None:
    assert client.get("/failing").status_code == 500
    assert "RuntimeError: boom" in server.wait_for_log("RuntimeError: boom")


def test_streaming_response_ends_when_the_client_leaves(server: Served) -> None:
    """With spec_version 2.4 and later Starlette counts on OSError from send."""
    with raw.connect(server) as client:
        client.request("/endless")
        client.head()
        client.chunk()
        client.reset()
    eventually(lambda: b"endless closed" in raw.get(server, "/ran").body, "the end of the generator")
