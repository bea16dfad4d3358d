"""What a running server counts."""

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tricorn import _core
    from tricorn.config import Config


class ServerState:
    """Counters that others read. The connections and tasks themselves live in the core."""

    def __init__(self) -> None:
        self.core: _core.Server | None = None
        self.default_headers: list[tuple[bytes, bytes]] = []

    @property
    def total_requests(self) -> int:
        return self.core.total_requests if self.core else 0

    @property
    def connections(self) -> Sequence[object]:
        """One item for each connection."""
        return range(self.core.connections if self.core else 0)

    @property
    def tasks(self) -> Sequence[object]:
        """One item for each request in flight."""
        return range(self.core.requests if self.core else 0)


def limit_with_jitter(config: "Config") -> int | None:
    """The limit of requests of this process; the jitter keeps several from ending together."""
    if config.limit_max_requests is None:
        return None
    return config.limit_max_requests + random.randint(0, config.limit_max_requests_jitter)  # noqa: S311 nothing secret
