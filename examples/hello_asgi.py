"""The smallest ASGI application: `uv run tricorn examples.hello_asgi:app`."""

from collections.abc import Awaitable, Callable
from typing import Any

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


async def app(scope: dict[str, Any], _receive: Receive, send: Send) -> None:
    """Answers every HTTP request with one line of text."""
    if scope["type"] != "http":  # the server tries "lifespan" first, and goes on without it
        raise NotImplementedError(scope["type"])
    body = b"Hello, world!\n"
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
