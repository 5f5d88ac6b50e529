"""Versions beyond the maximum and expired cells disappear for all readers at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ots_tunnel.errors import ServiceError
from ots_tunnel.model import Action, Marker
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.codec import decode_row, decode_rows, encode_primary_key, encode_row, encode_value
from tests.support.emulator.emulator_driver import IGNORE, Driver, delete_one, increment, put

Cells = list[tuple[str, Any]]
MakeDriver = Callable[..., Driver]
LOW, HIGH = (("k", Marker.INF_MIN),), (("k", Marker.INF_MAX),)


async def from_get(driver: Driver) -> Cells | None:
    row = await driver.get(1)
    return None if row is None else [(column.name, column.value) for column in row.columns]


async def from_batch(driver: Driver) -> Cells | None:
    asked = pb.TableInBatchGetRowRequest(
        table_name="t",
        primary_key=[encode_primary_key((("k", 1),))],
        time_range=pb.TimeRange(start_time=0, end_time=1 << 62),
    )
    ((row,),) = ((table.rows) for table in (await driver.call("BatchGetRow", tables=[asked])).tables)
    return [(column.name, column.value) for column in decode_row(row.row).columns] if row.row else None


async def from_range(driver: Driver, direction: str = "FORWARD") -> Cells | None:
    start, end = (LOW, HIGH) if direction == "FORWARD" else (HIGH, LOW)
    answer = await driver.call(
        "GetRange",
        table_name="t",
        direction=direction,
        max_versions=100,
        inclusive_start_primary_key=encode_primary_key(start),
        exclusive_end_primary_key=encode_primary_key(end),
    )
    rows = [row for row in decode_rows(answer.rows) if row.primary_key == (("k", 1),)]
    return [(column.name, column.value) for column in rows[0].columns] if rows else None


async def from_range_backwards(driver: Driver) -> Cells | None:
    return await from_range(driver, "BACKWARD")


async def from_base_channel(driver: Driver) -> Cells | None:
    tunnel = await driver.create_tunnel("BaseData")
    client = await driver.connect(tunnel)
    found: dict[Any, Cells] = {}
    for channel in await driver.heartbeat(tunnel, client):
        for _, row in (await driver.drain(tunnel, channel))[0]:
            found[row.primary_key] = [(column.name, column.value) for column in row.columns]
    await driver.call("DeleteTunnel", table_name="t", tunnel_name="tunnel", tunnel_id=tunnel)
    return found.get((("k", 1),))


async def from_transaction(driver: Driver) -> Cells | None:
    key = encode_primary_key((("k", 1),))
    transaction = (await driver.call("StartLocalTransaction", table_name="t", key=key)).transaction_id
    row = await driver.get(1, transaction_id=transaction)
    await driver.call("AbortTransaction", transaction_id=transaction)
    return None if row is None else [(column.name, column.value) for column in row.columns]


READERS = [from_get, from_batch, from_range, from_range_backwards, from_base_channel, from_transaction]
Reader = Callable[[Driver], Any]


@pytest.mark.parametrize("reader", READERS)
async def test_versions_beyond_the_maximum(make_driver: MakeDriver, reader: Reader) -> None:
    driver = make_driver()
    await driver.create_table(max_versions=2)
    now = driver.now_ms
    await driver.put(1, put("a", 1, now), put("a", 2, now + 1))
    await driver.update(1, put("a", 3, now + 2), put("b", 1, now))

    assert await reader(driver) == [("a", 3), ("a", 2), ("b", 1)]
    await driver.update(1, delete_one("a", now + 2))
    assert await reader(driver) == [("a", 2), ("b", 1)]
    await driver.call("UpdateTable", table_name="t", table_options=pb.TableOptions(max_versions=1))
    await driver.update(1, put("b", 2, now + 3))
    assert await reader(driver) == [("a", 2), ("b", 2)]


@pytest.mark.parametrize("reader", READERS)
async def test_cells_beyond_their_time(make_driver: MakeDriver, reader: Reader) -> None:
    driver = make_driver(least_time_to_live=100)
    await driver.create_table(max_versions=3, ttl=100)
    start = driver.now_ms
    await driver.put(1, put("a", 1, start), put("a", 2, start + 50_000), put("b", 1, start))

    driver.clock.advance(100)
    assert await reader(driver) == [("a", 2), ("a", 1), ("b", 1)]
    driver.clock.advance(1)
    assert await reader(driver) == [("a", 2)]
    driver.clock.advance(50)
    assert await reader(driver) is None


@pytest.mark.parametrize("reader", READERS)
async def test_a_shorter_time_to_live(make_driver: MakeDriver, reader: Reader) -> None:
    driver = make_driver(least_time_to_live=500)
    await driver.create_table(max_versions=3)
    await driver.put(1, put("a", 1))
    driver.clock.advance(1000)
    await driver.put(2, put("a", 2))
    await driver.call("UpdateTable", table_name="t", table_options=pb.TableOptions(time_to_live=500))

    assert await reader(driver) is None
    assert await driver.get(2) is not None


@pytest.fixture
async def expired(make_driver: MakeDriver) -> Driver:
    """Row 1 has lost column ``n``, row 2 everything."""
    driver = make_driver(least_time_to_live=100)
    await driver.create_table(max_versions=3, ttl=100)
    start = driver.now_ms
    await driver.put(1, put("n", 5, start), put("z", 1, start + 90_000))
    await driver.put(2, put("n", 5, start))
    driver.clock.advance(101)
    return driver


async def test_an_increment_starts_anew(expired: Driver) -> None:
    await expired.update(1, increment("n", 2))
    await expired.update(2, increment("n", 3))

    assert [(await expired.cells(key))[0][1] for key in (1, 2)] == [2, 3]


async def test_conditions_do_not_see_expired_cells(expired: Driver) -> None:
    single = pb.SingleColumnValueFilter(
        comparator="CT_EQUAL",
        column_name="n",
        column_value=encode_value(5),
        filter_if_missing=True,
        latest_version_only=True,
    )
    five = pb.Filter(type="FT_SINGLE_COLUMN_VALUE", filter=single.SerializeToString()).SerializeToString()

    async def write(key: int, **condition: Any) -> None:
        row = encode_row((("k", key),), [put("m", 1)])
        await expired.call("PutRow", table_name="t", row=row, condition=pb.Condition(**condition))

    for key, condition in (
        (1, {"row_existence": "IGNORE", "column_condition": five}),
        (2, {"row_existence": "EXPECT_EXIST"}),
    ):
        with pytest.raises(ServiceError, match="OTSConditionCheckFail"):
            await write(key, **condition)
    assert await expired.get(1, filter=five) is None
    await write(2, row_existence="EXPECT_NOT_EXIST")


async def test_expired_rows_are_not_counted(expired: Driver) -> None:
    def table() -> dict[str, Any]:
        return expired.emulator.state()["instances"][0]["tables"][0]

    assert table()["rows"] == 1
    assert table()["bytes"] < 60
    expired.clock.advance(100)
    assert (table()["rows"], table()["bytes"]) == (0, 0)


async def test_an_update_does_not_bring_expired_cells_back(expired: Driver) -> None:
    """The record of an update has the written cells, and the row has only cells that have not expired."""
    await expired.write((Action.UPDATE, 2, [put("a", 1)]))

    assert [name for name, _, _ in await expired.cells(2)] == ["a"]


async def test_a_row_without_cells_does_not_expire(make_driver: MakeDriver) -> None:
    driver = make_driver(least_time_to_live=100)
    await driver.create_table(ttl=100)
    await driver.call("PutRow", table_name="t", row=encode_row((("k", 1),)), condition=IGNORE)
    driver.clock.advance(1000)

    assert await driver.cells(1) == []


async def test_expired_rows_have_no_size(make_driver: MakeDriver) -> None:
    driver = make_driver(least_time_to_live=100)
    await driver.create_table(ttl=100)
    for key in range(4):
        await driver.put(key, put("a", b"x" * 1_000_000))
    asked = {"table_name": "t", "split_size": 1, "split_size_unit_in_byte": 1 << 20}

    assert len((await driver.call("ComputeSplitPointsBySize", **asked)).split_points) == 3
    driver.clock.advance(101)
    assert not (await driver.call("ComputeSplitPointsBySize", **asked)).split_points
