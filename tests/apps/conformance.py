"""What h2spec needs: an answer with a body to every request, whatever its body was."""

from tests.apps.tools import Receive, Scope, Send, answer, lifespan, read_body


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        return await lifespan(scope, receive, send)
    await read_body(receive)
    return await answer(send, b"hello, world\n" * 8, headers=[(b"content-type", b"text/plain")])
