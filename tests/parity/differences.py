"""Where the server means to differ from uvicorn and hypercorn on the same application, and why.

A row matches an observation by case and key (shell patterns). The parity test fails on a difference without a row,
and on a row without a difference.
"""

from dataclasses import dataclass

UVICORN, HYPERCORN, BOTH = ("uvicorn",), ("hypercorn",), ("uvicorn", "hypercorn")


@dataclass(frozen=True)
class Difference:
    """One intended difference. `ours` and `theirs` narrow the row to these values, as text."""

    peers: tuple[str, ...]
    case: str
    key: str
    why: str
    ours: str = "*"
    theirs: str = "*"


ABORTED = "a failure that is known before the head has left closes the connection, and the head says so"
EXCEPTION = "hypercorn has exception types of its own; frameworks test for uvicorn's"
ERROR_PAGE = "uvicorn's error page; hypercorn's is empty"
BODY_EVENTS = "hypercorn tells the end of a body in an event of its own; ours and uvicorn's is in the last piece's"
ORDER = "default fields come first, in lower case, as uvicorn's do; hypercorn puts them last and keeps the case"

DIFFERENCES = [
    # the scope
    Difference(
        BOTH, "*scope*", "asgi.spec_version", "send() raises OSError once the client is gone: 2.4 and later", '"2.5"'
    ),
    Difference(
        BOTH, "*scope*", "extensions.http.response.*", "we offer these on every version of HTTP", "{}", "absent"
    ),
    Difference(HYPERCORN, "scope*", "extensions", "its dict is empty, ours is not", "absent", "{}"),
    Difference(HYPERCORN, "h2: scope", "extensions.http.response.push", "browsers have given push up", "absent", "{}"),
    Difference(UVICORN, "scope", "headers", "space behind a value is no part of it: RFC 9112 5"),
    # heads
    Difference(BOTH, "*", "header.server", "the product's own name", "tricorn"),
    Difference(HYPERCORN, "*", "order", ORDER),
    Difference(HYPERCORN, "*", "reason", "hypercorn gives no reason phrase", theirs=""),
    Difference(HYPERCORN, "head, chunked", "header.transfer-encoding", "as uvicorn: no body, no coding", "absent"),
    # failures
    Difference(BOTH, "too *", "header.connection", ABORTED, "close", "absent"),
    Difference(BOTH, "error after start", "header.connection", ABORTED, "close", "absent"),
    Difference(BOTH, "unfinished", "header.connection", ABORTED, "close", "absent"),
    Difference(UVICORN, "too *", "order", ABORTED),
    Difference(UVICORN, "error after start", "order", ABORTED),
    Difference(UVICORN, "unfinished", "order", ABORTED),
    Difference(HYPERCORN, "h2: error after start", "end", "only the stream ends, as RFC 9113 5.4.2 wants", "reset"),
    Difference(HYPERCORN, "h2: unfinished", "end", "only the stream ends, as RFC 9113 5.4.2 wants", "reset"),
    *(
        Difference(HYPERCORN, case, key, ERROR_PAGE)
        for case in ("*error before start", "*no start", "noise", "bad *")
        for key in ("body", "header.content-length", "header.content-type")
    ),
    # events
    Difference(HYPERCORN, "*created", "seen.0.more_body", BODY_EVENTS, "false", "true"),
    Difference(HYPERCORN, "*receive", "seen.0.more_body", BODY_EVENTS, "false", "true"),
    Difference(HYPERCORN, "*receive", "seen.3.*", BODY_EVENTS),
    *(
        Difference(HYPERCORN, case, key, EXCEPTION, '"RuntimeError: *', '"*Error: *')
        for case, key in (
            ("*body first", "seen.0"),
            ("*start twice", "seen.1"),
            ("*after the end", "seen.2"),
            ("too *", "seen.1"),
        )
    ),
]
