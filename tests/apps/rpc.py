"""The greet service with a handler for everything that the native and the ASGI path must answer alike.

The name asked for says what happens.
"""
# ruff: noqa: ARG002 every handler is given the same

import asyncio
from http import HTTPStatus
from typing import Any

from connectrpc._protocol import HTTPError
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from connectrpc.request import RequestContext

from examples.greet.gen.greet.v1.greet_connect import GreetService, GreetServiceASGIApplication
from examples.greet.gen.greet.v1.greet_pb import GreetRequest, GreetResponse

READ_MAX = 20_000


class Service(GreetService):
    """Only the unary method."""

    def __init__(self) -> None:
        self.kept: RequestContext | None = None
        self.last = "nothing"

    def greet(self, request: GreetRequest, ctx: RequestContext) -> Any:
        what, _, argument = request.name.partition(":")
        if what == "raise_at_once":
            raise ValueError("not even a coroutine")
        if what == "not_awaitable":
            return GreetResponse(greeting="not awaited")
        return getattr(self, f"do_{what}", self.do_greet)(argument, ctx)

    async def do_greet(self, argument: str, ctx: RequestContext) -> GreetResponse:
        return GreetResponse(greeting=f"Hello, {argument}!")

    async def do_reenter(self, argument: str, ctx: RequestContext) -> GreetResponse:
        task = asyncio.current_task()
        assert task is not None
        coroutine: Any = task.get_coro()
        given = {"close": (), "send": (None,), "throw": (ValueError(),)}[argument]
        getattr(coroutine, argument)(*given)
        return GreetResponse(greeting="not reached")

    async def do_fill(self, argument: str, ctx: RequestContext) -> GreetResponse:
        return GreetResponse(greeting="g" * int(argument))

    async def do_later(self, argument: str, ctx: RequestContext) -> GreetResponse:
        await asyncio.sleep(float(argument))
        return GreetResponse(greeting="later")

    async def do_sleep(self, argument: str, ctx: RequestContext) -> GreetResponse:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            self.last = f"{argument} cleaned up"
            raise
        return GreetResponse(greeting="slept")

    async def do_stubborn(self, argument: str, ctx: RequestContext) -> GreetResponse:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return GreetResponse(greeting="anyway")
        return GreetResponse(greeting="slept")

    async def do_changed(self, argument: str, ctx: RequestContext) -> GreetResponse:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ConnectError(Code.ABORTED, "another") from None
        return GreetResponse(greeting="slept")

    async def do_cancel(self, argument: str, ctx: RequestContext) -> GreetResponse:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(60)
        return GreetResponse(greeting="slept")

    async def do_interrupt(self, argument: str, ctx: RequestContext) -> GreetResponse:
        class Interruption(BaseException):
            pass

        raise Interruption("stop")

    async def do_error(self, argument: str, ctx: RequestContext) -> GreetResponse:
        ctx.response_headers["x-given"] = "1"
        ctx.response_trailers["x-after"] = "2"
        details = [GreetRequest(name="detail")] if argument == "details" else ()
        raise ConnectError(Code.FAILED_PRECONDITION, 'not "now" \N{SNOWMAN}\n%', details)

    async def do_code(self, argument: str, ctx: RequestContext) -> GreetResponse:
        raise ConnectError(Code(argument), "")

    async def do_bug(self, argument: str, ctx: RequestContext) -> GreetResponse:
        raise ValueError("a bug")

    async def do_timeout_error(self, argument: str, ctx: RequestContext) -> GreetResponse:
        raise TimeoutError("its own")

    async def do_http_error(self, argument: str, ctx: RequestContext) -> GreetResponse:
        ctx.response_headers["x-given"] = "1"
        raise HTTPError(HTTPStatus.GONE, [("x-http", "error")])

    async def do_metadata(self, argument: str, ctx: RequestContext) -> GreetResponse:
        ctx.response_headers["x-one"] = "1"
        ctx.response_headers.add("X-Two", "a")
        ctx.response_headers.add("x-two", "b")
        ctx.response_trailers["x-after"] = "3"
        ctx.response_trailers.add("grpc-status", "7")
        return GreetResponse(greeting="metadata")

    async def do_bad_header(self, argument: str, ctx: RequestContext) -> GreetResponse:
        ctx.response_headers["x-bad"] = "a\r\nb: c"
        return GreetResponse(greeting="bad")

    async def do_length(self, argument: str, ctx: RequestContext) -> GreetResponse:
        ctx.response_headers["content-length"] = argument
        return GreetResponse(greeting="wrong")

    async def do_not_a_message(self, argument: str, ctx: RequestContext) -> Any:
        return object()

    async def do_context(self, argument: str, ctx: RequestContext) -> GreetResponse:
        return GreetResponse(greeting=described(ctx))

    async def do_keep(self, argument: str, ctx: RequestContext) -> GreetResponse:
        self.kept = ctx
        return GreetResponse(greeting="kept")

    async def do_kept(self, argument: str, ctx: RequestContext) -> GreetResponse:
        assert self.kept is not None
        return GreetResponse(greeting=described(self.kept))

    async def do_last(self, argument: str, ctx: RequestContext) -> GreetResponse:
        return GreetResponse(greeting=self.last)

    async def do_task(self, argument: str, ctx: RequestContext) -> GreetResponse:
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0))
        assert asyncio.current_task() is not None
        return GreetResponse(greeting="task")


def described(ctx: RequestContext) -> str:
    """All that a context says, but for the client's port."""
    host, _, port = (ctx.client_address or "").rpartition(":")
    limit = ctx.timeout_ms
    assert limit is None or 0 < limit <= 30_000
    told = sorted(ctx.request_headers.allitems())
    kept = [item for item in told if item[0] in ("host", "content-type", "x-probe")]
    address = (ctx.server_address or "").rpartition(":")[0]
    return f"{ctx.method.name} {ctx.http_method} {kept} {address} {host} {port.isdigit()} {limit is not None}"


service = Service()
app = GreetServiceASGIApplication(service, read_max_bytes=READ_MAX)
