"""Rows wider than an answer of the service arrive whole, asynchronously and blocking."""

from __future__ import annotations

import asyncio

import pytest

from ots_emulator import Emulator, Settings
from ots_tunnel.client.sync_table import SyncTableClient
from ots_tunnel.client.table import TableClient
from ots_tunnel.client.table_calls import RangePage, RowChange
from ots_tunnel.model import Action, Credentials, KeyColumn, KeyType, Marker
from ots_tunnel.protocol.plainbuffer.codec import DecodedRow, decode_rows, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.tables import TableAdmin, TableSchema

KEYS = Credentials("test-id", "test-secret")
LOW, HIGH = (("id", Marker.INF_MIN),), (("id", Marker.INF_MAX),)


def write(endpoint: str) -> None:
    TableAdmin(endpoint, "demo", lambda: KEYS).create(TableSchema("t", (KeyColumn("id", KeyType.INTEGER),)))
    table = SyncTableClient(endpoint, "demo", lambda: KEYS)
    for key, cells in ((1, 1), (2, 60), (3, 1), (4, 60)):
        columns = [Column(f"c{number:03}", f"{key}-{number}") for number in range(cells)]
        table.batch_write("t", [RowChange(Action.PUT, encode_row((("id", key),), columns))])
    table.close()


def read(endpoint: str, *, blocking: bool, forward: bool) -> list[DecodedRow]:
    start, end = (LOW, HIGH) if forward else (HIGH, LOW)
    pages: list[RangePage] = []

    async def with_coroutines() -> None:
        table = TableClient(endpoint, "demo", lambda: KEYS)
        following = start
        while following is not None:
            page = await table.get_range("t", following, end, max_versions=1, direction_forward=forward)
            pages.append(page)
            following = page.next_start
        await table.close()

    if blocking:
        client, following = SyncTableClient(endpoint, "demo", lambda: KEYS), start
        while following is not None:
            page = client.get_range("t", following, end, max_versions=1, direction_forward=forward)
            pages.append(page)
            following = page.next_start
        client.close()
    else:
        asyncio.run(with_coroutines())
    return [row for page in pages for row in decode_rows(page.rows)]


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("forward", [True, False])
def test_a_wide_row_arrives_whole(blocking: bool, forward: bool) -> None:
    with Emulator(settings=Settings(range_bytes=600)) as emulator:
        write(emulator.endpoint)
        rows = read(emulator.endpoint, blocking=blocking, forward=forward)

    assert [row.primary_key[0][1] for row in rows] == ([1, 2, 3, 4] if forward else [4, 3, 2, 1])
    for row in rows:
        key = row.primary_key[0][1]
        assert [column.value for column in row.columns] == [f"{key}-{number}" for number in range(len(row.columns))]
        assert len(row.columns) == (60 if key in (2, 4) else 1)
