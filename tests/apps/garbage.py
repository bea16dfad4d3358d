"""Holds on to receive, send and scope longer than the request, and lets go of them on other threads."""

import asyncio
import gc
from typing import Any

from tests.apps.tools import App, Receive, Scope, Send, answer, answer_json, body, start

app = App()
kept: list[Any] = []


class Cycle:
    """Only the garbage collector frees it."""

    def __init__(self, *held: object) -> None:
        self.held = held
        self.me = self


@app.route("/cycle")
async def cycle(scope: Scope, receive: Receive, send: Send) -> None:
    Cycle(scope, receive, send, asyncio.current_task(), receive())
    await answer(send)
    if len(kept) % 10 == 0:
        await asyncio.to_thread(gc.collect)
    kept.append(None)


@app.route("/keep")
async def keep(scope: Scope, receive: Receive, send: Send) -> None:
    kept.append((scope, receive, send))
    await answer(send)


@app.route("/drop-in-thread")
async def drop_in_thread(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send)
    await asyncio.to_thread(kept.clear)
    await asyncio.to_thread(gc.collect)


@app.route("/stall")
async def stall(scope: Scope, receive: Receive, send: Send) -> None:
    await start(send)
    Cycle(receive, send)
    while True:
        await body(send, bytes(100_000), more=True)


@app.route("/send-from-thread")
async def send_from_thread(scope: Scope, receive: Receive, send: Send) -> None:
    def call() -> str:
        try:
            send({"type": "http.response.start", "status": 200}).__await__().__next__()
        except BaseException as error:  # noqa: BLE001 whichever it is
            return type(error).__name__
        return "nothing"

    await answer_json(send, await asyncio.to_thread(call))


@app.route("/collect")
async def collect(scope: Scope, receive: Receive, send: Send) -> None:
    kept.clear()
    await asyncio.to_thread(gc.collect)
    await answer(send)
