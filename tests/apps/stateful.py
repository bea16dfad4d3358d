"""Leaves something in the lifespan state, and shows what a request finds of it."""

from tests.apps.tools import Receive, Scope, Send, answer


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await receive()
        scope["state"]["calls"] = [1]
        scope["state"]["names"] = ["database"]
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    state = scope["state"]
    assert "mine" not in state
    state["mine"] = True
    calls = state["calls"][0]
    state["calls"][0] += 1
    await answer(send, f"{calls} {state['names']}".encode())
