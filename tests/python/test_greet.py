"""The greet example behind the server, called by connectrpc's own client and by Google's gRPC client."""

import asyncio
import itertools
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from connectrpc.protocol import ProtocolType
from pyqwest import Client, HTTPTransport, HTTPVersion

from examples.greet.client import EXPECTED, conversation
from examples.greet.gen.greet.v1.greet_connect import GreetServiceClient
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
from tests.conftest import Serve
from tests.support.certificates import Certificates
from tests.support.serving import Served, resident

MIB = 1 << 20
SERVICE = "/greet.v1.GreetService/"
WIRES = {"h1": ("http", HTTPVersion.HTTP1), "h2c": ("http", HTTPVersion.HTTP2), "tls h2": ("https", HTTPVersion.HTTP2)}


@pytest.fixture(scope="module")
def server(serve_module: Serve, certs: Certificates) -> Served:
    return serve_module(
        "examples.greet.server:app", access_log=False, bind="127.0.0.1:0", tls_bind="127.0.0.1:0", **certs.options()
    )


@asynccontextmanager
async def greeting(
    server: Served, certs: Certificates, wire: str, protocol: ProtocolType = ProtocolType.CONNECT
) -> AsyncGenerator[GreetServiceClient]:
    scheme, version = WIRES[wire]
    transport = HTTPTransport(http_version=version, tls_ca_cert=certs.ca.read_bytes())
    async with (
        transport,
        GreetServiceClient(server.url_of(scheme), http_client=Client(transport), protocol=protocol) as client,
    ):
        yield client


async def stream_of(messages: Any) -> AsyncIterator[Any]:
    for message in messages:
        yield message


@pytest.mark.parametrize(
    ("wire", "protocol"),
    [
        *((wire, ProtocolType.CONNECT) for wire in WIRES),
        *((wire, ProtocolType.GRPC_WEB) for wire in WIRES),
        ("h2c", ProtocolType.GRPC),
        ("tls h2", ProtocolType.GRPC),
    ],
    ids=str,
)
async def test_four_kinds_of_call(server: Served, certs: Certificates, wire: str, protocol: ProtocolType) -> None:
    async with greeting(server, certs, wire, protocol) as client:
        assert [line async for line in conversation(client)] == EXPECTED


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("wire", WIRES)
async def test_a_thousand_calls_of_each_kind(server: Served, certs: Certificates, wire: str) -> None:
    async with greeting(server, certs, wire) as client:

        async def talk(rounds: int) -> None:
            for _ in range(rounds):
                assert [line async for line in conversation(client)] == EXPECTED

        await asyncio.gather(*(talk(50) for _ in range(20)))


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("wire", ["h2c", "tls h2"])
async def test_large_messages_beside_stalled_streams(server: Served, certs: Certificates, wire: str) -> None:
    """16 unary calls of 2 MiB at once on the connection on which nobody reads four streams."""
    name = "n" * (2 * MIB)
    async with greeting(server, certs, wire) as client:
        stalled = [client.greet_stream(GreetStreamRequest(name=name, count=100)) for _ in range(4)]
        for stream in stalled:
            assert (await anext(stream)).greeting.startswith("Hello #1")
        answers = await asyncio.gather(*(client.greet(GreetRequest(name=name)) for _ in range(16)))
        assert [len(answer.greeting) for answer in answers] == [len(name) + len("Hello, !")] * 16
        assert connections(server, WIRES[wire][0]) == 1
        for stream in stalled:
            assert (await anext(stream)).greeting.startswith("Hello #2")
            await stream.aclose()  # ty: ignore[missing-attribute]


def connections(server: Served, scheme: str) -> int:
    """Established connections of anyone to the server's port."""
    port = int(server.url_of(scheme).rpartition(":")[2])
    table = Path("/proc/net/tcp").read_text()
    return len(re.findall(rf"^ *\d+: 0100007F:{port:04X} \S+ 01 ", table, re.MULTILINE))


@pytest.mark.slow
@pytest.mark.timing
@pytest.mark.timeout(900)
@pytest.mark.parametrize("wire", ["h1", "h2c", "tls h2"])
async def test_very_long_conversation_takes_no_memory(server: Served, certs: Certificates, wire: str) -> None:
    """At most 1,000 messages are under way: a client that lags far behind is not what is measured here."""
    count, warm_up, ahead = 200_000, 20_000, asyncio.Semaphore(1000)

    async def guests() -> AsyncIterator[GreetChatRequest]:
        for number in range(count):
            await ahead.acquire()
            yield GreetChatRequest(name=str(number))

    async with greeting(server, certs, wire) as client:
        before, number = 0, 0
        async for answer in client.greet_chat(guests()):
            assert answer.greeting == f"Hi, {number}!"
            ahead.release()
            number += 1
            if number == warm_up:
                before = resident(server)
        assert number == count
    assert resident(server) - before < 8 * MIB


@pytest.mark.slow
@pytest.mark.timing
@pytest.mark.timeout(300)
@pytest.mark.parametrize("wire", ["h1", "h2c", "tls h2"])
async def test_conversation_with_a_client_that_lags_behind(server: Served, certs: Certificates, wire: str) -> None:
    """Small messages share DATA frames: Rust's h2 hangs up on thousands of tiny ones that wait to be read."""
    count = 50_000
    async with greeting(server, certs, wire) as client:
        guests = (GreetChatRequest(name=str(number)) for number in range(count))
        assert len([answer async for answer in client.greet_chat(stream_of(guests))]) == count


# --- Google's client ---


def channel_of(server: Served, certs: Certificates, scheme: str) -> grpc.Channel:
    address = server.url_of(scheme).partition("://")[2]
    if scheme == "http":
        return grpc.insecure_channel(address)
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(certs.ca.read_bytes()))


def decoder(message: type[Any]) -> Callable[[bytes], Any]:
    return message.from_binary


def encode(message: Any) -> bytes:
    return message.to_binary()


def people(*names: str) -> Iterator[GreetCountRequest]:
    return (GreetCountRequest(name=name) for name in names)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_google_grpc(server: Served, certs: Certificates, scheme: str) -> None:
    with channel_of(server, certs, scheme) as channel:
        greet = channel.unary_unary(SERVICE + "Greet", encode, decoder(GreetResponse))
        greet_stream = channel.unary_stream(SERVICE + "GreetStream", encode, decoder(GreetStreamResponse))
        greet_count = channel.stream_unary(SERVICE + "GreetCount", encode, decoder(GreetCountResponse))
        greet_chat = channel.stream_stream(SERVICE + "GreetChat", encode, decoder(GreetChatResponse))

        assert greet(GreetRequest(name="world")).greeting == "Hello, world!"
        futures = [greet.future(GreetRequest(name="n" * (2 * MIB))) for _ in range(16)]
        assert {len(future.result().greeting) for future in futures} == {2 * MIB + 8}
        numbered = [answer.greeting for answer in greet_stream(GreetStreamRequest(name="streamer", count=1000))]
        assert numbered[-1] == "Hello #1000, streamer!"
        assert greet_count(people("a", "b", "c")).count == 3
        guests = (GreetChatRequest(name=str(number)) for number in range(1000))
        assert [answer.greeting for answer in greet_chat(guests)] == [f"Hi, {number}!" for number in range(1000)]


def test_google_grpc_sees_status_deadline_and_cancellation(server: Served, certs: Certificates) -> None:
    with channel_of(server, certs, "http") as channel:
        unknown = channel.unary_unary(SERVICE + "NoSuchMethod", encode, decoder(GreetResponse))
        with pytest.raises(grpc.RpcError) as failure:
            unknown(GreetRequest(name="x"))
        assert failure.value.code() == grpc.StatusCode.UNIMPLEMENTED  # ty: ignore[missing-attribute]

        greet_chat = channel.stream_stream(SERVICE + "GreetChat", encode, decoder(GreetChatResponse))
        endless = (GreetChatRequest(name=str(number)) for number in itertools.count())
        call = greet_chat(endless)
        assert next(call).greeting == "Hi, 0!"
        call.cancel()
        with pytest.raises(grpc.RpcError) as failure:
            list(call)
        assert failure.value.code() == grpc.StatusCode.CANCELLED  # ty: ignore[missing-attribute]

        greet = channel.unary_unary(SERVICE + "Greet", encode, decoder(GreetResponse))
        assert greet(GreetRequest(name="still there")).greeting == "Hello, still there!"


# --- by hand ---


@pytest.mark.parametrize("over_h2", [False, True], ids=["h1", "h2c"])
def test_json_by_hand(server: Served, *, over_h2: bool) -> None:
    with httpx.Client(base_url=server.url_of("http"), http1=not over_h2, http2=over_h2) as client:
        answer = client.post(SERVICE + "Greet", json={"name": "world"})
        assert (answer.status_code, answer.json()) == (200, {"greeting": "Hello, world!"})
        assert answer.headers["content-type"] == "application/json"
        refused = client.post(SERVICE + "Greet", content=b"{", headers={"content-type": "application/json"})
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid_argument")
        assert client.post("/no.such.Service/Method", json={}).status_code == 404
