"""Serves the greet example over TLS at https://127.0.0.1:8443: `python -m examples.greet.server_h2`.

The client chooses HTTP/2 or HTTP/1.1 by ALPN. The certificate comes from certs/make_certs.sh.
"""

import sys
from pathlib import Path

if not __package__:  # run as a file: imports start at the project root, not in this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import tricorn
from examples.greet.server import app

CERTS = Path(__file__).resolve().parents[2] / "certs"

if __name__ == "__main__":
    tricorn.run(app, host="127.0.0.1", port=8443, ssl_certfile=CERTS / "server.pem", ssl_keyfile=CERTS / "server.key")
