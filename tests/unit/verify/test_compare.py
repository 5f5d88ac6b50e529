"""Comparison of two tables: merging of scans over pages and slices, kinds of differences."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from ots_tunnel.client.table_calls import KeyRange, RangePage
from ots_tunnel.model import Marker, PrimaryKey
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.verify.compare import Difference, compare_tables

Rows = dict[tuple[str, int], tuple[Column, ...]]


def primary_key(key: tuple[str, int]) -> PrimaryKey:
    return (("a", key[0]), ("b", key[1]))


def order(key: PrimaryKey) -> tuple[tuple[int, object], ...]:
    """Sort key in the order of the service."""
    result: list[tuple[int, object]] = []
    for _, value in key:
        match value:
            case Marker.INF_MIN:
                result.append((0, 0))
            case Marker.INF_MAX:
                result.append((2, 0))
            case str():
                result.append((1, value.encode()))
            case _:
                result.append((1, value))
    return tuple(result)


class Table:
    """A table in memory whose pages end at random rows and may be empty."""

    def __init__(self, rows: Rows, seed: int = 0, splits: Sequence[tuple[str, int]] = ()) -> None:
        self.rows = sorted(
            ((primary_key(key), columns) for key, columns in rows.items()), key=lambda row: order(row[0])
        )
        self.chance = random.Random(seed)
        self.splits = sorted((primary_key(key) for key in splits), key=order)

    async def compute_splits(self, table: str, size_units: int = 1, *, unit_bytes: int = 0) -> tuple[KeyRange, ...]:
        low = (("a", Marker.INF_MIN), ("b", Marker.INF_MIN))
        high = (("a", Marker.INF_MAX), ("b", Marker.INF_MAX))
        bounds: list[PrimaryKey] = [low, *self.splits, high]
        return tuple(KeyRange(start, end) for start, end in pairwise(bounds))

    async def get_range(self, table: str, start: PrimaryKey, end: PrimaryKey, *, max_versions: int) -> RangePage:
        found = [row for row in self.rows if order(start) <= order(row[0]) < order(end)]
        count = self.chance.randint(0, 4)
        page, rest = found[:count], found[count:]
        body = b"".join(encode_row(*row, header=not index) for index, row in enumerate(page))
        return RangePage(body, rest[0][0] if rest else None)


keys = st.tuples(st.sampled_from(["", "a", "b", "ü", "\U0001f600", "\uffff"]), st.integers(-3, 3))
cells = st.lists(
    st.builds(Column, st.sampled_from(["x", "y"]), st.sampled_from([0.0, -0.0, 1, True, "1", b"1"]), st.integers(1, 3)),
    max_size=3,
    unique_by=lambda column: (column.name, column.timestamp_ms),
).map(tuple)
tables = st.dictionaries(keys, cells, max_size=25)


def same(a: tuple[Column, ...], b: tuple[Column, ...]) -> bool:
    return sorted(map(repr, a)) == sorted(map(repr, b))


@settings(deadline=None)
@given(a=tables, b=tables, merged=st.booleans(), splits=st.lists(keys, max_size=3, unique=True), seed=st.integers())
async def test_every_difference_is_found(
    a: Rows, b: Rows, merged: bool, splits: list[tuple[str, int]], seed: int
) -> None:
    b = {**a, **b} if merged else b
    result = await compare_tables(Table(a, seed, splits), "a", Table(b, seed + 1), "b")

    assert result.rows == len(a)
    assert result.versions == sum(map(len, a.values()))
    assert result.cells == sum(len({column.name for column in row}) for row in a.values())
    assert result.missing == len(a.keys() - b.keys())
    assert result.extra == len(b.keys() - a.keys())
    assert result.different == sum(not same(a[key], b[key]) for key in a.keys() & b.keys())
    assert result.equal == (result.differences == 0)
    expected = sorted(
        (key for key in a.keys() | b.keys() if key not in a or key not in b or not same(a[key], b[key])),
        key=lambda key: order(primary_key(key)),
    )
    assert [row.primary_key for row in result.first] == [primary_key(key) for key in expected[:10]]


async def test_the_order_of_cells_is_no_difference() -> None:
    one, two = Column("x", 1, 1), Column("y", 2, 1)
    result = await compare_tables(Table({("k", 1): (one, two)}), "a", Table({("k", 1): (two, one)}), "b")

    assert result.equal


async def test_kinds_keys_and_progress() -> None:
    a: Rows = {("k", 1): (), ("k", 2): (Column("x", 1, 1),), ("k", 3): ()}
    b: Rows = {("k", 0): (), ("k", 2): (Column("x", 1, 2),), ("k", 3): ()}
    seen: list[int] = []
    result = await compare_tables(Table(a), "a", Table(b), "b", progress=seen.append)

    assert [str(row) for row in result.first] == ["extra: a='k', b=0", "missing: a='k', b=1", "different: a='k', b=2"]
    assert [row.kind for row in result.first] == [Difference.EXTRA, Difference.MISSING, Difference.DIFFERENT]
    assert seen[-1] == 3
    assert seen == sorted(seen)
