"""The direction rules of docs/design.md: who may include whom, and which file alone may see each library."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"

# A layer may include itself and these.
BELOW = {
    "base": set(),
    "http": {"base"},
    "ws": {"base", "http"},
    "rpc": {"base", "http"},
    "net": {"base", "http"},
    "py": {"base", "http", "ws", "rpc", "net"},
}

# A library's header and where alone it may be included: files whose path starts so.
HOMES = {
    r"uv\.h": ["net/"],
    r"openssl/.*": ["net/tls"],
    r"llhttp\.h": ["http/http1"],
    r"nghttp2/.*": ["http/http2"],
    r"(Python\.h|pybind11/.*)": ["py/"],
}


def includes() -> Iterator[tuple[str, str]]:
    """Each (file, included file) of src/, both relative to it."""
    for path in sorted(SRC.rglob("*.[hc]*")):
        for name in re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', path.read_text(), re.MULTILINE):
            yield path.relative_to(SRC).as_posix(), name


@pytest.mark.parametrize("layer", BELOW)
def test_layer_includes_only_what_is_below_it(layer: str) -> None:
    allowed = BELOW[layer] | {layer}
    upward = [
        f"{file} includes {name}"
        for file, name in includes()
        if file.split("/")[0] == layer and name.split("/")[0] in BELOW.keys() - allowed
    ]
    assert not upward


@pytest.mark.parametrize("header", HOMES)
def test_library_is_seen_only_at_home(header: str) -> None:
    strays = [
        f"{file} includes {name}"
        for file, name in includes()
        if re.fullmatch(header, name) and not file.startswith(tuple(HOMES[header]))
    ]
    assert not strays
