"""Calls all four methods of the greet example, over HTTP/1.1 and over HTTP/2 with TLS, with connectrpc's own client.

`python -m examples.greet.client` needs both servers: examples.greet.server and examples.greet.server_h2.
It exits with 1 when a server is not there, a call fails, or the answers are not the expected ones.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TypeVar

if not __package__:  # run as a file: imports start at the project root, not in this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from connectrpc.errors import ConnectError
from pyqwest import Client, HTTPTransport, HTTPVersion

from examples.greet.gen.greet.v1.greet_connect import GreetServiceClient
from examples.greet.gen.greet.v1.greet_pb import (
    GreetChatRequest,
    GreetCountRequest,
    GreetRequest,
    GreetStreamRequest,
)

T = TypeVar("T")

CA = Path(__file__).resolve().parents[2] / "certs/ca.pem"
TIMEOUT_MS = 10_000  # for each call
EXPECTED = [
    "Hello, world!",
    "Hello #1, streamer!",
    "Hello #2, streamer!",
    "Hello #3, streamer!",
    "server counted 3 requests",
    "Hi, alice!",
    "Hi, bob!",
]


async def stream(messages: Sequence[T]) -> AsyncIterator[T]:
    """The messages as the client wants a stream of requests."""
    for message in messages:
        yield message


async def conversation(greet: GreetServiceClient) -> AsyncIterator[str]:
    """One call of each kind: a line for each answer, as it arrives."""
    response = await greet.greet(GreetRequest(name="world"))
    yield response.greeting

    async for numbered in greet.greet_stream(GreetStreamRequest(name="streamer", count=3)):
        yield numbered.greeting

    people = [GreetCountRequest(name=name) for name in ("alice", "bob", "carol")]
    counted = await greet.greet_count(stream(people))
    yield f"server counted {counted.count} requests"

    guests = [GreetChatRequest(name=name) for name in ("alice", "bob")]
    async for answer in greet.greet_chat(stream(guests)):
        yield answer.greeting


async def call_all(url: str, version: HTTPVersion, ca: bytes) -> bool:
    """Runs the conversation with one server and prints it; true when every answer was the expected one."""
    print(f"[client] {url} over {version}", flush=True)
    lines = []
    try:
        async with (
            HTTPTransport(http_version=version, tls_ca_cert=ca) as transport,
            GreetServiceClient(url, timeout_ms=TIMEOUT_MS, http_client=Client(transport)) as greet,
        ):
            async for line in conversation(greet):
                print(f"[client] {line}", flush=True)
                lines.append(line)
    except ConnectError as error:
        hint = " (is its server running?)" if "Connection refused" in error.message else ""
        print(f"[client] {url} failed: {error.code.value}: {error.message}{hint}", file=sys.stderr)
        return False
    if lines != EXPECTED:
        print(f"[client] {url} failed: expected {EXPECTED}", file=sys.stderr)
    return lines == EXPECTED


async def main() -> int:
    """Calls both servers; gives the exit status."""
    parser = argparse.ArgumentParser(description="Calls all four methods of the greet example.")
    parser.add_argument("--h1", metavar="URL", default="http://127.0.0.1:8080", help="called over HTTP/1.1")
    parser.add_argument("--h2", metavar="URL", default="https://127.0.0.1:8443", help="called over HTTP/2")
    parser.add_argument("--ca", metavar="FILE", type=Path, default=CA, help="what TLS trusts")
    args = parser.parse_args()
    if not args.ca.exists():
        print(f"[client] {args.ca} is missing: run certs/make_certs.sh", file=sys.stderr)
        return 1
    ca = args.ca.read_bytes()
    results = [
        await call_all(args.h1, HTTPVersion.HTTP1, ca),
        await call_all(args.h2, HTTPVersion.HTTP2, ca),
    ]
    return 0 if all(results) else 1


if __name__ == "__main__":
    status = asyncio.run(main())
    sys.stdout.flush()
    # Not sys.exit: a thread of pyqwest 0.12 that still reports to the closed loop while Python before 3.14 shuts down
    # aborts the process, in about one run of ten.
    os._exit(status)
