"""The scope of a request, key by key, and what surrounds an application's call."""

import json
from typing import Any

import pytest

from tests.conftest import Serve
from tests.support import frames, raw
from tests.support.certificates import Certificates
from tests.support.serving import Served
from tests.support.steps import seen

HTTP1_KEYS = {
    "type", "asgi", "http_version", "server", "client", "scheme", "root_path", "headers", "state", "method", "path",
    "raw_path", "query_string", "extensions",
}  # fmt: skip


@pytest.fixture(scope="module")
def server(serve_module: Serve) -> Served:
    return serve_module("web")


def scope_of(response: raw.Response) -> dict[str, Any]:
    assert response.status == 200, response
    return json.loads(response.body)


def test_scope_has_uvicorns_keys_and_extensions(server: Served) -> None:
    scope = scope_of(raw.get(server, "/scope"))
    assert scope.keys() == HTTP1_KEYS
    assert scope["type"] == "http"
    assert scope["asgi"] == {"version": "3.0", "spec_version": "2.5"}
    assert scope["http_version"] == "1.1"
    assert scope["scheme"] == "http"
    assert scope["method"] == "GET"
    assert scope["root_path"] == ""
    assert scope["state"] == {}


def test_extensions_are_always_a_dict(server: Served) -> None:
    extensions = scope_of(raw.get(server, "/scope"))["extensions"]
    assert {f"http.response.{name}" for name in ("early_hint", "pathsend", "zerocopysend")} <= extensions.keys()
    assert "http.response.trailers" not in extensions
    assert "tls" not in extensions
    asked = scope_of(raw.get(server, "/scope", headers=[(b"te", b"trailers")]))["extensions"]
    assert asked["http.response.trailers"] == {}


def test_addresses_are_tuples_of_text_and_number(server: Served) -> None:
    with raw.connect(server) as client:
        port = client.sock.getsockname()[1]
        scope = scope_of(client.get("/scope"))
    assert scope["server"] == {"tuple": ["127.0.0.1", server.port]}
    assert scope["client"] == {"tuple": ["127.0.0.1", port]}


def test_path_is_decoded_once_and_raw_path_is_untouched(server: Served) -> None:
    scope = scope_of(raw.get(server, "/%73cope?q=%20%ff&y=a+b"))
    assert scope["path"] == "/scope"
    assert scope["raw_path"] == "b:/%73cope"
    assert scope["query_string"] == "b:q=%20%ff&y=a+b"


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/scope/%C3%BC%20x", "/scope/ü x"),
        ("/scope/a%2Fb;v=1//c", "/scope/a/b;v=1//c"),
        ("/scope/%2525", "/scope/%25"),
        ("/scope/../a/./b", "/scope/../a/./b"),
        ("/scope/%ff%00", "/scope/\ufffd\0"),
        ("/scope/%", "/scope/%"),
        ("/scope/%zz", "/scope/%zz"),
    ],
)
def test_odd_paths(server: Served, target: str, path: str) -> None:
    scope = scope_of(raw.get(server, target))
    assert (scope["path"], scope["raw_path"]) == (path, f"b:{target}")
    with frames.connect(server) as client:
        scope = json.loads(client.get(target).body)
    assert (scope["path"], scope["raw_path"]) == (path, f"b:{target}")


def test_unescaped_octets_in_a_path_are_decoded_or_refused(server: Served) -> None:
    with raw.connect(server) as client:
        client.send(b"GET /scope/\xc3\xbc HTTP/1.1\r\nhost: a\r\n\r\n")
        response = client.response()
    assert response.status == 400 or scope_of(response)["path"] == "/scope/ü"


def test_method_is_as_sent(server: Served) -> None:
    assert scope_of(raw.get(server, "/scope", "PURGE"))["method"] == "PURGE"


def test_headers_keep_order_and_duplicates_with_lower_case_names(server: Served) -> None:
    sent = [(b"X-Dup", b"1"), (b"Cookie", b"a=b"), (b"x-DUP", b"2"), (b"X-Odd", b"caf\xe9 \t x"), (b"X-Empty", b"")]
    scope = scope_of(raw.get(server, "/scope", headers=sent))
    assert scope["headers"] == [
        {"tuple": ["b:host", "b:example.test"]},
        {"tuple": ["b:x-dup", "b:1"]},
        {"tuple": ["b:cookie", "b:a=b"]},
        {"tuple": ["b:x-dup", "b:2"]},
        {"tuple": ["b:x-odd", "b:caf\xe9 \t x"]},
        {"tuple": ["b:x-empty", "b:"]},
    ]


def test_http10_says_its_version(server: Served) -> None:
    with raw.connect(server) as client:
        client.send(b"GET /scope HTTP/1.0\r\n\r\n")
        scope = scope_of(client.response())
    assert scope["http_version"] == "1.0"
    assert scope["headers"] == []


def test_http2_scope_has_host_from_authority(server: Served) -> None:
    with frames.connect(server) as client:
        stream = client.get("/scope?x=1", headers=[(b"x-dup", b"1"), (b"x-dup", b"2")])
    scope = json.loads(stream.body)
    assert scope.keys() == HTTP1_KEYS
    assert scope["http_version"] == "2"
    assert scope["scheme"] == "http"
    assert scope["raw_path"] == "b:/scope"
    assert scope["query_string"] == "b:x=1"
    assert scope["headers"] == [
        {"tuple": ["b:host", "b:example.test"]},
        {"tuple": ["b:x-dup", "b:1"]},
        {"tuple": ["b:x-dup", "b:2"]},
    ]
    assert scope["extensions"]["http.response.trailers"] == {}


def test_http2_cookies_become_one_field(server: Served) -> None:
    with frames.connect(server) as client:
        stream = client.get("/scope", headers=[(b"cookie", b"a=1"), (b"cookie", b"b=2")])
    assert {"tuple": ["b:cookie", "b:a=1; b=2"]} in json.loads(stream.body)["headers"]


def test_tls_extension_describes_the_connection(serve: Serve, certs: Certificates) -> None:
    server = serve("web", **certs.options())
    with raw.connect(server, tls=certs.context("http/1.1")) as client:
        scope = scope_of(client.get("/scope"))
    assert scope["scheme"] == "https"
    tls = scope["extensions"]["tls"]
    assert tls["tls_version"] == 0x0304
    assert isinstance(tls["cipher_suite"], int)
    assert tls["server_cert"].startswith("-----BEGIN CERTIFICATE-----")
    assert tls["client_cert_chain"] in ([], {"tuple": []})
    assert tls["client_cert_name"] is None
    assert tls["client_cert_error"] is None


def test_root_path_stands_before_path_and_raw_path(serve: Serve) -> None:
    server = serve("web", root_path="/api")
    scope = scope_of(raw.get(server, "/scop%65"))
    assert scope["root_path"] == "/api"
    assert scope["path"] == "/api/scope"
    assert scope["raw_path"] == "b:/api/scop%65"


def test_state_is_a_copy_of_what_lifespan_left(serve: Serve) -> None:
    server = serve("stateful", lifespan="on")
    assert raw.get(server, "/").body == b"1 ['database']"
    assert raw.get(server, "/").body == b"2 ['database']"  # the list is shared, the dict is not


def test_forwarded_headers_of_a_trusted_peer_are_believed(serve: Serve) -> None:
    headers = [(b"x-forwarded-for", b"203.0.113.7:1024, 127.0.0.1"), (b"x-forwarded-proto", b"https")]
    scope = scope_of(raw.get(serve("web"), "/scope", headers=headers))
    assert scope["client"] == {"tuple": ["203.0.113.7", 1024]}
    assert scope["scheme"] == "https"


@pytest.mark.parametrize("options", [{"proxy_headers": False}, {"forwarded_allow_ips": "192.0.2.1"}])
def test_forwarded_headers_of_others_are_not(serve: Serve, options: dict[str, object]) -> None:
    headers = [(b"x-forwarded-for", b"203.0.113.7"), (b"x-forwarded-proto", b"https")]
    scope = scope_of(raw.get(serve("web", **options), "/scope", headers=headers))
    assert scope["client"]["tuple"][0] == "127.0.0.1"
    assert scope["scheme"] == "http"


def test_each_request_has_its_own_task_and_context(server: Served) -> None:
    with raw.connect(server) as client:
        answers = [json.loads(client.get(f"/context?key=tasks&value={n}").body) for n in range(3)]
        client.request("/context?key=tasks&value=body", "POST", body=bytes(300_000))
        answers.append(json.loads(client.response().body))
    with frames.connect(server) as h2:
        streams = [h2.request(f"/context?key=tasks&value=h2-{n}") for n in range(3)]
        answers += [json.loads(h2.response(stream).body) for stream in streams]
    assert answers == [["unset", value, True] for value in ("0", "1", "2", "body", "h2-0", "h2-1", "h2-2")]
    assert len(seen(server, "tasks")) == 7


def test_access_log_has_uvicorns_shape(serve: Serve) -> None:
    server = serve("web")
    with raw.connect(server) as client:
        port = client.sock.getsockname()[1]
        client.get("/%73tream?a=%20b")
        client.get("/nowhere/a%20b")
    line = f'INFO:     127.0.0.1:{port} - "GET /stream?a=%20b HTTP/1.1" 200 OK\n'
    assert line in server.wait_for_access_log("404")
    assert f'INFO:     127.0.0.1:{port} - "GET /nowhere/a%20b HTTP/1.1" 404 Not Found\n' in server.access_log()
    with frames.connect(server) as h2:
        h2.get("/")
    assert '"GET / HTTP/2" 200 OK\n' in server.wait_for_access_log("HTTP/2")


def test_access_log_can_be_off(serve: Serve) -> None:
    server = serve("web", access_log=False)
    raw.get(server, "/")
    server.stop()
    assert server.access_log() == ""
