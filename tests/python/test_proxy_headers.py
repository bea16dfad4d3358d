"""Client and scheme that a proxy reports: who is believed, and what odd values do."""

from typing import Any

import pytest

from tricorn.proxy_headers import TrustedHosts, forwarded_hook, split_port

PROXY = ("127.0.0.1", 5)


def rewritten(
    headers: list[tuple[str, str]],
    *,
    trusted: str = "127.0.0.1,::1",
    client: tuple[str, int] | None = PROXY,
    kind: str = "http",
) -> tuple[Any, str]:
    lines = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    scheme = "http" if kind == "http" else "ws"
    scope: dict[str, Any] = {"type": kind, "client": client, "scheme": scheme, "headers": lines}
    hook = forwarded_hook(TrustedHosts(trusted))
    assert hook is not None
    hook(scope)
    return scope["client"], scope["scheme"]


@pytest.mark.parametrize(
    ("value", "client"),
    [
        ("203.0.113.7", ("203.0.113.7", 0)),
        ("203.0.113.7:1024", ("203.0.113.7", 1024)),
        ("2001:db8::1", ("2001:db8::1", 0)),
        ("[2001:db8::1]", ("2001:db8::1", 0)),
        ("[2001:db8::1]:443", ("2001:db8::1", 443)),
        ("198.51.100.1, 203.0.113.7, 127.0.0.1", ("203.0.113.7", 0)),
        ("198.51.100.1, 203.0.113.7, 127.0.0.1:80, [::1]:9", ("203.0.113.7", 0)),
        ("::1, 127.0.0.1", ("::1", 0)),
        ("", PROXY),
        (" , ,", PROXY),
        ("unknown", ("unknown", 0)),
        ("_hidden", ("_hidden", 0)),
        ("999.1.1.1", ("999.1.1.1", 0)),
        ("[::1", ("[::1", 0)),
        ("1.2.3.4:x", ("1.2.3.4:x", 0)),
        ("1.2.3.4:99999", ("1.2.3.4:99999", 0)),
        ("1.2.3.4:" + "9" * 5000, ("1.2.3.4:" + "9" * 5000, 0)),
        ("\xff\xfe", ("\xff\xfe", 0)),
        ("a" * 3000, ("a" * 3000, 0)),
    ],
)
def test_the_nearest_untrusted_hop_is_the_client(value: str, client: tuple[str, int]) -> None:
    assert rewritten([("x-forwarded-for", value)]) == (client, "http")


def test_several_lines_are_one_list() -> None:
    lines = [("x-forwarded-for", "203.0.113.7"), ("x-forwarded-for", "127.0.0.1")]
    assert rewritten(lines)[0] == ("203.0.113.7", 0)


def test_a_peer_that_is_not_trusted_changes_nothing() -> None:
    headers = [("x-forwarded-for", "1.1.1.1"), ("x-forwarded-proto", "https")]
    assert rewritten(headers, client=("192.0.2.1", 7)) == (("192.0.2.1", 7), "http")
    assert rewritten(headers, client=None) == (None, "http")


def test_a_star_believes_everyone_and_takes_the_farthest_hop() -> None:
    assert rewritten([("x-forwarded-for", "1.1.1.1, 2.2.2.2")], trusted="*", client=None)[0] == ("1.1.1.1", 0)


def test_networks_literals_and_mapped_addresses_are_trusted() -> None:
    hops = [("x-forwarded-for", "1.1.1.1, 10.2.2.2")]
    assert rewritten(hops, trusted="10.0.0.0/8", client=("10.9.9.9", 1))[0] == ("1.1.1.1", 0)
    assert rewritten(hops, trusted="gateway,10.2.2.2", client=("gateway", 1))[0] == ("1.1.1.1", 0)
    assert rewritten(hops, trusted="10.0.0.0/8", client=("::ffff:10.9.9.9", 1))[0] == ("1.1.1.1", 0)


@pytest.mark.parametrize(
    ("value", "kind", "scheme"),
    [
        ("https", "http", "https"),
        (" https ", "http", "https"),
        ("wss", "http", "wss"),
        ("HTTPS", "http", "http"),
        ("https, http", "http", "http"),
        ("gopher", "http", "http"),
        ("https", "websocket", "wss"),
        ("http", "websocket", "ws"),
    ],
)
def test_only_known_schemes_are_taken(value: str, kind: str, scheme: str) -> None:
    assert rewritten([("x-forwarded-proto", value)], kind=kind) == (PROXY, scheme)


def test_no_hook_where_nobody_is_trusted() -> None:
    assert forwarded_hook(TrustedHosts("")) is None
    assert forwarded_hook(TrustedHosts([])) is None


def test_a_port_is_split_off_once() -> None:
    assert split_port("host:80") == ("host", 80)
    assert split_port("[::1]80") == ("::1", 80)
