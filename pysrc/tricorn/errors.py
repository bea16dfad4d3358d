"""What stops a server from starting, said in one line."""

import logging
import traceback
from pathlib import Path
from types import TracebackType

STARTUP_FAILURE = 3
"""Exit code of a server that did not start; uvicorn's."""

_OURS = str(Path(__file__).parent)


class StartupError(Exception):
    """The server cannot start. The text is one line for the log.

    A `__cause__` is the application's own fault, and is logged with its traceback.
    """

    def log(self) -> None:
        logging.getLogger("tricorn.error").error(self, exc_info=self.__cause__)


def users_part(error: BaseException) -> BaseException:
    """The same exception, its traceback without the frames of tricorn and of the import system above the user's."""
    return error.with_traceback(_users_frames(error.__traceback__))


def _users_frames(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and _is_plumbing(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return trace


def _is_plumbing(filename: str) -> bool:
    import_system = filename.startswith("<frozen importlib") or Path(filename).match("importlib/__init__.py")
    return import_system or filename.startswith(_OURS)


def one_line(error: BaseException) -> str:
    """The exception as Python prints it, on one line."""
    return " ".join("".join(traceback.format_exception_only(error)).split())
