"""Memory of what was deleted, trimmed or expired, back to the system.

The allocator keeps what it has got from the system for the next tables. Without a request to give it back, a process
that has served a large suite of tests stays as large as the suite was, although its tables are gone, and one that runs
for weeks as large as its largest hour.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Final

#: Bytes of deleted rows and entries from which it is worth a pause of some milliseconds.
WORTH_BYTES: Final = 8 << 20
#: The C library's function, None where it has none: elsewhere allocators give back by themselves.
_TRIM: Final[Callable[[int], int] | None] = getattr(ctypes.pythonapi, "malloc_trim", None)


class Freed:
    """Counts bytes that are no longer used until they are given back.

    Args:
        trim: gives unused memory back; its argument is how much to keep.
    """

    def __init__(self, trim: Callable[[int], object] | None = _TRIM) -> None:
        self._trim = trim
        self._bytes = 0

    def __repr__(self) -> str:
        return f"Freed({self._bytes} bytes)"

    def add(self, size_bytes: int) -> None:
        """Count bytes whose last use ends with this call of a client or control."""
        self._bytes += size_bytes

    def give_back(self) -> None:
        """Give them back, if it is worth it."""
        if self._bytes >= WORTH_BYTES:
            self._bytes = 0
            if self._trim is not None:
                self._trim(0)
