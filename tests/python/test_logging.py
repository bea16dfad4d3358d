"""Log lines byte for byte, and the ways to configure them."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tricorn.errors import StartupError
from tricorn.logging import (
    LOGGING_CONFIG,
    AccessFormatter,
    DefaultFormatter,
    access_hook,
    configure,
    get_client_addr,
    get_path_with_query_string,
)

NAMES = ("tricorn", "tricorn.error", "tricorn.access", "tricorn.asgi")


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in NAMES]
    before = [(list(logger.handlers), logger.level, logger.propagate) for logger in loggers]
    yield
    for logger, (handlers, level, propagate) in zip(loggers, before, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


def record(level: int, message: str, *args: Any, **extra: Any) -> logging.LogRecord:
    return logging.makeLogRecord(
        {"levelno": level, "levelname": logging.getLevelName(level), "msg": message, "args": args, **extra}
    )


def access_record(status: int) -> logging.LogRecord:
    return record(logging.INFO, '%s - "%s %s HTTP/%s" %d', "127.0.0.1:9", "GET", "/a?b", "1.1", status)


ACCESS_FORMAT = LOGGING_CONFIG["formatters"]["access"]["fmt"]
DEFAULT_FORMAT = LOGGING_CONFIG["formatters"]["default"]["fmt"]


@pytest.mark.parametrize(
    ("level", "line"),
    [(logging.INFO, "INFO:     up 1"), (logging.WARNING, "WARNING:  up 1"), (logging.CRITICAL, "CRITICAL: up 1")],
)
def test_levels_are_padded_to_ten_columns(level: int, line: str) -> None:
    assert DefaultFormatter(DEFAULT_FORMAT, use_colors=False).format(record(level, "up %d", 1)) == line


def test_colours_follow_the_level_and_take_the_coloured_message() -> None:
    formatter = DefaultFormatter(DEFAULT_FORMAT, use_colors=True)
    line = formatter.format(record(logging.INFO, "up %s", "x", color_message="UP %s"))
    assert line == "\x1b[32mINFO\x1b[0m:     UP x"


@pytest.mark.parametrize(("status", "text"), [(200, "200 OK"), (404, "404 Not Found"), (299, "299 ")])
def test_access_line(status: int, text: str) -> None:
    formatter = AccessFormatter(ACCESS_FORMAT, use_colors=False)
    assert formatter.format(access_record(status)) == f'INFO:     127.0.0.1:9 - "GET /a?b HTTP/1.1" {text}'


def test_access_line_in_colour() -> None:
    line = AccessFormatter("%(request_line)s|%(status_code)s", use_colors=True).format(access_record(500))
    assert line == "\x1b[1mGET /a?b HTTP/1.1\x1b[0m|\x1b[91m500 Internal Server Error\x1b[0m"


def test_the_access_hook_logs_uvicorns_five_arguments(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("tricorn.access").addHandler(caplog.handler)
    logging.getLogger("tricorn.access").setLevel(logging.INFO)
    hook = access_hook()
    assert hook is not None
    scope = {"client": ("::1", 9), "method": "GET", "path": "/a b/é", "query_string": b"x=%20", "http_version": "2"}
    hook(scope, 204)
    assert caplog.records[-1].args == ("::1:9", "GET", "/a%20b/%C3%A9?x=%20", "2", 204)


def test_there_is_no_access_hook_when_nobody_would_read_it() -> None:
    configure(LOGGING_CONFIG, level="warning", access_log=True, use_colors=None)
    assert access_hook() is None
    configure(LOGGING_CONFIG, level="info", access_log=False, use_colors=None)
    assert access_hook() is None
    configure(LOGGING_CONFIG, level="info", access_log=True, use_colors=None)
    assert access_hook() is not None


def test_a_client_without_address_and_a_query_that_is_not_ascii() -> None:
    assert get_client_addr({"client": None}) == ""
    assert get_path_with_query_string({"path": "/", "query_string": b"\xff\x1b"}) == "/?\\xff\x1b"


@pytest.mark.parametrize(("level", "number"), [("DEBUG", 10), ("trace", 5), (37, 37)])
def test_levels_by_name_in_any_case_or_by_number(level: str | int, number: int) -> None:
    configure(LOGGING_CONFIG, level=level, access_log=True, use_colors=None)
    assert logging.getLogger("tricorn.error").level == number


def test_an_unknown_level_names_the_known_ones() -> None:
    with pytest.raises(StartupError, match="'loud' is not one of critical, error, warning, info, debug, trace"):
        configure(None, level="loud", access_log=True, use_colors=None)


def test_colours_can_be_forced_without_changing_the_given_dictionary() -> None:
    configure(LOGGING_CONFIG, level=None, access_log=True, use_colors=True)
    formatter = logging.getLogger("tricorn").handlers[0].formatter
    assert isinstance(formatter, DefaultFormatter)
    assert formatter.use_colors is True
    assert LOGGING_CONFIG["formatters"]["default"]["use_colors"] is None


def test_json_and_ini_files(tmp_path: Path) -> None:
    as_json = tmp_path / "log.json"
    as_json.write_text(json.dumps(LOGGING_CONFIG | {"loggers": {"tricorn.error": {"level": "ERROR"}}}))
    configure(as_json, level=None, access_log=True, use_colors=None)
    assert logging.getLogger("tricorn.error").level == logging.ERROR
    as_ini = tmp_path / "log.ini"
    as_ini.write_text(
        "[loggers]\nkeys=root,e\n[handlers]\nkeys=\n[formatters]\nkeys=\n[logger_root]\nhandlers=\n"
        "[logger_e]\nqualname=tricorn.error\nlevel=CRITICAL\nhandlers=\n"
    )
    configure(str(as_ini), level=None, access_log=True, use_colors=None)
    assert logging.getLogger("tricorn.error").level == logging.CRITICAL


@pytest.mark.parametrize("name", ["none.json", "none.ini", "broken.json"])
def test_an_unusable_file_is_one_line(name: str, tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(StartupError, match="Cannot use the log configuration: ") as raised:
        configure(tmp_path / name, level=None, access_log=True, use_colors=None)
    assert "\n" not in str(raised.value)
