"""An ASGI and Connect server with a C++ core."""

from tricorn.config import Config
from tricorn.server import Server, run

__version__ = "0.1.0"

__all__ = ["Config", "Server", "__version__", "run"]
