"""Compiled modules of Python, pytest's included, in one folder for all processes of the tests."""

from __future__ import annotations

import os
from pathlib import Path

BYTECODE = Path(__file__).parents[3] / "build" / "bytecode"


def compiling_once() -> dict[str, str]:
    """The caller's environment, in which a module is compiled once.

    Where the caller forbids to write compiled modules beside their sources, every one of the thousands of processes
    that the tests start would compile its modules again.
    """
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**inherited, "PYTHONPYCACHEPREFIX": str(BYTECODE)}
