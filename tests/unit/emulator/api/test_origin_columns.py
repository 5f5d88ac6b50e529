"""Origin columns of a stream: its records carry the values that these columns had before the change."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.codec import decode_row
from tests.support.emulator.emulator_driver import Driver, delete_all, increment, put

ON = {"enable_stream": True, "expiration_time": 24}


async def with_origin(driver: Driver, *columns: str) -> Any:
    spec = pb.StreamSpecification(**ON, columns_to_get=columns)
    return await driver.call("UpdateTable", table_name="t", stream_spec=spec)


async def origins(driver: Driver) -> list[list[tuple[str, Any, int | None]]]:
    """The former cells in each record of the table, read by its tunnel and by its stream, which must agree."""
    tunnel = await driver.create_tunnel("Stream", flag="EARLIEST")
    (channel,) = await driver.channels(tunnel, "Stream")
    token = (await driver.checkpoint_of(tunnel, channel)).checkpoint
    by_tunnel = (await driver.read(tunnel, channel, token)).records
    (stream,) = (await driver.call("ListStream", table_name="t")).streams
    (shard,) = (await driver.call("DescribeStream", stream_id=stream.stream_id)).shards
    place = await driver.call("GetShardIterator", stream_id=stream.stream_id, shard_id=shard.shard_id)
    by_stream = (await driver.call("GetStreamRecord", shard_iterator=place.shard_iterator)).stream_records
    assert [record.SerializeToString() for record in by_tunnel] == [record.SerializeToString() for record in by_stream]
    found = []
    for record in by_tunnel:
        assert decode_row(record.record).primary_key == (("k", 1),)
        if not record.HasField("origin_record"):
            found.append([])
            continue
        row = decode_row(record.origin_record)
        assert row.primary_key == (("k", 1),)
        found.append([(column.name, column.value, column.timestamp_ms) for column in row.columns])
    return found


async def test_every_record_of_a_row_has_the_former_values_of_origin_columns(driver: Driver) -> None:
    details = (await with_origin(driver, "col1", "n")).stream_details
    assert list(details.column_to_get) == ["col1", "n"]
    first = driver.now_ms
    await driver.put(1, put("col1", "ori"), put("other", 1))
    driver.clock.advance(1)
    await driver.update(1, put("col1", "tar"), increment("n", 5))
    await driver.update(1, put("other", 2))
    await driver.update(1, delete_all("col1"))
    await driver.put(1, put("col1", "new"))
    await driver.delete(1)
    await driver.delete(1)

    second = driver.now_ms
    assert await origins(driver) == [
        [],
        [("col1", "ori", first)],
        [("col1", "tar", second), ("n", 5, second)],
        [("col1", "tar", second), ("n", 5, second)],
        [("n", 5, second)],
        [("col1", "new", second)],
        [],
    ]


async def test_an_origin_record_is_its_newest_version(driver: Driver) -> None:
    await with_origin(driver, "a")
    now = driver.now_ms
    await driver.put(1, put("a", 1, now), put("a", 2, now + 1))
    await driver.delete(1)

    assert await origins(driver) == [[], [("a", 2, now + 1)]]


async def test_a_stream_that_is_on_may_get_other_origin_columns(driver: Driver) -> None:
    await with_origin(driver, "a")
    (before,) = (await driver.call("ListStream", table_name="t")).streams
    await with_origin(driver, "a", "b")
    (after,) = (await driver.call("ListStream", table_name="t")).streams
    described = (await driver.call("DescribeTable", table_name="t")).stream_details

    assert before == after
    assert list(described.column_to_get) == ["a", "b"]
    enabled = (400, "OTSParameterInvalid", "Stream is already enabled.")
    for change in (ON, {**ON, "expiration_time": 48, "columns_to_get": ["c"]}):
        spec = pb.StreamSpecification(**change)
        assert await driver.refused("UpdateTable", table_name="t", stream_spec=spec) == enabled


async def test_a_table_is_created_with_origin_columns() -> None:
    driver = Driver()
    keys = [pb.PrimaryKeySchema(name="k", type="INTEGER")]
    await driver.call(
        "CreateTable",
        table_meta=pb.TableMeta(table_name="t", primary_key=keys),
        reserved_throughput=pb.ReservedThroughput(capacity_unit=pb.CapacityUnit(read=0, write=0)),
        table_options=pb.TableOptions(time_to_live=-1, max_versions=1),
        stream_spec=pb.StreamSpecification(**ON, columns_to_get=["a"]),
    )
    await driver.put(1, put("a", 1), put("b", 1))
    await driver.update(1, put("b", 2))

    assert await origins(driver) == [[], [("a", 1, driver.now_ms)]]


@pytest.mark.parametrize("name", ["", "#a", "x" * 256])
async def test_an_origin_column_is_one_that_a_table_can_have(driver: Driver, name: str) -> None:
    spec = pb.StreamSpecification(**ON, columns_to_get=[name])
    refused = (400, "OTSParameterInvalid", f"Invalid column name: '{name}'.")

    assert await driver.refused("UpdateTable", table_name="t", stream_spec=spec) == refused


async def test_origin_columns_survive_a_restart(tmp_path: Any) -> None:
    driver = Driver(tmp_path / "data")
    await driver.create_table()
    await with_origin(driver, "a")
    await driver.put(1, put("a", 1))
    await driver.delete(1)

    driver.check_crash()
    again = Driver(tmp_path / "data")
    described = await again.call("DescribeTable", table_name="t")
    assert list(described.stream_details.column_to_get) == ["a"]
    assert [len(cells) for cells in await origins(again)] == [0, 1]
    again.emulator.close()
