"""Cuts a page into requests without making row changes: the fast path for records that can be written as they are.

Most pages hold rows of ordinary size and few repeated keys. Their records are written in waves: a wave holds a key at
most once, and begins when the one before is stored, so the order per key is kept. Every other page is written through
`row_change` and `grouping`. Compiled code plans the waves; without it every page takes the second path.
"""

from __future__ import annotations

from collections.abc import Sequence

from ots_tunnel.protocol.plainbuffer.compiled import native
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.grouping import Limits

#: A page with more changes of one key takes the second path, where a hot key does not delay the other keys.
MAX_WAVES = 3

#: Requests that may be in flight at the same time, each a list of records.
Wave = list[list[Record]]


def plan_requests(records: Sequence[Record], limits: Limits) -> list[Wave] | None:
    """Plan the waves of a page; None where it has to take the second path."""
    if native is None:
        return None
    waves: list[Wave] | None = native.plan_requests(
        records, limits.max_rows, limits.max_bytes, limits.max_cells, MAX_WAVES
    )
    return waves
