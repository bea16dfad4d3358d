"""Does, message by message, what the request's `steps` say: a way to send any message in any order."""

import asyncio
import json
from typing import Any

from tests.apps.tools import App, Receive, Scope, Send, answer, plain, query

app = App()


class Odd(BaseException):
    """Neither an Exception nor one of Python's own."""


@app.route("/")
async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, b"Hello, world!")


@app.route("/script")
async def script(scope: Scope, receive: Receive, send: Send) -> object:
    result: object = None
    for step in json.loads(query(scope)["steps"]):
        match step:
            case {"receive": times}:
                for _ in range(times):
                    app.note(scope, plain(dict(await receive())))
            case {"raise": text}:
                raise ValueError(text)
            case {"raise_odd": text}:
                raise Odd(text)
            case {"cancel": _}:
                raise asyncio.CancelledError
            case {"sleep": seconds}:
                await asyncio.sleep(seconds)
            case {"return": result}:
                pass
            case {"send": message, "catch": caught}:
                await send_message(scope, send, message, caught=caught)
    return result


async def send_message(scope: Scope, send: Send, message: dict[str, Any], *, caught: bool) -> None:
    try:
        await send({key: octets(value) for key, value in message.items()})
    except BaseException as error:
        app.note(scope, f"{type(error).__name__}: {error}")
        if not caught:
            raise
    else:
        app.note(scope, "sent")


def octets(value: Any) -> Any:
    """`b:...` as octets, a list of pairs as a list of tuples; everything else as it is."""
    if isinstance(value, str) and value.startswith("b:"):
        return value[2:].encode("latin-1")
    if isinstance(value, list):
        return [tuple(octets(one) for one in pair) if isinstance(pair, list) else octets(pair) for pair in value]
    return value
