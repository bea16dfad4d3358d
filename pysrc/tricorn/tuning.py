"""The options that tricorn has beyond uvicorn's: listeners, protocols, limits and deadlines."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(kw_only=True, eq=False, repr=False)
class Tuning:
    """Times in seconds, sizes in octets. A time or a size of 0 (or None) switches that limit off."""

    bind: Sequence[str] | str = ()
    tls_bind: Sequence[str] | str = ()
    protocols: Sequence[str] | str = "h1,h2"
    rpc: str = "auto"
    ssl_min_version: str = "TLSv1.2"

    timeout_startup: float | None = 60.0
    timeout_first_byte: float | None = 10.0
    timeout_request_header: float | None = 30.0
    timeout_request_body: float | None = 60.0
    timeout_write: float | None = 60.0
    timeout_tls_handshake: float | None = 10.0
    timeout_h2_idle: float | None = 60.0
    timeout_h2_settings: float | None = 10.0
    min_body_rate: int = 240

    limit_connections: int | None = None
    limit_request_line: int = 16_384
    limit_header_size: int = 65_536
    limit_header_count: int = 100
    limit_chunk_ext: int = 16_384
    limit_trailer_size: int = 16_384
    limit_request_body: int = 0
    read_buffer: int = 65_536
    write_buffer: int = 65_536

    h2_max_concurrent_streams: int = 100
    h2_initial_window: int = 262_144
    h2_connection_window: int = 1_048_576
    h2_max_frame_size: int = 16_384
    h2_header_table_size: int = 4_096
    h2_max_continuations: int = 8
    h2_reset_burst: int = 1_000
    h2_reset_rate: int = 100
    h2_glitch_burst: int = 1_000
    h2_glitch_rate: int = 100
    h2_max_queued_acks: int = 1_000
