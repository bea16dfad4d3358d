"""The command line as data: one row for each option of Config that has a flag."""

from dataclasses import dataclass

from tricorn.logging import LOG_LEVELS
from tricorn.settings import RPC, TLS_VERSIONS


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag named after the field of Config, whose type and default it has too."""

    field: str
    help: str
    choices: tuple[str, ...] = ()
    metavar: str | None = None
    name: str | None = None  # where it is not the field's


LISTENING = (
    Flag("host", "Host to listen on. It, --port, --uds and --fd are for a single listener."),
    Flag("port", "Port to listen on; 0 lets the system choose, and the start line shows it."),
    Flag("uds", "Unix socket to listen on instead of a host.", metavar="PATH"),
    Flag("fd", "Bound socket to listen on, inherited from the parent process."),
    Flag(
        "bind",
        "Listen here in clear text: host:port, [v6]:port, unix:path or fd://N. Repeatable, also beside --tls-bind; "
        "in place of --host, --port, --uds and --fd.",
        metavar="ADDRESS",
    ),
    Flag("tls_bind", "Listen here with TLS. Repeatable, as --bind.", metavar="ADDRESS"),
    Flag("backlog", "Connections that may wait to be accepted."),
    Flag("protocols", "HTTP versions on every listener: h1, h2 or h1,h2.", metavar="LIST"),
)
APPLICATION = (
    Flag("app_dir", "Directory to look for the application in.", metavar="PATH"),
    Flag("factory", "The application is what the object returns when called."),
    Flag("interface", "Calling convention of the application.", choices=("auto", "asgi3", "asgi2")),
    Flag("lifespan", "Whether the application takes part in start-up and shutdown.", choices=("auto", "on", "off")),
    Flag("loop", "Event loop: auto or asyncio (asyncio on libuv), uvloop, none, or module:factory.", metavar="NAME"),
    Flag(
        "rpc",
        "Who answers a connectrpc application's unary calls: the server where it can, or asgi: it alone.",
        choices=RPC,
    ),
    Flag("root_path", "Path under which a proxy has mounted the application.", metavar="PATH"),
)
LOGGING = (
    Flag("log_config", "Logging configuration: .ini, .json or .yaml.", metavar="PATH"),
    Flag("log_level", "Least level that is logged.", choices=tuple(LOG_LEVELS)),
    Flag("access_log", "Log a line for each request."),
    Flag("use_colors", "Colour the log; by default where it is a terminal."),
)
HTTP = (
    Flag("proxy_headers", "Believe X-Forwarded-For and X-Forwarded-Proto of trusted peers."),
    Flag(
        "forwarded_allow_ips",
        "Those peers: addresses, networks, literals, or * for all, with commas. By default $FORWARDED_ALLOW_IPS, "
        "else 127.0.0.1,::1.",
        metavar="LIST",
    ),
    Flag("server_header", "Send a Server header."),
    Flag("date_header", "Send a Date header."),
    Flag("headers", "Response header of your own. Repeatable.", metavar="NAME:VALUE", name="header"),
)
TLS = (
    Flag("ssl_keyfile", "Private key.", metavar="PATH"),
    Flag("ssl_certfile", "Certificate chain.", metavar="PATH"),
    Flag("ssl_keyfile_password", "Password of the private key.", metavar="TEXT"),
    Flag("ssl_min_version", "Oldest TLS version.", choices=TLS_VERSIONS),
    Flag("ssl_version", "Protocol number of Python's ssl module; --ssl-min-version is clearer."),
    Flag("ssl_cert_reqs", "Client certificate: 0 none, 1 optional, 2 required."),
    Flag("ssl_ca_certs", "Certificates that client certificates are verified against.", metavar="PATH"),
    Flag("ssl_ciphers", "Ciphers up to TLS 1.2, in OpenSSL's notation.", metavar="LIST"),
)
TIMES = (
    Flag("timeout_startup", "Longest start-up of the application."),
    Flag("timeout_keep_alive", "Longest idle time of an HTTP/1 connection."),
    Flag("timeout_graceful_shutdown", "Time for requests in flight at shutdown; 0 waits for ever."),
    Flag("timeout_first_byte", "Longest time until a new connection sends something."),
    Flag("timeout_request_header", "Longest time for a request head, from its first byte."),
    Flag("timeout_request_body", "Longest silence within a request body."),
    Flag("timeout_write", "Longest time in which a peer takes nothing of what waits for it."),
    Flag("timeout_tls_handshake", "Longest TLS handshake."),
    Flag("timeout_h2_idle", "Longest time of an HTTP/2 connection without a stream."),
    Flag("timeout_h2_settings", "Longest time until a peer acknowledges our SETTINGS."),
    Flag("min_body_rate", "Octets a second, after 30 s, of a request body with a Content-Length."),
)
LIMITS = (
    Flag("limit_concurrency", "Requests in flight; others get 503."),
    Flag("limit_connections", "Connections. By default 10,000, or 0.8 of the open files allowed if that is less."),
    Flag("limit_max_requests", "Requests after which the process ends."),
    Flag("limit_max_requests_jitter", "Up to so many requests more, at random."),
    Flag("limit_request_line", "Octets of a request line; more get 414."),
    Flag("limit_header_size", "Octets of a request head; more get 431."),
    Flag("limit_header_count", "Fields of a request head; more get 431."),
    Flag("limit_chunk_ext", "Octets of chunk extensions in one message."),
    Flag("limit_trailer_size", "Octets of trailers in one message."),
    Flag("limit_request_body", "Octets of a request body; more get 413."),
    Flag("read_buffer", "Octets of one body that wait for the application."),
    Flag("write_buffer", "Octets of one response that wait for the peer."),
)
HTTP2 = (
    Flag("h2_max_concurrent_streams", "Streams at once on one connection."),
    Flag("h2_initial_window", "Octets a peer may send on a stream ahead of the application."),
    Flag("h2_connection_window", "Octets a peer may send on a connection ahead of the application."),
    Flag("h2_max_frame_size", "Octets of a frame that a peer may send."),
    Flag("h2_header_table_size", "Octets of the header compression table."),
    Flag("h2_max_continuations", "CONTINUATION frames of one header block."),
    Flag("h2_reset_burst", "Streams reset at once before a connection ends."),
    Flag("h2_reset_rate", "Streams reset a second in the long run."),
    Flag("h2_glitch_burst", "Useless frames at once before a connection ends."),
    Flag("h2_glitch_rate", "Useless frames a second in the long run."),
    Flag("h2_max_queued_acks", "Acknowledgements that wait for the peer to read."),
)

GROUPS: dict[str, tuple[Flag, ...]] = {
    "Listening": LISTENING,
    "Application": APPLICATION,
    "Logging": LOGGING,
    "HTTP": HTTP,
    "TLS": TLS,
    "Times, in seconds (0: no limit)": TIMES,
    "Limits (0: none)": LIMITS,
    "HTTP/2": HTTP2,
}
