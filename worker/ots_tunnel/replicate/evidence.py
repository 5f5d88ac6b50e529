"""Whether a destination lacks what a tunnel has delivered: a look at both tables, for runs without a state file.

Theory of operation
-------------------

A job that resumes on another machine has no state file, so only the tables can tell whether the destination is that of
the first run. A row that the destination lacks proves nothing by itself: it may be new, and still wait in the stream.
What proves something is the age of a cell:

1. The service refuses a version that lies further from its clock than the source's deviation. So a cell whose version
   is older than the tunnel by more than the deviation was written before the tunnel was created, and has been there
   ever since: what is deleted cannot be written again with this version.
2. When all base channels are finished, everything of that age is delivered. So the destination of the first run holds
   each of these cells, unless somebody deleted them there.

`is_foreign` reads `LOOKED_AT` rows from both ends of the source and takes their old cells. The destination is foreign
if it holds none of them. It must not be taken for foreign by mistake, so whatever leaves a doubt counts for it:

- Cells that are about to expire are not looked for: the copy may have left them out.
- The deviation may have been larger, so that old versions were imported a moment ago and wait in the stream. Therefore
  the destination is looked at as well: if one of its rows at either end has a cell that the source has, it is not
  foreign. What is left is a source of which all these rows were replaced in that way.
- Where one table has too many rows between the ones that are looked for, they may be there.
- Without old cells, while base channels are open, or without the right to read the source, nothing is known.

Example: the tunnel is a day old, the deviation is 86,400 s. Of the source's first rows, one was written a year ago and
two today. If the destination lacks the old one, it is foreign; the two others say nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ots_tunnel.client.table import TableClient, TableDescription
from ots_tunnel.client.table_calls import KeyRange
from ots_tunnel.console.explanations import Place, explaining
from ots_tunnel.errors import Explained, PermissionDenied
from ots_tunnel.model import ChannelStatus, ChannelType, Marker, PrimaryKey, Stage, TunnelDescription
from ots_tunnel.protocol.plainbuffer.codec import decode_key_cells
from ots_tunnel.protocol.plainbuffer.spans import check_header, scan_row
from ots_tunnel.verify.recheck import span
from ots_tunnel.verify.rows import Contents, contents, near_expiry_limit
from ots_tunnel.verify.scan import ALL_VERSIONS, sort_key

#: Rows that are looked at on either end of a table.
LOOKED_AT = 1000

#: Pages of a table that are read for one end, each of at most 4 MB.
MOST_PAGES = 8

#: Seconds by which clocks may differ, and by which a cell's expiry must be away.
MARGIN = 3600.0


#: Cells by column and version, by the key of their row.
Rows = dict[bytes, Contents]


@dataclass(frozen=True, slots=True)
class Side:
    """A table, the client of its instance, and its names for messages."""

    client: TableClient
    place: Place
    is_destination: bool = False

    async def describe(self) -> TableDescription:
        """Keys and options of the table."""
        with explaining(self.place, destination=self.is_destination):
            return await self.client.describe_table(self.place.table)

    async def read(self, part: KeyRange, most: int | None = None, *, forward: bool = True) -> tuple[Rows, bool]:
        """Rows of a range with all versions, and whether these are all.

        Args:
            most: rows that suffice; None for all. No more than `MOST_PAGES` pages are read.
            forward: False reads from the end; the range is reversed then.
        """
        rows: Rows = {}
        start: PrimaryKey | None = part.start
        with explaining(self.place, destination=self.is_destination):
            for _ in range(MOST_PAGES):
                if start is None or (most is not None and len(rows) >= most):
                    break
                page = await self.client.get_range(
                    self.place.table,
                    start,
                    part.end,
                    max_versions=ALL_VERSIONS,
                    limit=most,
                    direction_forward=forward,
                )
                rows.update(_rows_in(page.rows))
                start = page.next_start
        return rows, start is None


def has_delivered_existing_rows(tunnel: TunnelDescription) -> bool:
    """Whether all rows that existed when the tunnel was created are delivered."""
    base = [channel for channel in tunnel.channels if channel.channel_type is ChannelType.BASE]
    return tunnel.tunnel.stage == Stage.STREAM and all(channel.status is ChannelStatus.TERMINATED for channel in base)


async def is_foreign(source: Side, destination: Side, tunnel: TunnelDescription, now: float) -> bool:
    """Whether the destination is known not to hold what the tunnel has delivered.

    Args:
        now: Unix seconds.

    Raises:
        Explained: a call failed permanently.
    """
    if not has_delivered_existing_rows(tunnel):
        return False
    try:
        from_table, to_table = await source.describe(), await destination.describe()
        lives = (from_table.time_to_live, to_table.time_to_live)
        ages = Ages(tunnel.tunnel.create_time_ns / 1e9, from_table.max_version_deviation, lives, now)
        delivered = [ages.old_cells(rows) for rows in await _ends_of(source, from_table)]
        if not any(delivered) or await _may_hold_any(destination, delivered):
            return False
        return not await _may_hold_any(source, await _ends_of(destination, to_table))
    except Explained as error:
        if isinstance(error.__cause__, PermissionDenied):
            return False  # the key of a tunnel may lack the right to read rows of the source
        raise


class Ages:
    """Tells which cells are so old that they were delivered with the rows that existed before the tunnel.

    Args:
        created: the tunnel's creation, Unix seconds.
        deviation: of the source, seconds.
        times_to_live: of both tables, seconds; -1 means that cells never expire.
        now: Unix seconds.
    """

    def __init__(self, created: float, deviation: int, times_to_live: Iterable[int], now: float) -> None:
        self._before_ms = (created - deviation - MARGIN) * 1000
        limit = near_expiry_limit(times_to_live, now, MARGIN)
        self._after_ms = 0 if limit is None else limit

    def __repr__(self) -> str:
        return f"Ages({self._after_ms} to {self._before_ms})"

    def old_cells(self, rows: Rows) -> Rows:
        """Old cells that do not expire soon, of the rows that have any."""
        old = {
            key: {where: value for where, value in cells.items() if self._after_ms < where[1] < self._before_ms}
            for key, cells in rows.items()
        }
        return {key: cells for key, cells in old.items() if cells}


async def _may_hold_any(side: Side, ends: Iterable[Rows]) -> bool:
    """Whether a table has at least one of these cells, or so many rows between them that it is not known."""
    for rows in filter(None, ends):
        keys = [decode_key_cells(key) for key in sorted(rows, key=sort_key)]
        found, are_all = await side.read(span(keys[0], keys[-1]))
        if not are_all or any(found[key].items() & rows[key].items() for key in found.keys() & rows.keys()):
            return True
    return False


async def _ends_of(side: Side, description: TableDescription) -> tuple[Rows, Rows]:
    low = tuple((column.name, Marker.INF_MIN) for column in description.primary_key)
    high = tuple((column.name, Marker.INF_MAX) for column in description.primary_key)
    first, _ = await side.read(KeyRange(low, high), LOOKED_AT)
    last, _ = await side.read(KeyRange(high, low), LOOKED_AT, forward=False)
    return first, last


def _rows_in(page: bytes) -> Rows:
    rows: Rows = {}
    offset = check_header(page) if page else 0
    while offset < len(page):
        row = scan_row(page, offset)
        rows[row.key] = contents(row.cells)
        offset = row.end
    return rows
