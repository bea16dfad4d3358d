"""The sockets a server listens on, grouped as the objects of `Server.servers`."""

import socket

from tricorn import sockets
from tricorn.settings import Settings
from tricorn.sockets import Address, Unix


class Listener:
    """The sockets of one address, or one socket that the caller gave; `asyncio.Server`'s surface as far as it is read.

    `address` is None for a socket of the caller's.
    """

    def __init__(self, socks: list[socket.socket], address: Address | None, *, tls: bool) -> None:
        self.sockets = tuple(socks)
        self.address = address
        self.tls = tls
        self._inode = sockets.inode_of(address.path) if isinstance(address, Unix) else None

    def is_serving(self) -> bool:
        return bool(self.sockets)

    def close(self) -> None:
        """Close the sockets, and remove the path of a Unix socket that is still ours. Idempotent."""
        if not self.sockets:
            return
        if isinstance(self.address, Unix):
            sockets.remove_path(self.address.path, self._inode)
        sockets.close_all(list(self.sockets))
        self.sockets = ()


def open_listeners(settings: Settings, given: list[socket.socket] | None, *, tls: bool) -> list[Listener]:
    """Listen on the caller's sockets, or else on every endpoint of the settings. Raises OSError, all or nothing."""
    if given is not None:
        for sock in given:
            sockets.start_listening(sock, settings.backlog)
        return [Listener([sock], None, tls=tls) for sock in given]
    opened: list[Listener] = []
    try:
        for endpoint in settings.endpoints:
            socks = sockets.listen(endpoint.address, settings.backlog)
            opened.append(Listener(socks, endpoint.address, tls=endpoint.tls))
    except OSError:
        for listener in opened:
            listener.close()
        raise
    return opened
