"""What is measured: an application, the requests that it gets, and the answers that it must give."""

import random
import string
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx

from bench.servers import HOST, BenchError
from examples.greet.gen.greet.v1.greet_pb import GreetRequest, GreetResponse

BODIES = 64  # different ones, in rotation
NAME_BYTES = 1024
CHECK_SECONDS = 10
CHECK_HEADERS = ("content-type",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The most CPU a request that tricorn may use, as a share of a peer's."""

    peer: str
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One table of the report."""

    name: str
    title: str
    app: str
    protocol: str  # h1: wrk, 64 connections; h2c: h2load, one connection, 64 streams
    path: str
    answer: Callable[[bytes], bytes]  # the body of the right answer to a body
    method: str = "GET"
    content_type: str = ""
    bodies: tuple[bytes, ...] = ()
    target: Target | None = None
    in_flight: int = field(default=64)


def greet_bodies() -> tuple[bytes, ...]:
    """Requests with names of 1 KiB, the same ones in each run."""
    letters = random.Random(3)
    names = ("".join(letters.choices(string.ascii_letters, k=NAME_BYTES)) for _ in range(BODIES))
    return tuple(GreetRequest(name=name).to_binary() for name in names)


def greeting(body: bytes) -> bytes:
    """The binary GreetResponse to a binary GreetRequest."""
    return GreetResponse(greeting=f"Hello, {GreetRequest.from_binary(body).name}!").to_binary()


def greet(protocol: str, title: str, target: Target | None = None) -> Scenario:
    """Unary Greet through connectrpc's own ASGI application."""
    return Scenario(
        name=f"greet-{protocol}",
        title=f"connectrpc unary Greet, 1 KiB name, {title}",
        app="examples.greet.server:app",
        protocol=protocol,
        path="/greet.v1.GreetService/Greet",
        answer=greeting,
        method="POST",
        content_type="application/proto",
        bodies=greet_bodies(),
        target=target,
    )


SCENARIOS = (
    greet("h1", "HTTP/1.1, 64 connections (wrk)", Target(peer="granian", ratio=0.85)),
    greet("h2c", "HTTP/2 in cleartext, 64 streams on one connection (h2load)", Target(peer="granian", ratio=0.85)),
    Scenario(
        name="hello-h1",
        title="hello-world ASGI, HTTP/1.1, 64 connections (wrk)",
        app="bench.apps.hello:app",
        protocol="h1",
        path="/",
        answer=lambda _body: b"Hello, world!",
        target=Target(peer="granian", ratio=0.7),
    ),
)


def check(scenario: Scenario, port: int) -> None:
    """Sends each body once and compares the answers."""
    h2 = scenario.protocol == "h2c"
    headers = {"content-type": scenario.content_type} if scenario.content_type else {}
    url = f"http://{HOST}:{port}{scenario.path}"
    with httpx.Client(http1=not h2, http2=h2, timeout=CHECK_SECONDS, trust_env=False) as client:
        for body in scenario.bodies or (b"",):
            try:
                response = client.request(scenario.method, url, content=body or None, headers=headers)
            except httpx.HTTPError as error:
                raise BenchError(f"check: {type(error).__name__}: {error}") from error
            expected = "HTTP/2" if h2 else "HTTP/1.1"
            if response.http_version != expected:
                raise BenchError(f"check: answered in {response.http_version}, not {expected}")
            if response.status_code != httpx.codes.OK or response.content != scenario.answer(body):
                raise BenchError(f"check: wrong answer: {response.status_code} {response.content[:60]!r}")
