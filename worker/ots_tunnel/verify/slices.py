"""How a table is cut into slices, and which slices a sample takes (docs/architecture.md 4.5)."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Protocol

from ots_tunnel.client.table_calls import DEFAULT_SPLIT_UNIT_BYTES, KeyRange, TableDescription
from ots_tunnel.model import PrimaryKey
from ots_tunnel.verify.scan import ReadsTable, Scan

#: Unit of small slices, bytes: the minimum of the service (docs/data-plane.md 2.7).
SMALL_UNIT_BYTES = 1_048_576

#: Units of a small slice; the slices of a sample have one unit, so that a small table has enough to choose from.
UNITS_PER_SLICE = 8

#: A table of at least this number of 100 MB slices (40 GB) is not cut into small slices: their list would be long.
ENOUGH_SLICES = 400

#: Most slices of a table (1 TB in slices of 100 MB); larger tables get larger slices, because every write of the state
#: file holds the whole list.
MOST_SLICES = 10_000


class DescribesTable(ReadsTable, Protocol):
    """The part of `TableClient` that a comparison needs."""

    async def describe_table(self, table: str) -> TableDescription:
        """See `TableClient.describe_table`."""
        ...


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two tables with the client that reads it."""

    client: DescribesTable
    table: str

    async def describe(self) -> TableDescription:
        """Key columns and options of the table."""
        return await self.client.describe_table(self.table)

    async def slices(self, *, sampled: bool) -> tuple[KeyRange, ...]:
        """The table in slices of 100 MB; smaller ones if these would be few, larger ones if they would be many."""
        slices = await self.client.compute_splits(self.table, 1, unit_bytes=DEFAULT_SPLIT_UNIT_BYTES)
        if len(slices) > MOST_SLICES:
            units = -(-len(slices) // MOST_SLICES)
            return await self.client.compute_splits(self.table, units, unit_bytes=DEFAULT_SPLIT_UNIT_BYTES)
        if len(slices) >= ENOUGH_SLICES:
            return slices
        units = 1 if sampled and len(slices) < ENOUGH_SLICES // UNITS_PER_SLICE else UNITS_PER_SLICE
        return await self.client.compute_splits(self.table, units, unit_bytes=SMALL_UNIT_BYTES)

    def scan(self, part: KeyRange, max_versions: int) -> Scan:
        """A scan of one key range of the table."""
        return Scan(self.client, self.table, part, max_versions)


async def cut_tables(source: Side, destination: Side, *, sampled: bool) -> tuple[PrimaryKey, ...]:
    """Bounds of the slices in key order, taken from the table with more slices, so that no slice holds most rows.

    Raises:
        ServiceError, TransportError: a call failed permanently.
    """
    slices = max(await source.slices(sampled=sampled), await destination.slices(sampled=sampled), key=len)
    return (slices[0].start, *(part.end for part in slices))


def choose_slices(count: int, percent: float, seed: int) -> tuple[int, ...]:
    """Numbers of the slices to compare, ascending; at least one of `count`.

    A resumed run must choose the same slices under any version of Python, so a digest ranks them, not `random`. A
    larger percentage chooses the same slices and more.

    Args:
        count: number of slices of the table.
        percent: more than 0, at most 100.
        seed: selects the sample.
    """
    wanted = max(1, math.ceil(count * percent / 100))
    ranked = sorted(range(count), key=lambda number: _rank(seed, number))
    return tuple(sorted(ranked[:wanted]))


def _rank(seed: int, number: int) -> bytes:
    return hashlib.sha256(f"{seed}:{number}".encode()).digest()
