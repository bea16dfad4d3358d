"""A Starlette application, with what such applications use: middleware, streaming, files, background tasks."""

import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import anyio
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

ran: list[str] = []


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncGenerator[dict[str, str]]:
    yield {"database": "open"}


async def state(request: Request) -> Response:
    return PlainTextResponse(request.state.database)


async def upload(request: Request) -> Response:
    total = 0
    async for piece in request.stream():
        total += len(piece)
    return JSONResponse({"size": total, "query": dict(request.query_params), "client": request.client is not None})


async def form(request: Request) -> Response:
    return JSONResponse(await request.json())


async def events(request: Request) -> Response:
    async def numbers() -> AsyncIterator[str]:
        for number in range(5):
            await anyio.sleep(0.001)
            yield f"data: {number}\n\n"

    return StreamingResponse(numbers(), media_type="text/event-stream")


async def endless(request: Request) -> Response:
    async def zeros() -> AsyncIterator[bytes]:
        try:
            while True:
                yield bytes(65_536)
                await anyio.lowlevel.checkpoint()
        finally:
            ran.append("endless closed")

    return StreamingResponse(zeros())


async def file(request: Request) -> Response:
    return FileResponse(os.environ["FILE"])


async def background(request: Request) -> Response:
    return PlainTextResponse("ok", background=BackgroundTask(ran.append, "background"))


async def what_ran(request: Request) -> Response:
    return JSONResponse(ran)


async def failing(request: Request) -> Response:
    raise RuntimeError("boom")


app = Starlette(
    lifespan=lifespan,
    middleware=[Middleware(GZipMiddleware, minimum_size=1000)],
    routes=[
        Route("/state", state),
        Route("/upload", upload, methods=["POST", "PUT"]),
        Route("/form", form, methods=["POST"]),
        Route("/events", events),
        Route("/endless", endless),
        Route("/file", file),
        Route("/background", background),
        Route("/ran", what_ran),
        Route("/failing", failing),
    ],
)
