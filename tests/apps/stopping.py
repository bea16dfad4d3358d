"""Tells in its log what it lives through while the server stops."""

import asyncio
import os
import sys

from tests.apps.tools import App, Receive, Scope, Send, answer, body, query, start

routes = App()


def tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)  # noqa: T201 the test reads it in the log


@routes.route("/")
async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, b"Hello, world!")


@routes.route("/slow")
async def slow(scope: Scope, receive: Receive, send: Send) -> None:
    tell("slow: started")
    try:
        await asyncio.sleep(float(query(scope)["seconds"]))
    except asyncio.CancelledError:
        tell("slow: cancelled")
        raise
    await answer(send, b"finished")


@routes.route("/stubborn")
async def stubborn(scope: Scope, receive: Receive, send: Send) -> None:
    """Swallows its cancellation."""
    tell("stubborn: started")
    while True:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            tell("stubborn: not now")


@routes.route("/events")
async def events(scope: Scope, receive: Receive, send: Send) -> None:
    """Server-sent events until the server says that it is over."""
    await start(send, headers=[(b"content-type", b"text/event-stream")])
    await body(send, b"data: hello\n\n", more=True)
    tell("events: started")
    while (await receive())["type"] != "http.disconnect":
        pass
    tell("events: told")
    await body(send, b"data: bye\n\n")


async def app(scope: Scope, receive: Receive, send: Send) -> object:
    if scope["type"] != "lifespan":
        return await routes(scope, receive, send)
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    tell("lifespan: shutdown")
    await asyncio.sleep(float(os.environ.get("SHUTDOWN_SECONDS", "0")))
    if os.environ.get("SHUTDOWN_FAILS"):
        await send({"type": "lifespan.shutdown.failed", "message": "could not say goodbye"})
        return None
    await send({"type": "lifespan.shutdown.complete"})
    return None
