"""Input and output of every kind that asyncio has, one function each."""

import asyncio
import contextvars
import os
import signal
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.apps.feature import feature


@feature
async def readers_and_writers() -> None:
    loop = asyncio.get_running_loop()
    left, right = socket.socketpair()
    left.setblocking(False)
    right.setblocking(False)
    with left, right:
        writable, readable = asyncio.Event(), asyncio.Event()
        loop.add_writer(left, writable.set)
        await writable.wait()
        loop.remove_writer(left)
        assert not loop.remove_writer(left)
        loop.add_reader(right, readable.set)
        left.send(b"x")
        await readable.wait()
        assert right.recv(10) == b"x"
        both: list[str] = []
        loop.add_writer(right, both.append, "w")
        left.send(b"y")
        async with asyncio.timeout(30):
            while "w" not in both:  # noqa: ASYNC110 the writer is called over and over
                await asyncio.sleep(0)
        assert right.recv(1) == b"y"
        loop.remove_reader(right)
        loop.remove_writer(right)


@feature
async def descriptor_closed_while_registered() -> None:
    loop = asyncio.get_running_loop()
    for _ in range(3):
        left, right = socket.socketpair()
        left.setblocking(False)
        loop.add_reader(left, lambda: None)
        number = left.fileno()
        left.close()
        right.close()
        await asyncio.sleep(0.01)
        loop.remove_reader(number)
    await asyncio.sleep(0)


@feature
async def descriptor_number_used_again() -> None:
    """A closed socket was never removed, and a new one has its number."""
    loop = asyncio.get_running_loop()
    old, other = socket.socketpair()
    old.setblocking(False)
    loop.add_reader(old, lambda: None)
    number = old.fileno()
    old.close()
    other.close()
    left, right = socket.socketpair()
    left.setblocking(False)
    if left.fileno() != number:
        os.dup2(left.fileno(), number)
        left.close()
        left = socket.socket(fileno=number)
        left.setblocking(False)
    with left, right:
        readable = asyncio.Event()
        loop.remove_reader(number)
        loop.add_reader(left, readable.set)
        right.send(b"x")
        async with asyncio.timeout(30):
            await readable.wait()
        loop.remove_reader(left)


@feature
async def blocking_stdin_stays_blocking() -> None:
    loop = asyncio.get_running_loop()
    arrived: asyncio.Future[bytes] = loop.create_future()
    assert os.get_blocking(0)
    loop.add_reader(0, lambda: arrived.done() or arrived.set_result(os.read(0, 100)))
    try:
        assert await arrived == b"typed\n"
        assert os.get_blocking(0)
    finally:
        loop.remove_reader(0)


@feature
async def streams_and_servers() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.close()

    data = os.urandom(3_000_000)
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())

        async def write() -> None:
            writer.write(data)
            await writer.drain()
            writer.write_eof()

        _, back = await asyncio.gather(write(), reader.read(-1))
        assert back == data
        writer.close()
        await writer.wait_closed()


@feature
async def unix_streams(folder: str = "/tmp") -> None:
    path = Path(folder) / f"tricorn-features-{os.getpid()}"

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hi")
        writer.close()

    server = await asyncio.start_unix_server(greet, path)
    async with server:
        reader, writer = await asyncio.open_unix_connection(path)
        assert await reader.read() == b"hi"
        writer.close()
        await writer.wait_closed()
    path.unlink(missing_ok=True)


@feature
async def datagrams() -> None:
    loop = asyncio.get_running_loop()
    arrived: asyncio.Future[bytes] = loop.create_future()

    class Protocol(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, addr: object) -> None:  # noqa: ARG002
            arrived.set_result(data)

    transport, _ = await loop.create_datagram_endpoint(Protocol, local_addr=("127.0.0.1", 0))
    sender, _ = await loop.create_datagram_endpoint(
        asyncio.DatagramProtocol, remote_addr=transport.get_extra_info("sockname")
    )
    sender.sendto(b"datagram")
    assert await arrived == b"datagram"
    sender.close()
    transport.close()


@feature
async def low_level_sockets() -> None:
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as client:
        listening.setblocking(False)
        client.setblocking(False)
        accepting = asyncio.ensure_future(loop.sock_accept(listening))
        await loop.sock_connect(client, listening.getsockname())
        served, _ = await accepting
        with served:
            data = bytes(1_000_000)
            sending = asyncio.ensure_future(loop.sock_sendall(client, data))
            total = 0
            while total < len(data):
                total += len(await loop.sock_recv(served, 65_536))
            await sending


@feature
async def pipes() -> None:
    loop = asyncio.get_running_loop()
    read, write = os.pipe()
    reader = asyncio.StreamReader()
    source, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read, "rb"))
    sink, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(write, "wb"))
    sink.write(b"through the pipe")
    sink.close()
    assert await reader.read() == b"through the pipe"
    source.close()


@feature
async def threads() -> None:
    assert await asyncio.to_thread(time.sleep, 0.01) is None
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("seen")
    assert await asyncio.to_thread(variable.get) == "seen"
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(4) as pool:
        squares = [loop.run_in_executor(pool, pow, number, 2) for number in range(100)]
        assert await asyncio.gather(*squares) == [number * number for number in range(100)]
        woken = asyncio.Event()
        pool.submit(loop.call_soon_threadsafe, woken.set)
        await woken.wait()


@feature
async def subprocesses() -> None:
    pipe = asyncio.subprocess.PIPE
    cat = await asyncio.create_subprocess_exec("cat", stdin=pipe, stdout=pipe)
    data = os.urandom(500_000)
    assert (await cat.communicate(data))[0] == data
    shell = await asyncio.create_subprocess_shell("echo out; echo err >&2; exit 3", stdout=pipe, stderr=pipe)
    assert await shell.communicate() == (b"out\n", b"err\n")
    assert shell.returncode == 3
    sleeper = await asyncio.create_subprocess_exec("sleep", "1000")
    sleeper.terminate()
    assert await sleeper.wait() == -signal.SIGTERM
    many = [asyncio.create_subprocess_exec("true") for _ in range(10)]
    assert [await process.wait() for process in await asyncio.gather(*many)] == [0] * 10


@feature
async def signal_handlers_come_and_go() -> None:
    """The server's own signals work on afterwards: the test stops it with one."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGUSR1, signal.SIGHUP):
        arrived = asyncio.Event()
        loop.add_signal_handler(number, arrived.set)
        os.kill(os.getpid(), number)
        async with asyncio.timeout(30):
            await arrived.wait()
        assert loop.remove_signal_handler(number)
    woken = asyncio.Event()
    previous = signal.signal(signal.SIGUSR2, lambda *_: woken.set())
    os.kill(os.getpid(), signal.SIGUSR2)
    async with asyncio.timeout(30):
        await woken.wait()
    signal.signal(signal.SIGUSR2, previous)


@feature
async def tls_clients_and_servers() -> None:
    folder = Path(os.environ["CERTS"])
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(folder / "server.pem", folder / "server.key")
    trusting = ssl.create_default_context(cafile=folder / "ca.pem")

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=serving)
    async with server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("localhost", port, ssl=trusting)
        writer.write(b"secret\n")
        assert await reader.read() == b"secret\n"
        writer.close()


@feature
async def names_are_resolved() -> None:
    found = await asyncio.get_running_loop().getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)
    assert any(address[4][0] in ("127.0.0.1", "::1") for address in found)


@feature
async def the_server_can_call_itself() -> None:
    """An application's own client on the same loop and the same port."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(os.environ["PORT"]))
    writer.write(b"GET /timeouts_and_cancellation HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
    assert (await reader.read()).startswith(b"HTTP/1.1 200 OK")
    writer.close()
    await writer.wait_closed()
