"""Client address and scheme as a trusted proxy reports them."""

import ipaddress
from collections.abc import Callable, Iterable

from tricorn.asgi import Scope

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_SCHEMES = {"http", "https", "ws", "wss"}
_MAX_PORT = 65_535


class TrustedHosts:
    """The peers whose headers are believed: addresses, networks, literal names, or `*` for everyone."""

    def __init__(self, hosts: Iterable[str] | str) -> None:
        names = hosts.split(",") if isinstance(hosts, str) else hosts
        entries = [name.strip() for name in names if name.strip()]
        self.everyone = "*" in entries
        networks = {entry: _network(entry) for entry in entries}
        self.networks: list[Network] = [network for network in networks.values() if network is not None]
        self.literals = {entry for entry, network in networks.items() if network is None}

    def __bool__(self) -> bool:
        return self.everyone or bool(self.networks or self.literals)

    def __contains__(self, host: str | None) -> bool:
        if self.everyone:
            return True
        if not host:
            return False
        address = _address(host)
        if address is None:
            return host in self.literals
        return any(address in network for network in self.networks)

    def client(self, hops: list[str]) -> str:
        """The nearest hop that is not trusted; the farthest one when all are."""
        if self.everyone:
            return hops[0]
        untrusted = (hop for hop in reversed(hops) if split_port(hop)[0] not in self)
        return next(untrusted, hops[0])


def forwarded_hook(trusted: TrustedHosts) -> Callable[[Scope], None] | None:
    """What the core calls for a request with X-Forwarded-For or X-Forwarded-Proto; None if nobody is trusted."""
    if not trusted:
        return None

    def forwarded(scope: Scope) -> None:
        client = scope.get("client")
        if (client[0] if client else None) in trusted:
            _rewrite(scope, trusted)

    return forwarded


def _rewrite(scope: Scope, trusted: TrustedHosts) -> None:
    protocols = _values(scope, b"x-forwarded-proto")
    if protocols and (scheme := protocols[-1].strip()) in _SCHEMES:
        scope["scheme"] = scheme.replace("http", "ws") if scope["type"] == "websocket" else scheme
    lines = _values(scope, b"x-forwarded-for")
    if not lines:
        return
    hops = [hop.strip() for hop in ",".join(lines).split(",")]
    host, port = split_port(trusted.client(hops))
    if host:
        scope["client"] = (host, port)


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def split_port(hop: str) -> tuple[str, int]:
    """Host and port of `host`, `host:port`, `v6`, `[v6]` or `[v6]:port`; port 0 where there is none."""
    if hop.startswith("["):
        host, closed, rest = hop[1:].partition("]")
        if not closed:
            return hop, 0
        return (host, 0) if not rest else _with_port(hop, host, rest.removeprefix(":"))
    host, colon, port = hop.partition(":")
    return _with_port(hop, host, port) if colon else (hop, 0)


def _with_port(hop: str, host: str, port: str) -> tuple[str, int]:
    plain = port.isascii() and port.isdigit() and len(port) <= len(str(_MAX_PORT))
    return (host, int(port)) if plain and int(port) <= _MAX_PORT else (hop, 0)


def _network(text: str) -> Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _address(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
