"""Rows of the table of leases that another program has written, as DataX does with a key of the same columns.

The Java library lists leases alone, and so does a worker of this package while it runs: rows of other types do no harm
to it. But they tell that something else uses the table, and may delete it, or what it takes for its own. So a worker
looks for one when it starts, and reads a row at most between every two types that are known.

Example: DataX has left `CheckpointForDataxReader`. The first row of the stream is of this type, and before `LeaseKey`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from ots_tunnel.client.table_calls import get_range_page, get_range_request
from ots_tunnel.errors import WrongLeaseTable
from ots_tunnel.model import KeyValue, Marker, PrimaryKey
from ots_tunnel.protocol.plainbuffer.codec import decode_rows
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.lease.row import FOLLOWED, KEY_NAMES, LEASE_KEY, START, STATUS_TYPE

_KNOWN: Final = tuple(sorted((LEASE_KEY, FOLLOWED, START)))


async def look_for_foreign_rows(table: LeaseTable, stream_id: str) -> None:
    """Refuse a table in which another program has written rows of a stream.

    Raises:
        WrongLeaseTable: names the type of one of them. TunnelError: a call failed.
    """
    for start, end in _between(stream_id):
        page = get_range_page(
            await table.call("GetRange", get_range_request(table.name, start, end, max_versions=1, limit=1))
        )
        for row in decode_rows(page.rows):
            found = dict(row.primary_key)[STATUS_TYPE]
            raise WrongLeaseTable(
                f"table of leases {table.name!r}: found a row with {STATUS_TYPE} {found!r}, which another program has "
                f"written; allowed are {', '.join(_KNOWN)}: name another table"
            )


def _between(stream_id: str) -> Iterator[tuple[PrimaryKey, PrimaryKey]]:
    """The ranges of a stream's rows without those of the known types: inclusive, exclusive."""
    bounds: list[tuple[KeyValue, KeyValue]] = [(Marker.INF_MIN, Marker.INF_MIN)]
    for known in _KNOWN:
        bounds += [(known, Marker.INF_MIN), (known, Marker.INF_MAX)]
    bounds.append((Marker.INF_MAX, Marker.INF_MAX))
    keys = [tuple(zip(KEY_NAMES, (stream_id, *bound), strict=True)) for bound in bounds]
    return (each for number, each in enumerate(pairwise(keys)) if number % 2 == 0)
