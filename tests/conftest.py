"""Fixtures of every Python test: the server under test, and certificates."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support import certificates, serving
from tests.support.certificates import Certificates
from tests.support.serving import Served

Serve = Callable[..., Served]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts a server for this test: `serve("web", root_path="/api")`."""
    with ExitStack() as stack:
        count = iter(range(100))

        def start(app: str, **options: object) -> Served:
            folder = tmp_path / f"server{next(count)}"
            return stack.enter_context(serving.serving(app, folder, **options))

        yield start


@pytest.fixture(scope="module")
def serve_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """The same for the tests of a module together."""
    with ExitStack() as stack:

        def start(app: str, **options: object) -> Served:
            return stack.enter_context(serving.serving(app, tmp_path_factory.mktemp("server"), **options))

        yield start


@pytest.fixture(scope="session")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates.make(tmp_path_factory.mktemp("certs"))


_status = pytest.ExitCode.OK


def pytest_sessionfinish(exitstatus: int) -> None:
    global _status  # noqa: PLW0603 pytest offers no other way to reach unconfigure
    _status = pytest.ExitCode(exitstatus)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """A thread of pyqwest's may wait for the GIL when the interpreter ends, and then aborts the process."""
    if "pyqwest" in sys.modules:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_status)
