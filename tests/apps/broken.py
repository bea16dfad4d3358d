"""Applications that do not come up."""

import asyncio

from tests.apps.tools import Receive, Scope, Send

not_callable = 3


async def startup_fails(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "lifespan.startup.failed", "message": "no database"})


async def startup_raises(scope: Scope, receive: Receive, send: Send) -> None:
    raise RuntimeError("boom at start-up")


async def startup_never_ends(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await asyncio.sleep(1000)


def factory_fails() -> None:
    raise RuntimeError("boom in the factory")
