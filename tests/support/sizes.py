"""Very large bodies, and the memory that a server may take for them."""

import contextlib
from collections.abc import Generator

from tests.support.raw import Raw
from tests.support.serving import Served, forget_peak, resident

MIB = 1 << 20
LARGE = 256 * MIB
GROWTH = 48 * MIB  # what a server may take for one large body; far less than the body


@contextlib.contextmanager
def bounded_memory(server: Served) -> Generator[None]:
    forget_peak(server)
    before = resident(server)
    yield
    assert resident(server, "VmHWM") - before < GROWTH


def swallow(client: Raw, size: int) -> int:
    """Reads so much without keeping it."""
    total = len(client.buffer)
    client.buffer = b""
    while total < size and (part := client.sock.recv(MIB)):
        total += len(part)
    return total
