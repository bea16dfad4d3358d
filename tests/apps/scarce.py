"""Takes every file descriptor that the process may have, and after a while gives them back."""

import asyncio
import contextlib
import os
import resource

from tests.apps.tools import App, Receive, Scope, Send, answer, body, start

app = App()


@app.route("/")
async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send)


@app.route("/take")
async def take(scope: Scope, receive: Receive, send: Send) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
    taken: list[int] = []
    with contextlib.suppress(OSError):
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    await start(send, headers=[(b"connection", b"close")])
    await asyncio.sleep(0.5)
    for number in taken:
        os.close(number)
    await body(send)
