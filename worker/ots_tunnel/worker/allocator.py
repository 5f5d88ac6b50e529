"""How the C library treats freed memory, for processes through which pages of records go.

A page is some hundred KiB that live for a moment. By default glibc hands such memory back to the system at once and
gets it again for the next page, a fault for every 4 KiB: as much CPU as everything else that is done with the page.
And every thread would have a heap of its own, each of which keeps what it once needed.
"""

from __future__ import annotations

import ctypes

#: Parameters of glibc's mallopt(3).
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
#: Freed memory up to so many bytes is kept for the next page.
KEPT_BYTES = 32 << 20
#: Larger blocks always come from the system and go back to it; a page is smaller.
OWN_MAPPING_BYTES = 8 << 20
#: Heaps for all threads together: sinks encode in several threads, of which Python lets one run at a time.
HEAPS = 1


def keep_freed_memory() -> bool:
    """Let freed memory be used again, by any thread; False where the C library is another one than glibc."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    wanted = ((M_TRIM_THRESHOLD, KEPT_BYTES), (M_MMAP_THRESHOLD, OWN_MAPPING_BYTES), (M_ARENA_MAX, HEAPS))
    return all(mallopt(name, value) for name, value in wanted)
