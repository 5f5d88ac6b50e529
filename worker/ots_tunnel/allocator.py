"""Settings of glibc's allocator, for processes that handle pages of records and for processes that mostly wait.

A page of a worker takes some hundred KiB for a moment. By default glibc returns such memory to the system at once and
requests it again for the next page, with a page fault for every 4 KiB: as much CPU as all other work on the page. Every
thread also has a heap, which keeps the largest amount that it ever needed. Arrow, which writes Parquet, has a pool of
its own: of those that it can use jemalloc's holds least. Narrow rows need 154 MB with it, and 175 with the usual one;
on glibc's heap columns of large cells, which grow while they are made, need 216 MB.

An operator is the opposite: it holds a lot of small state, reads many short texts from many connections in many
threads, and mostly waits. By default glibc raises the size from which it returns a block to the system with each large
block that is freed, and keeps a heap for each thread, so that a third of the memory of an operator of 200 objects was
memory that nobody used: 229 MB, of which a call of malloc_trim returned 68. With these settings it needs 166 MB, with
as much CPU as before.
"""

from __future__ import annotations

import ctypes
import os

#: Parameters of glibc's mallopt(3).
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
#: Bytes of freed memory that are kept for the next page.
KEPT_BYTES = 32 << 20
#: Bytes from which a block is mapped by itself and returned to the system when freed; a page is smaller.
OWN_MAPPING_BYTES = 8 << 20
#: Heaps of all threads together: sinks encode in several threads, but Python runs one at a time.
HEAPS = 1
#: Both sizes for a process that mostly waits.
IDLE_KEPT_BYTES, IDLE_OWN_MAPPING_BYTES = 128 << 10, 128 << 10
#: Where Arrow takes memory from, read when it is imported; one that is set already stays.
ARROW_POOL = ("ARROW_DEFAULT_MEMORY_POOL", "jemalloc")


def keep_freed_memory() -> bool:
    """Keep freed memory for reuse by all threads; False where the C library is not glibc.

    To be called before Arrow is imported.
    """
    os.environ.setdefault(*ARROW_POOL)
    return _set(KEPT_BYTES, OWN_MAPPING_BYTES)


def return_freed_memory() -> bool:
    """Return freed memory to the system soon, and share one heap; False where the C library is not glibc."""
    return _set(IDLE_KEPT_BYTES, IDLE_OWN_MAPPING_BYTES)


def _set(kept_bytes: int, own_mapping_bytes: int) -> bool:
    """Set the three parameters; naming the thresholds also keeps glibc from raising them by itself."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    wanted = ((M_TRIM_THRESHOLD, kept_bytes), (M_MMAP_THRESHOLD, own_mapping_bytes), (M_ARENA_MAX, HEAPS))
    return all(mallopt(name, value) for name, value in wanted)
