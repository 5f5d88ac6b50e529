"""How the C library treats freed memory, for processes through which pages of records go.

A page is some hundred KiB that live for a moment. By default glibc hands such memory back to the system at once and
gets it again for the next page, a fault for every 4 KiB: as much CPU as everything else that is done with the page.
"""

from __future__ import annotations

import ctypes

#: Parameters of glibc's mallopt(3).
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
#: Freed memory up to so many bytes is kept for the next page.
KEPT_BYTES = 32 << 20
#: Larger blocks always come from the system and go back to it; a page is smaller.
OWN_MAPPING_BYTES = 8 << 20


def keep_freed_memory() -> bool:
    """Let freed memory be used again; False where the C library is another one than glibc."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return all(
        mallopt(name, size) for name, size in ((M_TRIM_THRESHOLD, KEPT_BYTES), (M_MMAP_THRESHOLD, OWN_MAPPING_BYTES))
    )
