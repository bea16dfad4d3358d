"""Ordinary routes: echoes, streams, uploads, downloads."""

import asyncio
import contextvars
import hashlib
from pathlib import Path

from tests.apps.tools import App, Receive, Scope, Send, answer, answer_json, body, plain, query, read_body, start

app = App()
greeting: contextvars.ContextVar[str] = contextvars.ContextVar("greeting", default="unset")
gates: dict[str, asyncio.Event] = {}


@app.route("/")
async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, b"Hello, world!", headers=[(b"content-type", b"text/plain")])


@app.route("/scope")
async def show_scope(scope: Scope, receive: Receive, send: Send) -> None:
    shown = {key: plain(value) for key, value in scope.items()}
    await read_body(receive)
    await answer_json(send, shown)


@app.route("/echo")
async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    data = await read_body(receive)
    await answer(send, data or b"")


@app.route("/duplex")
async def duplex(scope: Scope, receive: Receive, send: Send) -> None:
    """Sends each piece back as it arrives; the response starts before the request body ends."""
    await start(send)
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        await body(send, message["body"], more=message["more_body"])
        if not message["more_body"]:
            return


@app.route("/stream")
async def stream(scope: Scope, receive: Receive, send: Send) -> None:
    wanted = query(scope)
    await start(send)
    for number in range(int(wanted.get("count", "3"))):
        await body(send, b"%d" % (number % 10) * int(wanted.get("size", "5")), more=True)
        await asyncio.sleep(float(wanted.get("delay", "0")))
    await body(send)


@app.route("/source")
async def source(scope: Scope, receive: Receive, send: Send) -> None:
    """So many octets, in pieces."""
    wanted = query(scope)
    size, piece = int(wanted["size"]), bytes(int(wanted.get("piece", "262144")))
    headers = [(b"content-length", b"%d" % size)] if "length" in wanted else []
    await start(send, headers=headers)
    sent = 0
    while sent < size:
        part = piece[: size - sent]
        sent += len(part)
        await body(send, part, more=True)
        app.seen[wanted.get("key", "")][:] = [sent]
    await body(send)


@app.route("/sink")
async def sink(scope: Scope, receive: Receive, send: Send) -> None:
    """Counts the octets of the request body without keeping any."""
    app.note(scope, "started")
    total, digest = 0, hashlib.sha256()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            app.note(scope, "http.disconnect")
            return
        total += len(message["body"])
        digest.update(message["body"])
        if not message["more_body"]:
            await answer_json(send, {"size": total, "sha256": digest.hexdigest()})
            return


@app.route("/gated")
async def gated(scope: Scope, receive: Receive, send: Send) -> None:
    """Reads nothing until somebody asks for /open with the same key, then counts the body."""
    gate = gates.setdefault(query(scope)["key"], asyncio.Event())
    app.note(scope, "waiting")
    await gate.wait()
    data = await read_body(receive)
    await answer(send, b"%d" % len(data or b""))


@app.route("/open")
async def open_gate(scope: Scope, receive: Receive, send: Send) -> None:
    gates.setdefault(query(scope)["key"], asyncio.Event()).set()
    await answer(send)


@app.route("/unread")
async def unread(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, b"not interested", status=403)


@app.route("/sleep")
async def sleep(scope: Scope, receive: Receive, send: Send) -> None:
    app.note(scope, "started")
    await asyncio.sleep(float(query(scope)["seconds"]))
    await answer(send, query(scope).get("text", "slept").encode())


@app.route("/trailers")
async def trailers(scope: Scope, receive: Receive, send: Send) -> None:
    await start(send, headers=[(b"trailer", b"x-sum")], trailers=True)
    await body(send, b"part ", more=True)
    await body(send, b"whole")
    await send({"type": "http.response.trailers", "headers": [(b"x-sum", b"42")], "more_trailers": True})
    await send({"type": "http.response.trailers", "headers": [(b"x-more", b"yes")]})


@app.route("/hints")
async def hints(scope: Scope, receive: Receive, send: Send) -> None:
    links = [b"</style.css>; rel=preload; as=style", b"</script.js>; rel=preload; as=script"]
    await send({"type": "http.response.early_hint", "links": links})
    await answer(send, b"page")


@app.route("/path")
async def pathsend(scope: Scope, receive: Receive, send: Send) -> None:
    await start(send, headers=[(b"content-type", b"application/octet-stream")])
    await send({"type": "http.response.pathsend", "path": query(scope)["path"]})


@app.route("/file")
async def zerocopysend(scope: Scope, receive: Receive, send: Send) -> None:
    """Two pieces of a file between two ordinary pieces."""
    wanted = query(scope)
    with Path(wanted["path"]).open("rb") as file:  # noqa: ASYNC230 a small thing in a test
        await start(send)
        await body(send, b"<", more=True)
        offset, count = int(wanted["offset"]), int(wanted["count"])
        await send(
            {
                "type": "http.response.zerocopysend",
                "file": file.fileno(),
                "offset": offset,
                "count": count,
                "more_body": True,
            }
        )
        file.seek(0)
        await send({"type": "http.response.zerocopysend", "file": file.fileno(), "more_body": True})
        await body(send, b">")


@app.route("/context")
async def context(scope: Scope, receive: Receive, send: Send) -> None:
    """What the request found in its context, before it leaves something there; and whose task this is."""
    before = greeting.get()
    greeting.set(query(scope)["value"])
    await asyncio.sleep(0)
    await read_body(receive)
    task = asyncio.current_task()
    assert task is not None
    app.note(scope, id(task))
    await answer_json(send, [before, greeting.get(), task in asyncio.all_tasks()])


@app.route("/wait")
async def wait(scope: Scope, receive: Receive, send: Send) -> None:
    """Reads the body and waits for the client to go."""
    app.note(scope, "started")
    await read_body(receive)
    message = await receive()
    app.note(scope, message["type"])
    app.note(scope, (await receive())["type"])


@app.route("/endless")
async def endless(scope: Scope, receive: Receive, send: Send) -> None:
    """Sends until that fails."""
    app.note(scope, "started")
    try:
        await start(send)
        while True:
            await body(send, bytes(65536), more=True)
            await asyncio.sleep(0)
    except OSError as error:
        app.note(scope, f"OSError {isinstance(error, OSError)}")
        raise
    finally:
        app.note(scope, "ended")


@app.route("/answer-after-disconnect")
async def answer_after_disconnect(scope: Scope, receive: Receive, send: Send) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    app.note(scope, "http.disconnect")
    await answer(send, b"still here")
    app.note(scope, "answered")
