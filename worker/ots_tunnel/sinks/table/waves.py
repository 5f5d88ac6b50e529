"""A page cut into requests without looking at single rows: the short way for records that can be written as they are.

Most pages hold rows of ordinary size and few repeated keys. Their records go out in waves: no key stands twice in one
wave, and a wave begins when the one before is stored, so the order per key is kept. Every other page takes the long way
over `row_change` and `grouping`. Compiled code decides; without it every page takes the long way.
"""

from __future__ import annotations

from collections.abc import Sequence

from ots_tunnel.protocol.plainbuffer.compiled import native
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.grouping import Limits

#: A key more often than this in one page is a hot one: waves would wait for it, the long way does not.
MAX_WAVES = 3

#: Requests that may be in flight together.
Wave = list[list[Record]]


def plan_requests(records: Sequence[Record], limits: Limits) -> list[Wave] | None:
    """The waves of a page; None where it has to take the long way."""
    if native is None:
        return None
    waves: list[Wave] | None = native.plan_requests(
        records, limits.max_rows, limits.max_bytes, limits.max_cells, MAX_WAVES
    )
    return waves
