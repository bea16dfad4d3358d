"""The public Config: uvicorn's shape, what is derived from it, and what is refused."""

import ast
import asyncio
import inspect
import resource
from pathlib import Path
from typing import Any

import pytest
import uvicorn

import tricorn
from tricorn import flags, settings
from tricorn.asgi import ASGI2Adapter, Receive, Scope, Send
from tricorn.config import Config
from tricorn.errors import StartupError
from tricorn.lifespan import Lifespan
from tricorn.sockets import Endpoint, Inherited, Tcp, Unix, parse_address
from tricorn.tuning import Tuning

STUB = Path(tricorn.__file__).with_name("_core.pyi")


async def app(scope: Scope, receive: Receive, send: Send) -> None: ...


def config_of(target: Any = app, **options: Any) -> Config:
    return Config(target, log_config=None, **options)


def stub_defaults(class_name: str) -> dict[str, Any]:
    """The keyword arguments of a class in the core's stub, and their defaults."""
    classes = [node for node in ast.parse(STUB.read_text()).body if isinstance(node, ast.ClassDef)]
    body = next(node.body for node in classes if node.name == class_name)
    init = next(node for node in body if isinstance(node, ast.FunctionDef) and node.name == "__init__")
    pairs = zip(init.args.kwonlyargs, init.args.kw_defaults, strict=True)
    return {name.arg: default and ast.literal_eval(default) for name, default in pairs}


def test_positional_order_is_uvicorns() -> None:
    theirs = list(inspect.signature(uvicorn.Config).parameters)
    ours = list(inspect.signature(Config).parameters)
    assert ours[: len(theirs)] == theirs


def test_defaults_are_uvicorns_but_where_we_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORWARDED_ALLOW_IPS", raising=False)
    theirs = vars(uvicorn.Config(app, log_config=None))
    ours = vars(config_of())
    differ = {name for name in theirs.keys() & ours.keys() if theirs[name] != ours[name]}
    # The reload options are normalised by the supervisor.
    assert differ == {"timeout_graceful_shutdown", "reload_dirs", "reload_includes", "reload_excludes"}
    assert ours["timeout_graceful_shutdown"] == 30


def test_the_core_has_every_option_and_our_defaults() -> None:
    stub = stub_defaults("Options")
    derived = settings.core_options(config_of(limit_connections=0))
    assert derived.keys() == stub.keys()
    assert {name: value for name, value in derived.items() if value != stub[name]} == {"headers": []}


def test_the_core_takes_every_tls_argument() -> None:
    arguments = settings.tls_arguments(config_of(ssl_certfile=Path("/c"), ssl_keyfile="/k"), ("h1", "h2"))
    assert arguments.keys() == stub_defaults("TlsContext").keys()
    assert arguments["certfile"] == "/c"
    assert arguments["alpn"] == ["h2", "http/1.1"]


def test_every_option_of_ours_has_a_flag() -> None:
    named = {flag.field for group in flags.GROUPS.values() for flag in group}
    assert set(Tuning.__dataclass_fields__) <= named
    assert named - {"app_dir"} <= set(Config.__dataclass_fields__)


def test_foreign_attributes_and_changes_are_kept() -> None:
    config: Any = config_of()
    config.h11_max_header_count = 7
    config.port = 9
    assert config.h11_max_header_count == 7
    assert settings.own_address(config) == Tcp("127.0.0.1", 9)


def test_times_reach_the_core_in_milliseconds_and_never_round_to_no_limit() -> None:
    config = config_of(timeout_keep_alive=0, timeout_write=0.0004, timeout_h2_idle=None, timeout_request_header=2.5)
    options = settings.core_options(config)
    assert options["timeout_keep_alive"] == 1
    assert options["timeout_write"] == 1
    assert options["timeout_h2_idle"] == 0
    assert options["timeout_request_header"] == 2500


def test_a_server_or_date_header_of_the_users_replaces_ours() -> None:
    options = settings.core_options(config_of(headers=[("Server", " mine "), ("DATE", "now")]))
    assert not options["server_header"]
    assert not options["date_header"]
    assert options["headers"] == [(b"server", b"mine"), (b"date", b"now")]


def test_connections_are_limited_by_the_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 100))
    assert settings.core_options(config_of())["limit_connections"] == 80
    assert settings.core_options(config_of(limit_connections=7))["limit_connections"] == 7


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"timeout_write": -1}, "timeout_write is -1; it must be a number of seconds"),
        ({"timeout_write": float("inf")}, "timeout_write is inf"),
        ({"limit_header_size": -1}, "limit_header_size is -1; it must be a whole number"),
        ({"limit_header_count": 1.5}, "limit_header_count is 1.5; it must be a whole number"),
        ({"limit_header_size": 10**30}, "it must be a whole number from 0 to 2147483647"),
        ({"h2_max_frame_size": 5}, "it must be a whole number from 16384 to 16777215"),
        ({"headers": [("a b", "c")]}, "Header 'a b:c' is not a valid response header"),
        ({"headers": [("a", "b\r\nc: d")]}, "is not a valid response header"),
        ({"headers": [("é", "c")]}, "is not a valid response header"),
        ({"protocols": "h1,h3"}, "give h1, h2 or h1,h2"),
        ({"protocols": []}, "give h1, h2 or h1,h2"),
        ({"bind": "nowhere"}, "'nowhere' is not an address"),
        ({"tls_bind": [":443"]}, "tls_bind needs ssl_certfile"),
        ({"bind": [":80"], "ssl_certfile": "c"}, "for TLS use tls_bind"),
        ({"ssl_keyfile": "k"}, "ssl_keyfile needs ssl_certfile"),
        ({"ssl_certfile": "c", "ssl_min_version": "SSLv3"}, "ssl_min_version 'SSLv3' is not one of"),
        ({"ssl_certfile": "c", "ssl_version": 3}, "ssl_version 3 is not supported"),
        ({"ssl_certfile": "c", "ssl_cert_reqs": 2}, "ssl_cert_reqs needs ssl_ca_certs"),
        ({"ssl_certfile": "/no/such/file", "ssl_keyfile": "/none"}, "/no/such/file"),
        ({"ssl_context_factory": lambda *_: None}, "ssl_context_factory is not supported"),
        ({"interface": "wsgi"}, "interface 'wsgi' is not supported"),
        ({"lifespan": "maybe"}, "lifespan 'maybe' is not one of"),
    ],
)
def test_what_cannot_be_served_is_one_line(options: dict[str, Any], text: str) -> None:
    with pytest.raises(StartupError) as raised:
        settings.derive(config_of(**options))
    assert text in str(raised.value)
    assert "\n" not in str(raised.value)


def test_options_of_a_later_version_are_named_once_when_they_are_set() -> None:
    assert settings.without_effect(config_of()) == []
    assert settings.without_effect(config_of(reload=True, http="h11")) == [
        "Option http has no effect in this version.",
        "Option reload has no effect in this version.",
    ]


@pytest.mark.parametrize(
    ("options", "endpoints"),
    [
        ({}, [Endpoint(address=Tcp("127.0.0.1", 8000), tls=False)]),
        ({"fd": 0, "uds": "/s"}, [Endpoint(address=Inherited(0), tls=False)]),
        ({"uds": Path("/s")}, [Endpoint(address=Unix("/s"), tls=False)]),
        (
            {"bind": ":1", "host": "ignored"},
            [Endpoint(address=Tcp("", 1), tls=False)],
        ),
        (
            {"bind": ["unix:/s", "fd://7"]},
            [Endpoint(address=Unix("/s"), tls=False), Endpoint(address=Inherited(7), tls=False)],
        ),
    ],
)
def test_where_to_listen(options: dict[str, Any], endpoints: list[Endpoint]) -> None:
    assert list(settings.derive(config_of(**options)).endpoints) == endpoints


@pytest.mark.parametrize("text", ["", "host", "host:", "::1", "::1:80", "host:x", "host:70000", "fd://x", "a:-1"])
def test_what_is_not_an_address(text: str) -> None:
    with pytest.raises(StartupError, match="is not an address"):
        parse_address(text)


def test_addresses() -> None:
    assert parse_address("[::1]:80") == Tcp("::1", 80)
    assert parse_address("localhost:0") == Tcp("localhost", 0)


def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "10.0.0.1")
    monkeypatch.setenv("WEB_CONCURRENCY", "3")
    config = config_of()
    assert config.forwarded_allow_ips == "10.0.0.1"
    assert config.workers == 3
    assert config.use_subprocess
    assert config_of(workers=1).workers == 1
    monkeypatch.setenv("WEB_CONCURRENCY", "many")
    with pytest.raises(StartupError, match="WEB_CONCURRENCY is 'many'"):
        config_of()


class ClassicApp:
    """ASGI 2: called with the scope first."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    async def __call__(self, receive: Receive, send: Send) -> None:  # noqa: ARG002 the convention
        await send(self.scope["asgi"])


class ModernApp:
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


async def takes_anything(*args: Any, **kwargs: Any) -> None: ...


def returns_an_awaitable(scope: Scope, receive: Receive, send: Send) -> Any:
    return app(scope, receive, send)


def factory() -> Any:
    return app


def broken_factory() -> Any:
    raise KeyError("inside")


@pytest.mark.parametrize("target", [app, ModernApp(), takes_anything, returns_an_awaitable])
def test_an_asgi3_application_is_served_as_it_is(target: Any) -> None:
    config = config_of(target)
    config.load()
    assert config.loaded
    assert config.loaded_app is target
    assert config.interface == "asgi3"
    assert config.lifespan_class is Lifespan


def test_an_asgi2_application_is_adapted() -> None:
    config = config_of(ClassicApp)
    config.load()
    assert isinstance(config.loaded_app, ASGI2Adapter)
    assert config.asgi_version == "2.0"
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(config.loaded_app({"asgi": {"version": "3.0", "spec_version": "2.5"}}, None, send))
    assert sent == [{"version": "2.0", "spec_version": "2.5"}]


def test_a_factory_is_called_with_a_warning_unless_it_was_named_one(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", "tricorn.error")
    assert config_of(factory, factory=True).load_app() is app
    assert not caplog.records
    assert config_of(factory).load_app() is app
    assert config_of(ModernApp).load_app().__class__ is ModernApp


@pytest.mark.parametrize(
    ("target", "options", "text"),
    [
        ("no_such_module:app", {}, 'Error loading ASGI app. Could not import module "no_such_module".'),
        ("os:sep", {}, "Error loading ASGI app. 'os:sep' is not callable."),
        (app, {"factory": True}, "Error loading ASGI app factory: "),
        (lambda: 3, {"factory": True}, "Error loading ASGI app factory: it returned 3, which is not callable."),
    ],
)
def test_what_is_not_an_application(target: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(StartupError) as raised:
        config_of(target, **options).load()
    assert str(raised.value).startswith(text)
    assert raised.value.__cause__ is None


def test_a_factory_that_fails_shows_its_own_frames() -> None:
    with pytest.raises(StartupError) as raised:
        config_of(broken_factory, factory=True).load()
    cause = raised.value.__cause__
    assert isinstance(cause, KeyError)
    assert cause.__traceback__ is not None
    assert cause.__traceback__.tb_frame.f_code is broken_factory.__code__


def test_bind_socket_gives_an_inheritable_socket() -> None:
    with config_of(port=0).bind_socket() as sock:
        assert sock.get_inheritable()
        taken = sock.getsockname()[1]
        sock.listen()
        with pytest.raises(SystemExit) as raised:
            config_of(port=taken).bind_socket()
    assert raised.value.code == 3


def test_the_version_is_the_projects() -> None:
    pyproject = Path(__file__).parents[2] / "pyproject.toml"
    assert f'version = "{tricorn.__version__}"' in pyproject.read_text()
