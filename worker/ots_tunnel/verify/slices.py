"""How a table is cut into slices, and which slices a sample takes (docs/architecture.md 4.5)."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Protocol

from ots_tunnel.client.table_calls import DEFAULT_SPLIT_UNIT_BYTES, KeyRange, TableDescription
from ots_tunnel.model import PrimaryKey
from ots_tunnel.verify.scan import ReadsTable, Scan

#: Unit of small slices, bytes; the least that the service accepts (docs/data-plane.md 2.7).
SMALL_UNIT_BYTES = 1_048_576

#: Small slices are of so many units; a sample's are of one, so that there is something to choose from.
UNITS_PER_SLICE = 8

#: Slices of 100 MB from which on a table is not cut into small ones: their list would be long.
ENOUGH_SLICES = 400

#: Slices from which on they are made larger: their list is part of every write of the state.
MOST_SLICES = 10_000


class DescribesTable(ReadsTable, Protocol):
    """The part of `TableClient` that a job needs."""

    async def describe_table(self, table: str) -> TableDescription:
        """See `TableClient.describe_table`."""
        ...


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two tables and who reads it."""

    client: DescribesTable
    table: str

    async def describe(self) -> TableDescription:
        """Keys and options of the table."""
        return await self.client.describe_table(self.table)

    async def slices(self, *, sampled: bool) -> tuple[KeyRange, ...]:
        """The table in slices of 100 MB; small ones where these would be few, larger ones where they are many."""
        slices = await self.client.compute_splits(self.table, 1, unit_bytes=DEFAULT_SPLIT_UNIT_BYTES)
        if len(slices) > MOST_SLICES:
            units = -(-len(slices) // MOST_SLICES)
            return await self.client.compute_splits(self.table, units, unit_bytes=DEFAULT_SPLIT_UNIT_BYTES)
        if len(slices) >= ENOUGH_SLICES:
            return slices
        units = 1 if sampled and len(slices) < ENOUGH_SLICES // UNITS_PER_SLICE else UNITS_PER_SLICE
        return await self.client.compute_splits(self.table, units, unit_bytes=SMALL_UNIT_BYTES)

    def scan(self, part: KeyRange, max_versions: int) -> Scan:
        """A scan of a part of the table."""
        return Scan(self.client, self.table, part, max_versions)


async def cut_tables(source: Side, destination: Side, *, sampled: bool) -> tuple[PrimaryKey, ...]:
    """Ends of the slices: those of the table that has more, so that neither has all its rows in one.

    Raises:
        ServiceError, TransportError: a call failed for good.
    """
    slices = max(await source.slices(sampled=sampled), await destination.slices(sampled=sampled), key=len)
    return (slices[0].start, *(part.end for part in slices))


def choose_slices(count: int, percent: float, seed: int) -> tuple[int, ...]:
    """Numbers of the slices to compare, ascending; at least one of `count`.

    A digest ranks the slices, not `random`, whose choice another Python may change: a sample that is taken up again
    has to be the same one. A larger percentage takes the same slices and more.

    Args:
        count: slices of the table.
        percent: more than 0, at most 100.
        seed: says which.
    """
    wanted = max(1, math.ceil(count * percent / 100))
    ranked = sorted(range(count), key=lambda number: _rank(seed, number))
    return tuple(sorted(ranked[:wanted]))


def _rank(seed: int, number: int) -> bytes:
    return hashlib.sha256(f"{seed}:{number}".encode()).digest()
