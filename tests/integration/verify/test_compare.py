"""Comparison through the real client: many pages, slices and versions."""

from __future__ import annotations

import random

from ots_emulator import Settings
from ots_tunnel.model import Action, KeyColumn, KeyType
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.tables import RowWrite, TableSchema
from ots_tunnel.verify.compare import compare_tables
from tests.support.copy_scene import COPY, SOURCE, TablePair, pair_of_tables, row_change

SCHEMA = TableSchema(SOURCE, (KeyColumn("pk", KeyType.STRING), KeyColumn("n", KeyType.INTEGER)), max_versions=3)
ROWS = 400


def rows(base: int) -> list[RowWrite]:
    chance = random.Random(1)
    return [
        RowWrite(
            Action.PUT,
            (("pk", f"{number % 10}"), ("n", number - ROWS // 2)),
            tuple(Column("x", chance.randbytes(6_000), base + version) for version in range(chance.randint(0, 3))),
        )
        for number in range(ROWS)
    ]


async def fill(pair: TablePair, table: str, content: list[RowWrite]) -> None:
    for start in range(0, len(content), 100):
        outcomes = await pair.table.batch_write(table, [row_change(row) for row in content[start : start + 100]])
        assert all(outcome.code is None for outcome in outcomes)


async def test_tables_of_many_pages_and_slices() -> None:
    async with pair_of_tables(Settings(range_rows=7)) as pair:
        await pair.create(SCHEMA)
        base = int(pair.emulator.clock.now() * 1000)
        content = rows(base)
        await fill(pair, SOURCE, content)
        await fill(pair, COPY, content)
        slices = await pair.table.compute_splits(SOURCE, 1, unit_bytes=1 << 20)
        assert len(slices) > 2

        comparison = await compare_tables(pair.table, SOURCE, pair.table, COPY, slice_bytes=1 << 20)

        assert comparison.equal
        assert comparison.rows == ROWS
        assert comparison.versions == sum(len(row.columns) for row in content)
        assert comparison.cells == sum(bool(row.columns) for row in content)


async def test_every_kind_of_difference_is_found() -> None:
    async with pair_of_tables(Settings(range_rows=7)) as pair:
        await pair.create(SCHEMA)
        base = int(pair.emulator.clock.now() * 1000)
        content = rows(base)
        await fill(pair, SOURCE, content)
        other = [row for number, row in enumerate(content) if number % 50 != 3]
        extra = [RowWrite(Action.PUT, (("pk", "zz"), ("n", number))) for number in range(4)]
        await fill(pair, COPY, other + extra)
        await fill(pair, COPY, [RowWrite(Action.PUT, content[5].primary_key, (Column("x", 1, base),))])

        comparison = await compare_tables(pair.table, SOURCE, pair.table, COPY, slice_bytes=1 << 20)

        assert (comparison.missing, comparison.extra, comparison.different) == (8, 4, 1)
        assert len(comparison.first) == 10
        assert comparison.rows == ROWS


async def test_empty_tables_are_equal() -> None:
    async with pair_of_tables() as pair:
        await pair.create(SCHEMA)

        comparison = await pair.compare()

        assert (comparison.rows, comparison.equal) == (0, True)
