"""Loggers and formatters in uvicorn's shapes, under our names."""

import http
import importlib
import json
import logging
import logging.config
import os
import sys
from collections.abc import Callable
from configparser import RawConfigParser
from copy import copy, deepcopy
from pathlib import Path
from typing import IO, Any, Literal, cast
from urllib.parse import quote

from tricorn.asgi import Scope
from tricorn.errors import StartupError, one_line

PRODUCT = "Tricorn"
"""The word in `Tricorn running on ...`, which tools look for."""

TRACE_LOG_LEVEL = 5

LOG_LEVELS: dict[str, int] = {
    "critical": logging.CRITICAL,
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": TRACE_LOG_LEVEL,
}

AccessArgs = tuple[str, str, str, str, int]
"""The arguments of an access record: client address, method, full path, HTTP version, status."""

LogConfig = dict[str, Any] | str | os.PathLike[str] | RawConfigParser | IO[Any]

LOGGING_CONFIG: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "default": {
            "()": "tricorn.logging.DefaultFormatter",
            "fmt": "%(levelprefix)s %(message)s",
            "use_colors": None,
        },
        "access": {
            "()": "tricorn.logging.AccessFormatter",
            "fmt": '%(levelprefix)s %(client_addr)s - "%(request_line)s" %(status_code)s',
        },
    },
    "handlers": {
        "default": {"formatter": "default", "class": "logging.StreamHandler", "stream": "ext://sys.stderr"},
        "access": {"formatter": "access", "class": "logging.StreamHandler", "stream": "ext://sys.stdout"},
    },
    "loggers": {
        "tricorn": {"handlers": ["default"], "level": "INFO", "propagate": False},
        "tricorn.error": {"level": "INFO"},
        "tricorn.access": {"handlers": ["access"], "level": "INFO", "propagate": False},
    },
}

_LEVEL_COLORS = {
    TRACE_LOG_LEVEL: 34,
    logging.DEBUG: 36,
    logging.INFO: 32,
    logging.WARNING: 33,
    logging.ERROR: 31,
    logging.CRITICAL: 91,
}
_STATUS_COLORS = {1: 97, 2: 32, 3: 33, 4: 31, 5: 91}
_BOLD = 1


def _styled(text: str, code: int) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"


class ColourizedFormatter(logging.Formatter):
    """Adds `levelprefix`, and colours where the output is a terminal."""

    def __init__(
        self,
        fmt: str | None = None,
        datefmt: str | None = None,
        style: Literal["%", "{", "$"] = "%",
        use_colors: bool | None = None,  # noqa: FBT001 configurations may give it by position
    ) -> None:
        self.use_colors = use_colors if use_colors in (True, False) else sys.stdout.isatty()
        super().__init__(fmt=fmt, datefmt=datefmt, style=style)

    def color_level_name(self, level_name: str, level_no: int) -> str:
        code = _LEVEL_COLORS.get(level_no)
        return level_name if code is None else _styled(level_name, code)

    def should_use_colors(self) -> bool:
        return True

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 the name is logging's
        record = copy(record)
        padding = " " * (8 - len(record.levelname))
        if self.use_colors:
            record.levelname = self.color_level_name(record.levelname, record.levelno)
            if "color_message" in record.__dict__:
                record.msg = record.__dict__["color_message"]
                record.message = record.getMessage()
        record.__dict__["levelprefix"] = f"{record.levelname}:{padding}"
        return super().formatMessage(record)


class DefaultFormatter(ColourizedFormatter):
    """For everything but requests."""

    def should_use_colors(self) -> bool:
        return sys.stderr.isatty()


class AccessFormatter(ColourizedFormatter):
    """For requests: takes the five arguments of an access record apart."""

    def get_status_code(self, status_code: int) -> str:
        try:
            phrase = http.HTTPStatus(status_code).phrase
        except ValueError:
            phrase = ""
        text = f"{status_code} {phrase}"
        code = _STATUS_COLORS.get(status_code // 100)
        return _styled(text, code) if self.use_colors and code is not None else text

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 the name is logging's
        record = copy(record)
        client_addr, method, full_path, http_version, status_code = cast("AccessArgs", record.args)
        request_line = f"{method} {full_path} HTTP/{http_version}"
        record.__dict__ |= {
            "client_addr": client_addr,
            "request_line": _styled(request_line, _BOLD) if self.use_colors else request_line,
            "status_code": self.get_status_code(int(status_code)),
        }
        return super().formatMessage(record)


def configure(config: LogConfig | None, *, level: str | int | None, access_log: bool, use_colors: bool | None) -> None:
    """Set the loggers up: first what `config` says, then what the options say on top."""
    logging.addLevelName(TRACE_LOG_LEVEL, "TRACE")
    try:
        _apply(config, use_colors=use_colors)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise StartupError(f"Cannot use the log configuration: {one_line(error)}") from None
    if level is not None:
        number = level_number(level)
        for name in ("tricorn.error", "tricorn.access", "tricorn.asgi"):
            logging.getLogger(name).setLevel(number)
    if not access_log:
        logging.getLogger("tricorn.access").handlers = []
        logging.getLogger("tricorn.access").propagate = False


def level_number(level: str | int) -> int:
    """The level of that name, in any case."""
    if isinstance(level, int):
        return level
    try:
        return LOG_LEVELS[level.lower()]
    except KeyError:
        raise StartupError(f"Log level {level!r} is not one of {', '.join(LOG_LEVELS)}.") from None


def _apply(config: LogConfig | None, *, use_colors: bool | None) -> None:
    if config is None:
        return
    if isinstance(config, str | os.PathLike):
        config = _read(os.fspath(config))
    if isinstance(config, dict):
        logging.config.dictConfig(_with_colors(config, use_colors=use_colors))
    else:
        logging.config.fileConfig(config, disable_existing_loggers=False)


def _read(path: str) -> dict[str, Any] | str:
    """JSON and YAML files as a dictionary; the path itself for fileConfig to read."""
    if not path.endswith((".json", ".yaml", ".yml")):
        return path
    with Path(path).open(encoding="utf-8") as file:
        return dict(json.load(file) if path.endswith(".json") else _load_yaml(file))


def _load_yaml(file: IO[str]) -> Any:
    try:
        yaml = importlib.import_module("yaml")
    except ModuleNotFoundError:
        raise RuntimeError("YAML needs the package pyyaml: pip install pyyaml") from None
    return yaml.safe_load(file)


def _with_colors(config: dict[str, Any], *, use_colors: bool | None) -> dict[str, Any]:
    if use_colors is None:
        return config
    formatters = dict(config.get("formatters", {}))
    for name in formatters.keys() & {"default", "access"}:
        formatters[name] = deepcopy(formatters[name]) | {"use_colors": use_colors}
    return {**config, "formatters": formatters}


def get_client_addr(scope: Scope) -> str:
    """`host:port` of the client; empty where there is none."""
    client = scope.get("client")
    return f"{client[0]}:{client[1]}" if client else ""


def get_path_with_query_string(scope: Scope) -> str:
    """The request target, quoted again from the decoded path."""
    path = quote(scope["path"])
    query = scope["query_string"]
    return f"{path}?{query.decode('ascii', 'backslashreplace')}" if query else path


def access_hook() -> Callable[[Scope, int], None] | None:
    """What the core calls when a response starts; None when nobody would read the line."""
    logger = logging.getLogger("tricorn.access")
    if not logger.hasHandlers() or not logger.isEnabledFor(logging.INFO):
        return None

    def access(scope: Scope, status: int) -> None:
        logger.info(
            '%s - "%s %s HTTP/%s" %d',
            get_client_addr(scope),
            scope["method"],
            get_path_with_query_string(scope),
            scope["http_version"],
            status,
        )

    return access


def log_hook(level: int, message: str, exception: BaseException | None) -> None:
    """What the core calls for a line in the error log."""
    logging.getLogger("tricorn.error").log(level, message, exc_info=exception)
