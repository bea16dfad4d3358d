"""What the applications of the tests have in common: routes, helpers, and a record of what they saw."""

import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Handler = Callable[[Scope, Receive, Send], Awaitable[object]]


class App:
    """Routes by path or first segment. Handlers `note` what they see; a test reads it at /seen?key=KEY."""

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {"/seen": self.show_seen}
        self.seen: defaultdict[str, list[object]] = defaultdict(list)

    def route(self, path: str) -> Callable[[Handler], Handler]:
        def add(handler: Handler) -> Handler:
            self.handlers[path] = handler
            return handler

        return add

    def note(self, scope: Scope, what: object) -> None:
        self.seen[query(scope).get("key", "")].append(what)

    async def show_seen(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        await answer_json(send, self.seen[query(scope)["key"]])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> object:
        if scope["type"] == "lifespan":
            return await lifespan(scope, receive, send)
        path = scope["path"].removeprefix(scope["root_path"])
        handler = self.handlers.get(path) or self.handlers.get(path[: path.find("/", 1)])
        if handler is None:
            return await answer(send, b"no such route", status=404)
        return await handler(scope, receive, send)


async def lifespan(scope: Scope, receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return


def query(scope: Scope) -> dict[str, str]:
    return dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))


async def start(send: Send, status: int = 200, headers: Any = (), **more: object) -> None:
    await send({"type": "http.response.start", "status": status, "headers": list(headers), **more})


async def body(send: Send, data: Any = b"", *, more: bool = False) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": more})


async def answer(send: Send, data: bytes = b"ok", *, status: int = 200, headers: Any = ()) -> None:
    await start(send, status, [(b"content-length", b"%d" % len(data)), *headers])
    await body(send, data)


async def answer_json(send: Send, value: object) -> None:
    await answer(send, json.dumps(value).encode(), headers=[(b"content-type", b"application/json")])


async def read_body(receive: Receive) -> bytes | None:
    """The whole body; None if the client went away."""
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message["body"])
        if not message["more_body"]:
            return b"".join(parts)


def plain(value: object) -> object:
    """The value for JSON, octets marked as such and tuples told from lists."""
    if isinstance(value, bytes):
        return f"b:{value.decode('latin-1')}"
    if isinstance(value, tuple):
        return {"tuple": [plain(one) for one in value]}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return repr(type(value))
