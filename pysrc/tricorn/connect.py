"""Which unary methods of a connectrpc application the core answers itself, and what connectrpc says for each of them.

The only module that touches connectrpc's private names; tests/python/test_connect.py checks every one of them.
connectrpc is optional: it is imported only once the application has done so.
"""
# ruff: noqa: SLF001 that is what this module is for

import functools
import inspect
import sys
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tricorn import _core

if TYPE_CHECKING:
    from connectrpc._codec import Codec
    from connectrpc._server_async import ConnectASGIApplication
    from connectrpc.compression import Compression
    from connectrpc.errors import ConnectError
    from connectrpc.request import RequestContext

KNOWN_VERSIONS = ("0.13.",)
OVERRIDABLE = (
    "__call__",
    "_handle_request",
    "_call_unary",
    "_read_post_request",
    "_call_stream",
    "_stream_responses",
    "_handle_error",
)
"""What answers a unary call in connectrpc: an application with its own version of one of these keeps it."""
GZIP_LEVEL = 6  # what the core compresses with
MIDDLEWARE_DEPTH = 16

Answer = tuple[int, list[tuple[bytes, bytes]], bytes, list[tuple[bytes, bytes]]]


def native_routes(app: object, *, root_path: str = "") -> tuple[list[_core.RpcRoute], str | None]:
    """The methods that the core may answer, or one line on why it answers none; neither for other applications.

    After the lifespan's start-up, which makes the service.
    """
    if "connectrpc._server_async" not in sys.modules:
        return [], None
    from connectrpc._server_async import ConnectASGIApplication

    if not isinstance(app, ConnectASGIApplication):
        return [], "there is middleware around it" if _wraps(app, ConnectASGIApplication) else None
    why_not = _why_not(app) or ("root_path is set" if root_path else None)
    if why_not:
        return [], why_not
    endpoints = _endpoints(app)
    if isinstance(endpoints, str):
        return [], endpoints
    return list(_routes(app, endpoints)), None


def _wraps(app: object, kind: type) -> bool:
    """Whether `app` passes requests on to a `kind`, as far as its attributes and closures show."""
    for _ in range(MIDDLEWARE_DEPTH):
        cells = getattr(app, "__closure__", None) or ()
        inner = [getattr(app, name, None) for name in ("app", "_app", "inner")]
        inner += [cell.cell_contents for cell in cells if not _is_empty(cell)]
        if any(isinstance(one, kind) for one in inner):
            return True
        app = next((one for one in inner if callable(one)), None)
    return False


def _is_empty(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return True
    return False


def _why_not(app: "ConnectASGIApplication[Any]") -> str | None:
    from connectrpc._compression import IdentityCompression
    from connectrpc._server_async import ConnectASGIApplication
    from connectrpc._version import __version__
    from connectrpc.compression.gzip import GzipCompression

    if not __version__.startswith(KNOWN_VERSIONS):
        return f"connectrpc {__version__} is not a version that is known here"
    for name in OVERRIDABLE:
        if getattr(type(app), name) is not getattr(ConnectASGIApplication, name) or name in vars(app):
            return f"{type(app).__name__} has its own {name}"
    if app._metadata_interceptors:
        return "it has metadata interceptors"
    if type(app._compressions["identity"]) is not IdentityCompression:
        return "its identity compression is its own"
    gzip = app._compressions.get("gzip")
    if gzip is not None and (type(gzip) is not GzipCompression or gzip._level != GZIP_LEVEL):
        return f"its gzip is not connectrpc's own at level {GZIP_LEVEL}"
    return None


def _endpoints(app: "ConnectASGIApplication[Any]") -> Mapping[str, Any] | str:
    """By path, resolved as connectrpc does with the first request unless the lifespan has done it. Or why not."""
    if app._resolved_endpoints is None:
        if inspect.isasyncgen(app._service):
            return "its service needs the lifespan"
        try:
            app._resolved_endpoints = app._resolve_endpoints(app._service)
        except Exception as error:  # noqa: BLE001 the application's: its requests will show it
            return f"its endpoints cannot be had: {error}"
    return app._resolved_endpoints


def _routes(app: "ConnectASGIApplication[Any]", endpoints: Mapping[str, Any]) -> Iterator[_core.RpcRoute]:
    from connectrpc._server_shared import EndpointUnary

    context_type = _context_type()
    errors = Errors(codecs=app._codecs, compressions=app._compressions)
    for path, endpoint in endpoints.items():
        if not isinstance(endpoint, EndpointUnary):
            continue
        yield _core.RpcRoute(
            path=path,
            function=endpoint.function,
            context_type=context_type,
            context_template=_context_template(endpoint.method),
            failed=errors.failed,
            settle=settle,
            error=error,
            codecs=[_codec_functions(codec, endpoint.method.input) for codec in app._codecs.values()],
            encodings=list(app._compressions),
            read_max=app._read_max_bytes,
        )


Decode = Callable[[bytes], Any]
Encode = Callable[[Any], bytes]


def _codec_functions(codec: "Codec[Any, Any]", request: type[Any]) -> tuple[str, Decode, Encode]:
    from connectrpc._codec import ProtoBinaryCodec

    if type(codec) is ProtoBinaryCodec:
        return codec.name(), request.from_binary, codec.encode  # what decode() does, without its frame
    return codec.name(), lambda data: codec.decode(data, request), codec.encode


# --- the context ---


def _context_template(method: Any) -> dict[str, Any]:
    """What every context of that method starts with; the core adds `_source` and, with a deadline, `_end_time`."""
    return {
        "_method": method,
        "_http_method": "POST",
        "_response_headers": None,
        "_response_trailers": None,
        "_end_time": None,
        "_source": None,
    }


@functools.cache
def _context_type() -> type[Any]:
    """A RequestContext that asks the core's call for what the handler reads, when it reads it."""
    from connectrpc._protocol import host_to_server_address
    from connectrpc.request import Headers, RequestContext

    def server_address(context: Any) -> str | None:
        return host_to_server_address(context._request_headers.get("host"), context._source.scheme())

    lazy: dict[str, Callable[[Any], Any]] = {
        "_request_headers": lambda context: Headers(context._source.headers()),
        "_server_address": server_address,
        "_client_address": lambda context: context._source.client_address(),
    }

    class Context(RequestContext[Any, Any]):
        _source: Any

        def __getattr__(self, name: str) -> Any:
            """Called for what is not there yet."""
            make = lazy.get(name)
            if make is None:
                raise AttributeError(name=name, obj=self)
            value = make(self)
            setattr(self, name, value)
            return value

        def keep(self) -> None:
            """The call ends and somebody keeps this: from now on it needs nobody."""
            for name in lazy:
                getattr(self, name)
            self._source = None

    return Context


# --- errors ---


def error(code: str, message: str) -> "ConnectError":
    from connectrpc.code import Code
    from connectrpc.errors import ConnectError

    return ConnectError(Code(code), message)


def settle(  # noqa: PLR0911 a table
    exception: BaseException,
    expired: bool,  # noqa: FBT001 the core's call: by position
    left: bool,  # noqa: FBT001
    entered: bool,  # noqa: FBT001
) -> tuple[Exception, BaseException | None]:
    """What the client is told, and what is logged.

    `expired`, `left`: the deadline or the client's leaving was what cancelled the handler. Not `entered`: the request
    could not be decoded.
    """
    from connectrpc._protocol import HTTPError
    from connectrpc.errors import ConnectError

    match exception:
        case CancelledError() if expired:
            return error("deadline_exceeded", "Request timed out"), None
        case CancelledError() if left:
            return error("canceled", "Client disconnected"), None
        case CancelledError():
            return error("canceled", "Request was cancelled"), exception
        case ConnectError():
            return exception, None
        case Exception() if not entered:
            return error("invalid_argument", f"unmarshal message: {exception}"), None
        case HTTPError():
            return exception, None
        case Exception():
            return exception, exception
    return error("unknown", "Request was interrupted"), exception


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Makes the answers of failed calls, as connectrpc does once it has set up the protocol."""

    codecs: "Mapping[str, Codec[Any, Any]]"
    compressions: "Mapping[str, Compression]"

    def failed(
        self, kind: str, codec: str, encoding: str, error: Exception, context: "RequestContext[Any, Any] | None"
    ) -> Answer:
        """`kind`: connect, grpc or grpc-web. Without a context nothing has been said by the handler."""
        from connectrpc._protocol import ConnectWireError
        from connectrpc._protocol_server import negotiate_server_protocol
        from connectrpc.request import Headers

        if kind == "connect":
            return _failed_connect(error, context)
        protocol: Any = negotiate_server_protocol(f"application/{kind}")
        writer = protocol.create_envelope_writer(self.codecs[codec], self.compressions[encoding])
        headers = [
            (b"content-type", protocol.content_type(self.codecs[codec]).encode()),
            (protocol.compression_header_name().encode(), encoding.encode()),
            *(_encoded(context.response_headers) if context else ()),
        ]
        trailers = context.response_trailers if context else Headers()
        end = writer.end(trailers, ConnectWireError.from_exception(error))
        if isinstance(end, bytes):
            return 200, headers, end, []
        return 200, headers, b"", list(_encoded(end))


def _failed_connect(error: Exception, context: "RequestContext[Any, Any] | None") -> Answer:
    from connectrpc._protocol import ConnectWireError, HTTPError
    from connectrpc._server_async import _add_context_headers

    if isinstance(error, HTTPError):
        status, body = error.status.value, b""
        headers = [(name.encode(), value.encode()) for name, value in error.headers]
    else:
        wire_error = ConnectWireError.from_exception(error)
        status, body = wire_error.to_http_status().code, wire_error.to_json_bytes()
        headers = [(b"content-type", b"application/json")]
    if context:
        _add_context_headers(headers, context)
    return status, headers, body, []


def _encoded(fields: Any) -> Iterator[tuple[bytes, bytes]]:
    return ((name.encode(), value.encode()) for name, value in fields.allitems())
