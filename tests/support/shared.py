"""The collections of hostile input and of other servers' faults, where they lie beside the project."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.serving import ROOT

SHARED = Path(os.environ.get("TRICORN_SHARED", ROOT.parent / "shared"))


def folder(name: str) -> Path:
    """../shared/NAME; skips the module without it."""
    found = SHARED / name
    if not found.is_dir():
        pytest.skip(f"no {name} beside the project: {found}", allow_module_level=True)
    return found


def run_script(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, check=False, timeout=800
    )
