"""The same application under three servers: the same scope, events and octets, but for a table of differences."""

import fnmatch
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import Serve
from tests.parity.differences import DIFFERENCES, Difference
from tests.parity.observe import Observation, observe, observe_http2
from tests.support import serving
from tests.support.serving import Served

Observed = dict[str, Observation]
PEERS: dict[str, dict[str, Any]] = {
    "uvicorn": {"command": ("-m", "uvicorn"), "app_errors": True},
    "hypercorn": {"command": ("-m", "hypercorn"), "workers": 0, "bind": "127.0.0.1:0", "app_errors": True},
}
ABSENT = "absent"
PORTS = ("server", "client")  # keys whose values hold a port


@pytest.fixture(scope="module")
def ours(serve_module: Serve) -> Observed:
    server = serve_module("parity", command=("-m", "tricorn"), app_errors=True)
    return dict(observe(server)) | dict(observe_http2(server))


@pytest.fixture(scope="module", params=PEERS)
def peer(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def theirs(peer: str, tmp_path_factory: pytest.TempPathFactory) -> Observed:
    """Not checked on how it ends: that is the peer's affair."""
    server = serving.start("parity", tmp_path_factory.mktemp(peer), **PEERS[peer])
    try:
        serving.wait_until_started(server)
        return observations(peer, server)
    finally:
        server.kill()


def observations(peer: str, server: Served) -> Observed:
    found = dict(observe(server))
    return found | dict(observe_http2(server)) if peer == "hypercorn" else found


def differences(ours: Observed, theirs: Observed) -> Iterator[tuple[str, str, str, str]]:
    """Case, key, our value, their value."""
    for case, observed in theirs.items():
        for key in sorted(observed.keys() | ours[case].keys()):
            mine, other = ours[case].get(key, ABSENT), observed.get(key, ABSENT)
            if key.partition(".")[0] in PORTS and ABSENT not in (mine, other):
                mine, other = without_port(mine), without_port(other)
            if mine != other:
                yield case, key, mine, other


def without_port(address: str) -> str:
    return re.sub(r", \d+", ", PORT", address)


def matches(row: Difference, peer: str, found: tuple[str, str, str, str]) -> bool:
    patterns = (row.case, row.key, row.ours, row.theirs)
    return peer in row.peers and all(map(fnmatch.fnmatchcase, found, map(literal_brackets, patterns)))


def literal_brackets(pattern: str) -> str:
    return pattern.replace("[", "[[]")


def test_every_difference_is_intended(peer: str, ours: Observed, theirs: Observed) -> None:
    unexpected = [
        f"{case} / {key}: ours {mine!r}, {peer}'s {other!r}"
        for case, key, mine, other in differences(ours, theirs)
        if not any(matches(row, peer, (case, key, mine, other)) for row in DIFFERENCES)
    ]
    assert not unexpected, "\n".join(unexpected)


def test_every_intended_difference_is_there(peer: str, ours: Observed, theirs: Observed) -> None:
    found = list(differences(ours, theirs))
    idle = [row for row in DIFFERENCES if peer in row.peers and not any(matches(row, peer, one) for one in found)]
    assert not idle
