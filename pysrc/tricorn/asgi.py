"""The ASGI types, and which of its two calling conventions an application follows."""

import inspect
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Literal

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]
Interface = Literal["asgi3", "asgi2"]


def takes(callee: Callable[..., object], count: int) -> bool:
    """Whether the callable can be called with that many positional arguments."""
    try:
        inspect.signature(callee).bind(*range(count))
    except (TypeError, ValueError):
        return False
    return True


def interface_of(app: Callable[..., Any]) -> Interface:
    """asgi2 for what takes only a scope, asgi3 for everything else."""
    return "asgi2" if takes(app, 1) and not takes(app, 3) else "asgi3"


class ASGI2Adapter:
    """An ASGI 2 application, callable as an ASGI 3 one."""

    def __init__(self, app: Callable[[Scope], Callable[[Receive, Send], Awaitable[None]]]) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["asgi"] = {**scope["asgi"], "version": "2.0"}
        await self.app(scope)(receive, send)
