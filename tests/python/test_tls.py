"""TLS: certificates, versions, ciphers, resumption, and peers that misbehave."""

import json
import socket
import ssl
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.conftest import Serve
from tests.support import raw
from tests.support.certificates import Certificates, openssl
from tests.support.raw import dial
from tests.support.serving import Served, foreign_environment

T = TypeVar("T")


@pytest.fixture(scope="module")
def server(serve_module: Serve, certs: Certificates) -> Served:
    return serve_module("web", **certs.options())


def tls_scope(server: Served, context: ssl.SSLContext) -> dict[str, Any]:
    with raw.connect(server, tls=context) as client:
        return json.loads(client.get("/scope").body)["extensions"]["tls"]


def names(chain: Any) -> list[str]:
    return chain["tuple"] if isinstance(chain, dict) else chain


def test_certificate_is_verified_by_name_and_authority(server: Served, certs: Certificates) -> None:
    with raw.connect(server, tls=certs.context()) as client:
        assert client.get("/").body == b"Hello, world!"
    with pytest.raises(ssl.SSLCertVerificationError), raw.connect(server, tls=ssl.create_default_context()):
        pass
    with raw.connect(server, tls=certs.context()) as client:  # the refusal harmed nobody
        assert client.get("/").status == 200


def test_whole_chain_is_sent(serve: Serve, certs: Certificates, tmp_path: Path) -> None:
    chain = tmp_path / "chain.pem"
    chain.write_bytes((certs.folder / "server.pem").read_bytes() + certs.ca.read_bytes())
    server = serve("web", ssl_certfile=chain, ssl_keyfile=certs.folder / "server.key")
    shown = openssl("s_client", "-connect", f"127.0.0.1:{server.port}", "-showcerts", stdin=b"Q\n")
    assert shown.count(b"BEGIN CERTIFICATE") >= 2


def test_certificate_and_key_may_share_a_file(serve: Serve, certs: Certificates, tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    both.write_bytes((certs.folder / "server.pem").read_bytes() + (certs.folder / "server.key").read_bytes())
    with raw.connect(serve("web", ssl_certfile=both), tls=certs.context()) as client:
        assert client.get("/").status == 200


def test_key_may_have_a_password(serve: Serve, certs: Certificates, tmp_path: Path) -> None:
    key = tmp_path / "secret.key"
    openssl("pkey", "-in", certs.folder / "server.key", "-aes256", "-passout", "pass:open sesame", "-out", key)
    server = serve("web", ssl_certfile=certs.folder / "server.pem", ssl_keyfile=key, ssl_keyfile_password="open sesame")
    with raw.connect(server, tls=certs.context()) as client:
        assert client.get("/").status == 200


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_are_spoken_and_told(server: Served, certs: Certificates, version: ssl.TLSVersion) -> None:
    context = certs.context()
    context.minimum_version = context.maximum_version = version
    assert tls_scope(server, context)["tls_version"] == int(version)


def test_minimum_version_can_be_raised(serve: Serve, certs: Certificates) -> None:
    server = serve("web", ssl_min_version="TLSv1.3", **certs.options())
    old = certs.context()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError), raw.connect(server, tls=old):
        pass
    assert tls_scope(server, certs.context())["tls_version"] == int(ssl.TLSVersion.TLSv1_3)


def test_ciphers_can_be_chosen(serve: Serve, certs: Certificates) -> None:
    server = serve("web", ssl_ciphers="ECDHE-ECDSA-AES128-GCM-SHA256", **certs.options())
    context = certs.context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert tls_scope(server, context)["cipher_suite"] == 0xC02B
    context.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
    with pytest.raises(ssl.SSLError), raw.connect(server, tls=context):
        pass


def test_client_certificate_may_be_required(serve: Serve, certs: Certificates) -> None:
    server = serve("web", ssl_ca_certs=certs.ca, ssl_cert_reqs=2, **certs.options())
    tls = tls_scope(server, certs.context(client=True))
    assert names(tls["client_cert_chain"])[0] == (certs.folder / "client.pem").read_text()
    assert tls["client_cert_name"] == "CN=tricorn development client"
    with pytest.raises((ssl.SSLError, EOFError, ConnectionError)), raw.connect(server, tls=certs.context()) as client:
        client.get("/")
    assert "Traceback" not in server.log()


def test_client_certificate_may_be_optional(serve: Serve, certs: Certificates) -> None:
    server = serve("web", ssl_ca_certs=certs.ca, ssl_cert_reqs=1, **certs.options())
    assert names(tls_scope(server, certs.context())["client_cert_chain"]) == []
    assert len(names(tls_scope(server, certs.context(client=True))["client_cert_chain"])) >= 1


def test_client_certificate_of_a_stranger_is_refused(serve: Serve, certs: Certificates, tmp_path: Path) -> None:
    key, certificate = tmp_path / "stranger.key", tmp_path / "stranger.pem"
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", "/CN=stranger", "-keyout", key, "-out", certificate)  # fmt: skip
    server = serve("web", ssl_ca_certs=certs.ca, ssl_cert_reqs=1, **certs.options())
    context = certs.context()
    context.load_cert_chain(certificate, key)
    with pytest.raises((ssl.SSLError, EOFError, ConnectionError)), raw.connect(server, tls=context) as client:
        client.get("/")
    with raw.connect(server, tls=certs.context(client=True)) as client:
        assert client.get("/").status == 200


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_session_is_resumed(server: Served, certs: Certificates, version: ssl.TLSVersion) -> None:
    context = certs.context("http/1.1")
    context.minimum_version = context.maximum_version = version
    session = None
    for attempt in range(3):
        with (
            dial(server) as sock,
            context.wrap_socket(sock, server_hostname="localhost", session=session) as wrapped,
        ):
            client = raw.Raw(wrapped)
            assert client.get("/").status == 200
            assert wrapped.session_reused == (attempt > 0)
            session = wrapped.session


def test_without_a_common_protocol_the_handshake_ends_or_is_http1(server: Served, certs: Certificates) -> None:
    try:
        with raw.connect(server, tls=certs.context("spdy/3")) as client:
            assert client.get("/").status == 200
    except ssl.SSLError as refusal:
        reason = str(refusal)
    else:
        reason = ""
    assert "no application protocol" in reason or not reason


def test_handshake_that_never_comes_is_ended(serve: Serve, certs: Certificates) -> None:
    server = serve("web", timeout_tls_handshake=1, **certs.options())
    with raw.connect(server) as client:
        began = time.monotonic()
        assert client.ends()
        assert time.monotonic() - began > 0.9


@pytest.mark.parametrize(
    "noise",
    [
        b"GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        bytes(300),
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"",
    ],
    ids=["http", "zeros", "half a record", "preface", "nothing"],
)
def test_what_is_not_tls_is_closed_and_nobody_else_suffers(server: Served, certs: Certificates, noise: bytes) -> None:
    with raw.connect(server, tls=certs.context()) as bystander:
        assert bystander.get("/").status == 200
        with raw.connect(server) as client:
            client.send(noise)
            client.half_close()
            assert b"200 OK" not in client.rest()
        assert bystander.get("/").status == 200
    assert "Traceback" not in server.log()


def test_records_may_be_cut_anywhere(server: Served, certs: Certificates) -> None:
    """A handshake and a request in segments of one octet."""
    inbound, outbound = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = certs.context().wrap_bio(inbound, outbound, server_hostname="localhost")
    with dial(server) as sock:
        drive(sock, inbound, outbound, tls.do_handshake)
        tls.write(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        answer = b""
        while b"Hello, world!" not in answer:
            answer += drive(sock, inbound, outbound, lambda: tls.read(65_536))


def drive(sock: socket.socket, inbound: ssl.MemoryBIO, outbound: ssl.MemoryBIO, step: Callable[[], T]) -> T:
    """Does the step, octet by octet, until it needs nothing more from the server."""
    while True:
        try:
            return step()
        except ssl.SSLWantReadError:
            pass
        finally:
            for octet in outbound.read():
                sock.send(bytes([octet]))
        inbound.write(sock.recv(65_536))


@pytest.mark.parametrize("moment", ["in the handshake", "in a request", "in a response"])
def test_abrupt_close_harms_nobody(server: Served, certs: Certificates, moment: str) -> None:
    for _ in range(10):
        client = raw.Raw(dial(server))
        if moment == "in the handshake":
            client.send(b"\x16\x03\x01\x02\x00")
        else:
            client.sock = certs.context().wrap_socket(client.sock, server_hostname="localhost")
            path = "/source?size=50000000" if moment == "in a response" else "/sink"
            client.request(path, "POST", headers=[(b"content-length", b"1000")])
            if moment == "in a response":
                client.head()
        client.reset()
    with raw.connect(server, tls=certs.context()) as client:
        assert client.get("/").status == 200
    assert "Traceback" not in server.log()


def test_end_of_a_connection_is_announced(server: Served, certs: Certificates) -> None:
    """Without close_notify an answer that ends with its connection could have been cut by anyone."""
    context = certs.context()
    with raw.connect(server, tls=context) as client:
        client.send(b"GET /stream HTTP/1.0\r\n\r\n")
        response = client.response()  # an SSLEOFError would come from here
    assert response.body == b"000001111122222"


def test_renegotiation_is_refused(server: Served) -> None:
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-tls1_2", "-legacy_server_connect"]
    done = subprocess.run(
        command, env=foreign_environment(), input=b"R\n", capture_output=True, check=False, timeout=60
    )
    assert b"RENEGOTIATING" in done.stdout + done.stderr
    assert done.returncode != 0 or b"no_renegotiation" in (done.stdout + done.stderr).lower()
