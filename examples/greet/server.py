"""Serves the greet example over HTTP/1.1 at http://127.0.0.1:8080: `python -m examples.greet.server`."""

import sys
from pathlib import Path

if not __package__:  # run as a file: imports start at the project root, not in this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import tricorn
from examples.greet.gen.greet.v1.greet_connect import GreetServiceASGIApplication
from examples.greet.service import GreetService

app = GreetServiceASGIApplication(GreetService())

if __name__ == "__main__":
    tricorn.run(app, host="127.0.0.1", port=8080)
