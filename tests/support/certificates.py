"""Certificates made by the project's own script, and contexts of clients that trust them."""

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.serving import ROOT, foreign_environment


@dataclass(frozen=True)
class Certificates:
    """A folder with an authority, a server's certificate and a client's."""

    folder: Path

    @property
    def ca(self) -> Path:
        return self.folder / "ca.pem"

    def options(self) -> dict[str, object]:
        """The server's, as options of the command."""
        return {"ssl_certfile": self.folder / "server.pem", "ssl_keyfile": self.folder / "server.key"}

    def context(self, *alpn: str, client: bool = False) -> ssl.SSLContext:
        """A client that trusts the authority, and with `client` shows a certificate of its own."""
        context = ssl.create_default_context(cafile=self.ca)
        if alpn:
            context.set_alpn_protocols(list(alpn))
        if client:
            context.load_cert_chain(self.folder / "client.pem", self.folder / "client.key")
        return context


def make(folder: Path) -> Certificates:
    subprocess.run([ROOT / "certs/make_certs.sh", folder], env=foreign_environment(), check=True, capture_output=True)
    return Certificates(folder)


def openssl(*arguments: object, stdin: bytes = b"") -> bytes:
    """Runs openssl; gives its output."""
    command = ["openssl", *map(str, arguments)]
    done = subprocess.run(command, env=foreign_environment(), input=stdin, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout
