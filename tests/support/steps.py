"""The steps that tests/apps/script.py takes."""

import json
from typing import Any
from urllib.parse import urlencode

from tests.support import raw
from tests.support.serving import Served, eventually

Step = dict[str, Any]


def target(*steps: Step, key: str = "") -> str:
    """The request target for these steps; what they see is noted under the key."""
    return "/script?" + urlencode({"steps": json.dumps(steps), "key": key})


def send(kind: str, *, caught: bool = False, **content: Any) -> Step:
    """A message `http.response.KIND`, or of the whole type if it has a dot; with `caught` an exception ends nothing."""
    return {"send": {"type": kind if "." in kind else f"http.response.{kind}", **content}, "catch": caught}


def start(status: int = 200, headers: Any = (), **more: Any) -> Step:
    """Headers are pairs of text, as octets where they begin with `b:`."""
    pairs = [[part if isinstance(part, str) else f"b:{part.decode('latin-1')}" for part in pair] for pair in headers]
    return send("start", status=status, headers=pairs, **more)


def body(data: bytes = b"", *, more: bool = False, **extra: Any) -> Step:
    return send("body", body=f"b:{data.decode('latin-1')}", more_body=more, **extra)


def receive(times: int = 1) -> Step:
    return {"receive": times}


def seen(server: Served, key: str) -> list[Any]:
    """What the application has noted under the key."""
    return json.loads(raw.get(server, "/seen?" + urlencode({"key": key})).body)


def saw(server: Served, key: str, wanted: object) -> list[Any]:
    """The same, once the wanted note is there."""

    def probe() -> list[Any] | None:
        notes = seen(server, key)
        return notes if wanted in notes else None

    return eventually(probe, f"{wanted!r} under {key!r}", lambda: f"{seen(server, key)}\n{server.log()}")
