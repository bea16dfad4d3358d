"""The handlers of greet.v1.GreetService; they know nothing of the server that runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from examples.greet.gen.greet.v1 import greet_connect
from examples.greet.gen.greet.v1.greet_pb import (
    GreetChatRequest,
    GreetChatResponse,
    GreetCountRequest,
    GreetCountResponse,
    GreetRequest,
    GreetResponse,
    GreetStreamRequest,
    GreetStreamResponse,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from connectrpc.request import RequestContext

DEFAULT_COUNT = 3  # greetings of a stream whose request sets no count


class GreetService(greet_connect.GreetService):
    """Greets people, once for each of the four kinds of call."""

    async def greet(self, request: GreetRequest, _ctx: RequestContext[GreetRequest, GreetResponse], /) -> GreetResponse:
        """Unary: one greeting."""
        return GreetResponse(greeting=f"Hello, {request.name}!")

    async def greet_stream(
        self, request: GreetStreamRequest, _ctx: RequestContext[GreetStreamRequest, GreetStreamResponse], /
    ) -> AsyncIterator[GreetStreamResponse]:
        """Server streaming: numbered greetings."""
        for number in range(1, (request.count or DEFAULT_COUNT) + 1):
            yield GreetStreamResponse(greeting=f"Hello #{number}, {request.name}!")

    async def greet_count(
        self, request: AsyncIterator[GreetCountRequest], _ctx: RequestContext[GreetCountRequest, GreetCountResponse], /
    ) -> GreetCountResponse:
        """Client streaming: how many requests arrived."""
        count = 0
        async for _ in request:
            count += 1
        return GreetCountResponse(count=count)

    async def greet_chat(
        self, request: AsyncIterator[GreetChatRequest], _ctx: RequestContext[GreetChatRequest, GreetChatResponse], /
    ) -> AsyncIterator[GreetChatResponse]:
        """Bidirectional streaming: each request is answered as it arrives."""
        async for message in request:
            yield GreetChatResponse(greeting=f"Hi, {message.name}!")
