"""What tricorn.connect needs of the installed connectrpc, and which applications it leaves to their own ASGI path."""

import asyncio
import inspect
from collections.abc import AsyncGenerator
from http import HTTPStatus
from typing import Any

import pytest
from connectrpc import _compression, _protocol, _protocol_server, _server_async, _version
from connectrpc._codec import ProtoBinaryCodec, get_default_codecs
from connectrpc._server_async import ConnectASGIApplication
from connectrpc._server_shared import EndpointUnary
from connectrpc.code import Code
from connectrpc.compression.gzip import GzipCompression
from connectrpc.errors import ConnectError
from connectrpc.request import Headers, RequestContext

from examples.greet.gen.greet.v1.greet_connect import GreetServiceASGIApplication
from examples.greet.gen.greet.v1.greet_pb import GreetRequest
from examples.greet.service import GreetService
from tricorn import connect

GREET = "/greet.v1.GreetService/Greet"


def app_of(service: Any = None, **options: Any) -> GreetServiceASGIApplication:
    return GreetServiceASGIApplication(service or GreetService(), **options)


# --- the private names ---


def test_version_is_known() -> None:
    assert _version.__version__.startswith(connect.KNOWN_VERSIONS)


def test_application_has_its_fields() -> None:
    app = app_of()
    assert vars(app).keys() == {
        "_service",
        "_endpoints",
        "_metadata_interceptors",
        "_interceptors",
        "_resolved_endpoints",
        "_read_max_bytes",
        "_compressions",
        "_codecs",
    }
    assert app._resolved_endpoints is None
    assert app._read_max_bytes == 4 << 20
    assert list(app._compressions) == ["gzip", "identity"]
    assert type(app._compressions["identity"]) is _compression.IdentityCompression
    assert type(app._compressions["gzip"]) is GzipCompression
    assert vars(app._compressions["gzip"]) == {"_level": connect.GZIP_LEVEL}
    assert list(app._codecs) == ["proto", "json"]
    assert not app._metadata_interceptors


def test_a_unary_call_is_answered_by_the_methods_we_know() -> None:
    """A new one could be overridden unseen."""
    methods = {name for name, value in vars(ConnectASGIApplication).items() if inspect.isfunction(value)}
    others = {"__init__", "_handle_lifespan", "_read_get_request", "_resolve_endpoints"}
    assert methods == set(connect.OVERRIDABLE) | others


def test_endpoints_have_method_and_function() -> None:
    app = app_of()
    resolve: Any = app._resolve_endpoints
    endpoint = resolve(app._service)[GREET]
    assert isinstance(endpoint, EndpointUnary)
    assert endpoint.method.input is GreetRequest
    assert inspect.iscoroutinefunction(endpoint.function)


def test_context_has_the_fields_of_the_template() -> None:
    method: Any = object()
    theirs = vars(RequestContext(method=method, http_method="POST", request_headers=Headers()))
    ours = connect._context_template(method)
    lazy = {"_request_headers", "_server_address", "_client_address"}
    assert ours == {name: value for name, value in theirs.items() if name not in lazy} | {"_source": None}
    assert "__slots__" not in vars(RequestContext)
    assert RequestContext.__new__ is object.__new__


def test_binary_codec_does_what_we_do_for_it() -> None:
    codec = get_default_codecs()[0]
    assert type(codec) is ProtoBinaryCodec
    source = inspect.getsource(ProtoBinaryCodec)
    assert "return message.to_binary()" in source
    assert "return message_class.from_binary(data)" in source


def test_functions_that_we_call_take_what_we_give() -> None:
    assert _protocol.host_to_server_address("a", "https") == "a:443"
    for name in ("grpc", "grpc-web"):
        protocol = _protocol_server.negotiate_server_protocol(f"application/{name}")
        assert protocol.content_type(get_default_codecs()[0]) == f"application/{name}+proto"
        assert protocol.compression_header_name() == "grpc-encoding"
    assert list(inspect.signature(_server_async._add_context_headers).parameters) == ["headers", "ctx"]
    error = _protocol.HTTPError(HTTPStatus.GONE, [("a", "b")])
    assert (error.status, error.headers) == (HTTPStatus.GONE, [("a", "b")])


# --- which applications ---


def routes_of(app: object, **options: Any) -> list[str]:
    routes, why_not = connect.native_routes(app, **options)
    assert why_not is None
    return [route.path for route in routes]


def why_not(app: object, **options: Any) -> str:
    routes, line = connect.native_routes(app, **options)
    assert not routes
    assert line is not None
    assert "\n" not in line
    return line


def test_plain_application() -> None:
    app = app_of()
    assert routes_of(app) == [GREET]
    assert app._resolved_endpoints is not None


def test_other_encodings_are_left_to_asgi_call_by_call() -> None:
    assert routes_of(app_of(compressions=())) == [GREET]


def test_message_interceptors_are_folded_in() -> None:
    class Unary:
        async def intercept_unary(self, call_next: Any, request: Any, ctx: Any) -> Any:
            return await call_next(request, ctx)

    assert routes_of(app_of(interceptors=[Unary()])) == [GREET]


def test_other_applications_need_no_line() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None: ...

    assert connect.native_routes(app) == ([], None)
    assert connect.native_routes(object()) == ([], None)


def test_middleware_as_object_or_closure() -> None:
    class Middleware:
        def __init__(self, app: Any) -> None:
            self.app = app

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None: ...

    inner = app_of()

    async def closure(scope: Any, receive: Any, send: Any) -> None:
        await inner(scope, receive, send)

    for app in (Middleware(inner), Middleware(Middleware(inner)), closure, Middleware(closure)):
        assert why_not(app) == "there is middleware around it"


@pytest.mark.parametrize("name", connect.OVERRIDABLE)
def test_own_version_of_a_method(name: str) -> None:
    kind: Any = type("Own", (GreetServiceASGIApplication,), {name: lambda *_: None})
    assert why_not(kind(GreetService())) == f"Own has its own {name}"


def test_own_version_on_the_instance() -> None:
    app: Any = app_of()
    app._handle_error = lambda *_: None
    assert "_handle_error" in why_not(app)


def test_metadata_interceptors() -> None:
    class Metadata:
        async def on_start(self, ctx: Any) -> None: ...
        async def on_end(self, token: Any, ctx: Any, error: Any) -> None: ...

    assert why_not(app_of(interceptors=[Metadata()])) == "it has metadata interceptors"


def test_gzip_of_another_kind() -> None:
    class Own(GzipCompression): ...

    assert "gzip" in why_not(app_of(compressions=[Own()]))
    assert "gzip" in why_not(app_of(compressions=[GzipCompression(9)]))
    assert routes_of(app_of(compressions=[GzipCompression()])) == [GREET]


def test_unknown_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_version, "__version__", "0.99.0")
    assert why_not(app_of()) == "connectrpc 0.99.0 is not a version that is known here"


def test_root_path() -> None:
    assert why_not(app_of(), root_path="/api") == "root_path is set"


def test_service_that_the_lifespan_makes() -> None:
    async def service() -> AsyncGenerator[GreetService]:
        yield GreetService()

    app = app_of(service())
    assert why_not(app) == "its service needs the lifespan"
    app._resolved_endpoints = app._resolve_endpoints(GreetService())
    assert routes_of(app) == [GREET]


def test_endpoints_that_cannot_be_had() -> None:
    assert "its endpoints cannot be had: " in why_not(app_of(object()))


def test_without_connectrpc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(connect.sys.modules, "connectrpc._server_async")
    assert connect.native_routes(object()) == ([], None)


# --- the context and the errors ---


class Source:
    def headers(self) -> list[tuple[str, str]]:
        return [("host", "example.test"), ("x-a", "1"), ("x-a", "2")]

    def client_address(self) -> str:
        return "127.0.0.1:1"

    def scheme(self) -> str:
        return "https"


def context_of() -> Any:
    kind = connect._context_type()
    context = kind.__new__(kind)
    vars(context).update(connect._context_template("a method"), _source=Source())
    return context


def test_context_is_filled_when_it_is_read() -> None:
    context = context_of()
    assert isinstance(context, RequestContext)
    assert context.request_headers.getall("x-a") == ["1", "2"]
    assert context.request_headers is context.request_headers
    assert (context.server_address, context.client_address) == ("example.test:443", "127.0.0.1:1")
    assert (context.method, context.http_method, context.timeout_ms) == ("a method", "POST", None)
    assert not context.response_headers
    with pytest.raises(AttributeError):
        _ = context.nothing


def test_context_that_is_kept_needs_no_source() -> None:
    context = context_of()
    context.keep()
    assert context._source is None
    assert context.request_headers["host"] == "example.test"
    assert context.client_address == "127.0.0.1:1"


BUG = ValueError("a bug")
HTTP = _protocol.HTTPError(HTTPStatus.GONE, [])
NO = ConnectError(Code.ABORTED, "no")
CANCELLED = asyncio.CancelledError()
EXIT = SystemExit(1)


@pytest.mark.parametrize(
    ("exception", "facts", "code", "logged"),
    [
        (BUG, "", Code.INVALID_ARGUMENT, False),
        (NO, "", Code.ABORTED, False),
        (NO, "entered", Code.ABORTED, False),
        (CANCELLED, "entered expired", Code.DEADLINE_EXCEEDED, False),
        (CANCELLED, "entered left", Code.CANCELED, False),
        (CANCELLED, "entered", Code.CANCELED, True),
        (EXIT, "entered", Code.UNKNOWN, True),
        (BUG, "entered expired", None, True),
        (HTTP, "entered", None, False),
    ],
    ids=str,
)
def test_what_an_exception_becomes(exception: BaseException, facts: str, code: Code | None, logged: bool) -> None:  # noqa: FBT001
    expired, left, entered = (fact in facts for fact in ("expired", "left", "entered"))
    error, for_log = connect.settle(exception, expired, left, entered)
    assert for_log is (exception if logged else None)
    if code is None:
        assert error is exception
    else:
        assert isinstance(error, ConnectError)
        assert error.code is code
