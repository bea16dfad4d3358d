"""Binding: every kind of address, and one clear line where it fails."""

import errno
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tricorn import sockets
from tricorn.sockets import Address, Inherited, Tcp, Unix


@pytest.fixture
def open_sockets() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def listening(stack: ExitStack, address: Address) -> list[socket.socket]:
    return [stack.enter_context(sock) for sock in sockets.listen(address, 10)]


def port_of(sock: socket.socket) -> int:
    return int(sock.getsockname()[1])


def answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")


def test_ipv4_is_non_blocking_and_reusable(open_sockets: ExitStack) -> None:
    [sock] = listening(open_sockets, Tcp("127.0.0.1", 0))
    assert not sock.getblocking()
    assert not sock.get_inheritable()
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)
    assert answers("127.0.0.1", port_of(sock))
    assert sockets.describe(Tcp("127.0.0.1", 0), sock, tls=False) == f"http://127.0.0.1:{port_of(sock)}"


@needs_ipv6
def test_ipv6_is_shown_in_brackets(open_sockets: ExitStack) -> None:
    [sock] = listening(open_sockets, Tcp("::1", 0))
    assert sockets.describe(Tcp("::1", 0), sock, tls=True) == f"https://[::1]:{port_of(sock)}"


@needs_ipv6
def test_two_colons_are_both_families_on_one_socket(open_sockets: ExitStack) -> None:
    [sock] = listening(open_sockets, Tcp("::", 0))
    assert answers("127.0.0.1", port_of(sock))
    assert answers("::1", port_of(sock))


@needs_ipv6
def test_no_host_is_every_interface_on_one_port(open_sockets: ExitStack) -> None:
    found = listening(open_sockets, Tcp("", 0))
    assert len({port_of(sock) for sock in found}) == 1
    assert answers("127.0.0.1", port_of(found[0]))
    assert answers("::1", port_of(found[0]))


def test_a_taken_port_is_said_as_uvicorn_says_it(open_sockets: ExitStack) -> None:
    [sock] = listening(open_sockets, Tcp("127.0.0.1", 0))
    with pytest.raises(OSError, match="in use") as raised:
        sockets.listen(Tcp("127.0.0.1", port_of(sock)), 10)
    assert str(raised.value) == (
        f"[Errno {errno.EADDRINUSE}] error while attempting to bind on address ('127.0.0.1', {port_of(sock)}): "
        "address already in use"
    )


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 64 + ".invalid", "."])
def test_a_host_that_does_not_resolve_is_named(host: str) -> None:
    with pytest.raises(OSError, match="error while resolving host") as raised:
        sockets.listen(Tcp(host, 0), 10)
    assert repr(host) in str(raised.value)


def test_an_address_that_is_not_ours_is_refused() -> None:
    with pytest.raises(OSError, match=r"bind on address \('192\.0\.2\.1', 0\)"):
        sockets.listen(Tcp("192.0.2.1", 0), 10)


def test_a_new_unix_socket_is_for_everyone(open_sockets: ExitStack, tmp_path: Path) -> None:
    path = tmp_path / "s"
    listening(open_sockets, Unix(str(path)))
    assert stat.S_IMODE(path.stat().st_mode) == 0o666


def test_a_stale_unix_socket_is_replaced_and_its_mode_kept(open_sockets: ExitStack, tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    path.chmod(0o600)
    listening(open_sockets, Unix(str(path)))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))


def test_a_unix_socket_in_use_is_left_alone(open_sockets: ExitStack, tmp_path: Path) -> None:
    path = tmp_path / "s"
    listening(open_sockets, Unix(str(path)))
    with pytest.raises(OSError, match="address already in use"):
        sockets.listen(Unix(str(path)), 10)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))


def test_a_file_is_never_removed(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_text("mine")
    with pytest.raises(OSError, match="address already in use"):
        sockets.listen(Unix(str(path)), 10)
    assert path.read_text() == "mine"


@pytest.mark.parametrize("path", ["/no/such/directory/s", "/tmp/" + "x" * 200])
def test_an_impossible_path_is_one_line(path: str) -> None:
    with pytest.raises(OSError, match="error while attempting to bind on address") as raised:
        sockets.listen(Unix(path), 10)
    assert "\n" not in str(raised.value)


def test_a_path_taken_over_by_another_server_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_text("")
    inode = sockets.inode_of(str(path))
    (tmp_path / "new").write_text("")
    (tmp_path / "new").rename(path)
    sockets.remove_path(str(path), inode)
    assert path.exists()
    sockets.remove_path(str(path), sockets.inode_of(str(path)))
    assert not path.exists()


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_UNIX])
def test_an_inherited_descriptor_keeps_its_family(
    family: socket.AddressFamily, open_sockets: ExitStack, tmp_path: Path
) -> None:
    parent = open_sockets.enter_context(socket.socket(family))
    parent.bind(("127.0.0.1", 0) if family == socket.AF_INET else str(tmp_path / "s"))
    [sock] = listening(open_sockets, Inherited(parent.fileno()))
    assert sock.family == family
    assert sock.fileno() != parent.fileno()
    assert sock.getsockname() == parent.getsockname()


def test_a_descriptor_that_is_no_stream_socket_is_refused(open_sockets: ExitStack) -> None:
    datagrams = open_sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    with pytest.raises(OSError, match="not a stream socket"):
        sockets.listen(Inherited(datagrams.fileno()), 10)
    reading, writing = os.pipe()
    try:
        with pytest.raises(OSError, match=f"error while using file descriptor {reading}"):
            sockets.listen(Inherited(reading), 10)
    finally:
        os.close(reading)
        os.close(writing)
