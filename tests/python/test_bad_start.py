"""A server that cannot start says why in one clear line, exits with 3, and shows no traceback of its own."""

import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.certificates import Certificates, openssl
from tests.support.serving import COMMAND, GUARD, OURS, ROOT, environment, flags

STARTUP_FAILURE = 3
USAGE_ERROR = 2


def attempt(app: str, **options: Any) -> tuple[int, str]:
    """Exit code and log of a server that is expected to end by itself."""
    options = {"port": 0} | options
    command = [sys.executable, *COMMAND, app, *flags(options)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False, timeout=GUARD
    )
    assert not OURS.search(done.stderr), done.stderr
    assert "running on" not in done.stderr, done.stderr
    return done.returncode, done.stderr


def only_error(log: str) -> str:
    """The one error line there is."""
    (line,) = re.findall(r"^ERROR:    (.*)$", log, re.MULTILINE)
    return line


@pytest.mark.parametrize(
    ("app", "line"),
    [
        ("nonsense", 'Import string "nonsense" must be in format "<module>:<attribute>".'),
        ("no_such_module:app", 'Could not import module "no_such_module".'),
        ("tests.apps.web:no_such_attribute", 'Attribute "no_such_attribute" not found in module "tests.apps.web".'),
        ("tests.apps.broken:not_callable", "not callable"),
        (":app", "must be in format"),
    ],
)
def test_wrong_application(app: str, line: str) -> None:
    code, log = attempt(app)
    assert code == STARTUP_FAILURE
    assert line in only_error(log)
    assert "Traceback" not in log


@pytest.mark.parametrize(
    ("app", "options", "fault"),
    [
        ("tests.apps.broken_import:app", {}, "RuntimeError: boom at import"),
        ("tests.apps.broken:factory_fails", {"factory": True}, "RuntimeError: boom in the factory"),
    ],
)
def test_fault_of_the_application_keeps_its_own_traceback(app: str, options: dict[str, Any], fault: str) -> None:
    code, log = attempt(app, **options)
    assert code == STARTUP_FAILURE
    assert log.count("Traceback") == 1
    assert log.rstrip().endswith(fault)


def test_port_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, log = attempt("tests.apps.web:app", port=port)
    assert code == STARTUP_FAILURE
    assert "address already in use" in only_error(log)
    assert str(port) in only_error(log)
    assert "Application shutdown complete." in log


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"host": "192.0.2.1"}, "192.0.2.1"),
        ({"host": "no.such.host.invalid"}, "no.such.host.invalid"),
        ({"uds": "/no/such/folder/socket"}, "/no/such/folder/socket"),
        ({"fd": 77}, "77"),
    ],
)
def test_address_that_cannot_be_had(options: dict[str, Any], line: str) -> None:
    options = options if "host" in options else {"port": 8000} | options
    code, log = attempt("tests.apps.web:app", **options)
    assert code == STARTUP_FAILURE
    assert line in only_error(log)


def test_unix_path_with_a_file_or_a_live_server_on_it_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("precious")
    code, log = attempt("tests.apps.web:app", uds=file)
    assert (code, file.read_text()) == (STARTUP_FAILURE, "precious")
    with socket.socket(socket.AF_UNIX) as live:
        live.bind(str(tmp_path / "socket"))
        live.listen()
        code, log = attempt("tests.apps.web:app", uds=tmp_path / "socket")
    assert code == STARTUP_FAILURE
    assert "address already in use" in only_error(log)


@pytest.mark.parametrize(
    "fault", ["no certificate", "no key", "noise", "other key", "wrong password", "key alone", "no ca"]
)
def test_unusable_tls_files(certs: Certificates, tmp_path: Path, fault: str) -> None:
    noise, secret = tmp_path / "noise.pem", tmp_path / "secret.key"
    noise.write_text("not a certificate\n")
    openssl("pkey", "-in", certs.folder / "server.key", "-aes256", "-passout", "pass:right", "-out", secret)
    missing = tmp_path / "missing.pem"
    changed = {
        "no certificate": {"ssl_certfile": missing},
        "no key": {"ssl_keyfile": missing},
        "noise": {"ssl_certfile": noise},
        "other key": {"ssl_keyfile": certs.folder / "client.key"},
        "wrong password": {"ssl_keyfile": secret, "ssl_keyfile_password": "wrong"},
        "key alone": {"ssl_certfile": None},
        "no ca": {"ssl_ca_certs": missing, "ssl_cert_reqs": 2},
    }[fault]
    options = {name: value for name, value in (certs.options() | changed).items() if value is not None}
    code, log = attempt("tests.apps.web:app", **options)
    assert code == STARTUP_FAILURE
    line = only_error(log)
    guilty = next(value for value in changed.values())
    assert guilty is None or Path(str(guilty)).name in line or "key" in line
    assert "Traceback" not in log


def test_failed_lifespan_start_up() -> None:
    code, log = attempt("tests.apps.broken:startup_fails")
    assert code == STARTUP_FAILURE
    assert log.endswith("ERROR:    no database\nERROR:    Application startup failed. Exiting.\n")
    assert "Traceback" not in log


def test_lifespan_that_raises_while_it_has_to_work() -> None:
    code, log = attempt("tests.apps.broken:startup_raises", lifespan="on")
    assert code == STARTUP_FAILURE
    assert "RuntimeError: boom at start-up" in log
    assert log.endswith("ERROR:    Application startup failed. Exiting.\n")


def test_lifespan_that_takes_too_long() -> None:
    code, log = attempt("tests.apps.broken:startup_never_ends", timeout_startup=1)
    assert code == STARTUP_FAILURE
    assert "No answer to lifespan.startup within 1 seconds." in log


@pytest.mark.parametrize(
    "options",
    [
        {"no_such_option": 1},
        {"port": "many"},
        {"loop": "nonsense"},
        {"log_level": "loud"},
        {"bind": "127.0.0.1:0", "host": "::"},
    ],
    ids=str,
)
def test_usage_errors_exit_with_2(options: dict[str, Any]) -> None:
    code, log = attempt("tests.apps.web:app", **options)
    assert code == USAGE_ERROR
    assert "Error: " in log
    assert "Traceback" not in log


def test_unavailable_event_loop() -> None:
    code, log = attempt("tests.apps.web:app", loop="no_such_module:new_event_loop")
    assert code == STARTUP_FAILURE
    assert "no_such_module" in only_error(log)
