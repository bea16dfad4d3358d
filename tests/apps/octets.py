"""Bodies of every type that ASGI allows."""

from tests.apps.tools import App, Receive, Scope, Send

app = App()
KINDS = {"/bytes": bytes, "/bytearray": bytearray, "/memoryview": memoryview}


async def octets(scope: Scope, receive: Receive, send: Send) -> None:
    """The buffer that was sent is changed at once: the server must have kept its content."""
    await send({"type": "http.response.start", "status": 200})
    make = KINDS.get(scope["path"])
    if make is None:
        await send({"type": "http.response.body"})
        return
    storage = bytearray(b"octets ")
    await send({"type": "http.response.body", "body": make(storage), "more_body": True})
    storage[:] = b"changed"
    await send({"type": "http.response.body", "body": make(b"octets")})


for path in (*KINDS, "/empty"):
    app.handlers[path] = octets
