"""Where a server listens, and what its start line says."""

import json
import re
import socket
import stat
from pathlib import Path

import pytest

from tests.conftest import Serve
from tests.support import frames, raw
from tests.support.certificates import Certificates
from tests.support.serving import Served, eventually


def ask(path: Path, target: str = "/scope") -> raw.Response:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(path))
        return raw.Raw(sock).get(target)


def test_port_zero_is_chosen_and_shown(serve: Serve) -> None:
    server = serve("web", port=0)
    assert f"INFO:     Tricorn running on http://127.0.0.1:{server.port} (Press CTRL+C to quit)\n" in server.log()
    assert raw.get(server, "/").status == 200


def test_start_lines_are_uvicorns(serve: Serve) -> None:
    server = serve("web")
    expected = [
        rf"INFO:     Started server process \[{server.pid}\]",
        r"INFO:     Waiting for application startup\.",
        r"INFO:     Application startup complete\.",
        r"INFO:     Tricorn running on http://127\.0\.0\.1:\d+ \(Press CTRL\+C to quit\)",
    ]
    assert re.fullmatch("\n".join(expected) + "\n", server.log())


def test_ipv6_address_stands_in_brackets_only_in_the_url(serve: Serve) -> None:
    server = serve("web", host="::1")
    assert server.url == f"http://[::1]:{server.port}"
    scope = json.loads(raw.get(server, "/scope").body)
    assert scope["server"] == {"tuple": ["::1", server.port]}
    assert scope["client"]["tuple"][0] == "::1"
    assert isinstance(scope["client"]["tuple"][1], int)


@pytest.mark.parametrize("host", ["::", "localhost"])
def test_dual_stack(serve: Serve, host: str) -> None:
    server = serve("web", host=host)
    for address in ("127.0.0.1", "::1") if host == "::" else addresses_of(host):
        with socket.create_connection((address, server.port)) as sock:
            scope = json.loads(raw.Raw(sock).get("/scope").body)
            assert scope["client"]["tuple"][0] in (address, f"::ffff:{address}")


def addresses_of(host: str) -> set[str]:
    return {str(address[0]) for *_, address in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}


def test_unix_socket(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    server = serve("web", uds=path)
    assert f"running on unix socket {path} (Press CTRL+C to quit)" in server.log()
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    scope = json.loads(ask(path).body)
    assert scope["server"] == {"tuple": [str(path), None]}
    assert scope["client"] is None
    assert ' - "GET /scope HTTP/1.1" 200 OK' in server.wait_for_access_log("200 OK")
    server.stop()
    assert not path.exists()


def test_unix_socket_that_a_dead_server_left_is_replaced(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    serve("web", uds=path)
    assert ask(path, "/").status == 200


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6, socket.AF_UNIX], ids=["v4", "v6", "unix"])
def test_inherited_descriptor_of_any_family(serve: Serve, tmp_path: Path, family: socket.AddressFamily) -> None:
    address = {socket.AF_INET: ("127.0.0.1", 0), socket.AF_INET6: ("::1", 0)}.get(family, str(tmp_path / "socket"))
    with socket.socket(family) as bound:
        bound.bind(address)
        server = serve("web", fd=bound.fileno(), pass_fds=[bound.fileno()])
        assert "running on socket " in server.log()
        with socket.socket(family) as sock:
            sock.connect(bound.getsockname())
            assert raw.Raw(sock).get("/").body == b"Hello, world!"


def test_several_listeners_plain_and_tls_together(serve: Serve, certs: Certificates, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    server = serve(
        "web", bind=["127.0.0.1:0", "[::1]:0", f"unix:{path}"], tls_bind=["127.0.0.1:0", "[::1]:0"], **certs.options()
    )
    assert [scheme for scheme, _, _ in server.addresses] == ["http", "http", "https", "https"]
    for address in list(server.addresses):
        server.addresses = [address]
        tls = address[0] == "https"
        with raw.connect(server, tls=certs.context() if tls else None) as client:
            assert json.loads(client.get("/scope").body)["scheme"] == address[0]
        with frames.connect(server, tls=certs.context("h2") if tls else None) as client:
            assert client.get("/").status == 200
    assert ask(path, "/").status == 200


def test_clients_that_connect_before_accept_are_served(serve: Serve) -> None:
    server = serve("web")
    socks = [raw.dial(server) for _ in range(500)]
    try:
        for sock in socks:
            raw.Raw(sock).request("/")
        assert [raw.Raw(sock).response().status for sock in socks] == [200] * 500
    finally:
        for sock in socks:
            sock.close()


def test_connections_over_the_limit_wait_while_none_is_idle(serve: Serve) -> None:
    server = serve("web", limit_connections=2)
    with raw.connect(server) as first, raw.connect(server) as second:
        for busy in (first, second):
            busy.request("/duplex", "POST", headers=[(b"transfer-encoding", b"chunked")])
            assert busy.head().status == 200
        with raw.connect(server) as third:
            third.request("/")
            assert third.silent(0.3)
            first.sock.close()
            assert third.response().status == 200
        second.send(b"1\r\nx\r\n")
        assert second.chunk() == b"x"


@pytest.mark.timing  # not timing, but a sanitizer needs descriptors too
def test_server_without_descriptors_left_serves_on_when_some_are_free(serve: Serve) -> None:
    server = serve("scarce", limit_connections=1000)
    with raw.connect(server) as busy:
        busy.request("/take")
        assert busy.head().status == 200
        with raw.connect(server) as waiting:
            waiting.request("/")
            assert waiting.response().status == 200
        assert busy.rest().endswith(b"0\r\n\r\n")
    assert "Traceback" not in server.log()


def test_closed_connections_leave_no_descriptors(serve: Serve) -> None:
    server = serve("web")
    raw.get(server, "/")
    before = descriptors(server)
    for _ in range(200):
        raw.get(server, "/")
    eventually(lambda: descriptors(server) <= before, "descriptors back to what they were")


def descriptors(server: Served) -> int:
    return len(list(Path(f"/proc/{server.pid}/fd").iterdir()))
