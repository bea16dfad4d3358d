"""What the parity test asks three servers to run: the script of messages, and the scope as it is."""

from tests.apps.script import app
from tests.apps.web import show_scope

app.handlers["/scope"] = show_scope

__all__ = ["app"]
