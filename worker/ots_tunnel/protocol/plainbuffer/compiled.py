"""Choice of the codec: the compiled twin where the package was built with a compiler, Python otherwise.

`OTS_TUNNEL_CODEC=python` chooses the reference, `OTS_TUNNEL_CODEC=compiled` refuses to start without the twin.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Final

from ots_tunnel.errors import ConfigError

VARIABLE: Final = "OTS_TUNNEL_CODEC"
CHOICES: Final = ("auto", "compiled", "python")


def _load(choice: str) -> tuple[ModuleType | None, str | None]:
    """The compiled module, and why it is missing where nobody asked for Python."""
    if choice not in CHOICES:
        raise ConfigError(f"{VARIABLE}: found {choice!r}, allowed are {', '.join(CHOICES)}")
    if choice == "python":
        return None, None
    if sys.byteorder != "little":
        return None, "the compiled codec is for little-endian machines"
    try:
        from ots_tunnel.protocol.plainbuffer import _native
    except ImportError as error:
        if choice == "compiled":
            raise ConfigError(
                f"{VARIABLE}: found {choice!r}, but the package was built without a compiler ({error}): allowed are "
                "auto and python"
            ) from error
        return None, "the package was built without a compiler"
    return _native, None


_loaded: Final = _load(os.environ.get(VARIABLE, "auto"))
native: Final = _loaded[0]
#: Why Python's codec is used although the environment does not ask for it; None in all other cases.
NOT_COMPILED: Final = _loaded[1]
#: Name of the codec in logs and benchmarks.
CODEC: Final = "Python" if native is None else "compiled"
