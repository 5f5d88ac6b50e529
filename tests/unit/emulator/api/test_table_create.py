"""Creation of tables: partitions in advance, encryption, and the delay until a table is ready."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import pytest

from ots_tunnel.errors import ServiceError
from ots_tunnel.model import Marker
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.codec import decode_primary_key, encode_value
from tests.support.emulator.emulator_driver import Driver


async def create(
    driver: Driver, kind: str = "STRING", *, options: Mapping[str, Any] = MappingProxyType({}), **fields: Any
) -> None:
    await driver.call(
        "CreateTable",
        table_meta=pb.TableMeta(table_name="t", primary_key=[pb.PrimaryKeySchema(name="k", type=kind)]),
        reserved_throughput=pb.ReservedThroughput(capacity_unit=pb.CapacityUnit(read=0, write=0)),
        table_options=pb.TableOptions(time_to_live=-1, max_versions=1, **options),
        **fields,
    )


def ranges(*cuts: Any) -> list[pb.PartitionRange]:
    low, high = bytes((9,)), bytes((10,))
    bounds = [low, *(encode_value(cut) for cut in cuts), high]
    return [pb.PartitionRange(begin=begin, end=end) for begin, end in pairwise(bounds)]


async def test_a_table_is_split_in_advance() -> None:
    driver = Driver()
    spec = pb.StreamSpecification(enable_stream=True, expiration_time=24)
    await create(driver, partitions=ranges("f", "p"), stream_spec=spec)

    described = await driver.call("DescribeTable", table_name="t")
    tunnel = await driver.describe(await driver.create_tunnel("Stream"))

    assert [decode_primary_key(cut) for cut in described.shard_splits] == [(("k", "f"),), (("k", "p"),)]
    assert len(tunnel.channels) == 3


@pytest.mark.parametrize(
    ("partitions", "message"),
    [
        (ranges("p", "f"), "must be continuous, in order"),
        (ranges("f", "f"), "must be continuous, in order"),
        (ranges(""), r"The value of partition range can not be empty string\. \("),
        (ranges(5), r"The value type of partition does not match with primary key\. \("),
        (ranges("x" * 65), "exceeds the MaxLength:64 with CurrentLength:65"),
        (ranges(*"abcdefghij"), "The count of partitions cannot be greater than 10"),
    ],
)
async def test_bad_partitions_are_refused(partitions: list[pb.PartitionRange], message: str) -> None:
    with pytest.raises(ServiceError, match=message):
        await create(Driver(), partitions=partitions)


@pytest.mark.parametrize(
    ("kind", "point", "message"),
    [
        ("INTEGER", -(1 << 63), "The value of partition range can not be INT64_MIN or INT64_MAX."),
        ("INTEGER", (1 << 63) - 1, "The value of partition range can not be INT64_MIN or INT64_MAX."),
        ("BINARY", b"", "The value of partition range can not be empty binary."),
        ("STRING", b"x", "The value type of partition does not match with primary key."),
        ("INTEGER", Marker.INF_MAX, "The value type of partition does not match with primary key."),
    ],
)
async def test_no_table_is_split_at_the_end_of_its_keys(kind: str, point: Any, message: str) -> None:
    refused = await Driver().refused(
        "CreateTable",
        table_meta=pb.TableMeta(table_name="t", primary_key=[pb.PrimaryKeySchema(name="k", type=kind)]),
        reserved_throughput=pb.ReservedThroughput(capacity_unit=pb.CapacityUnit(read=0, write=0)),
        table_options=pb.TableOptions(time_to_live=-1, max_versions=1),
        partitions=ranges(point),
    )

    assert refused == (400, "OTSParameterInvalid", message)


@pytest.mark.parametrize("whole", [True, False])
async def test_whether_updates_rewrite_the_row_is_chosen_when_a_table_is_created(whole: bool) -> None:
    driver = Driver()
    await create(driver, options={"update_full_row": whole})
    given = pb.TableOptions(max_versions=5, update_full_row=not whole)
    message = "The table options of UpdateTable must not contain updateFullRow."

    assert await driver.refused("UpdateTable", table_name="t", table_options=given) == (
        400,
        "OTSParameterInvalid",
        message,
    )
    described = await driver.call("DescribeTable", table_name="t")
    assert (described.table_options.update_full_row, described.table_options.max_versions) == (whole, 1)


async def test_encryption_is_remembered() -> None:
    driver = Driver()
    spec = pb.SSESpecification(enable=True, key_type="SSE_BYOK", key_id="k", role_arn="r")
    await create(driver, sse_spec=spec)

    details = (await driver.call("DescribeTable", table_name="t")).sse_details

    assert (details.enable, details.key_id, details.role_arn) == (True, "k", "r")


async def test_secondary_indexes_are_refused_with_a_reason() -> None:
    index = pb.IndexMeta(name="i", index_update_mode="IUM_ASYNC_INDEX", index_type="IT_GLOBAL_INDEX")
    with pytest.raises(ServiceError, match="CreateTable with index_metas is not available in this emulator: see"):
        await create(Driver(), index_metas=[index])


async def test_a_new_table_is_not_ready_before_the_delay_is_over() -> None:
    driver = Driver(table_ready_delay=30.0)
    await driver.create_table()

    with pytest.raises(ServiceError, match="OTSTableNotReady"):
        await driver.get(1)
    driver.clock.advance(31)
    assert await driver.get(1) is None


async def test_table_calls_are_limited_by_the_setting() -> None:
    driver = Driver(table_operations_per_second=10)
    for _ in range(10):
        await driver.call("ListTable")

    with pytest.raises(ServiceError, match="Too frequent table operations"):
        await driver.call("ListTable")
    driver.clock.advance(1)
    await driver.call("ListTable")


async def test_the_limit_of_table_calls_forgets_those_ahead_of_a_clock_that_was_set_back() -> None:
    driver = Driver(table_operations_per_second=1)
    await driver.call("ListTable")
    driver.emulator.advance_clock(-3600)

    await driver.call("ListTable")
    with pytest.raises(ServiceError, match="Too frequent table operations"):
        await driver.call("ListTable")


def units(read: int | None, write: int | None) -> pb.ReservedThroughput:
    return pb.ReservedThroughput(capacity_unit=pb.CapacityUnit(read=read, write=write))


async def test_reserved_throughput_is_remembered_and_half_of_it_can_change() -> None:
    driver = Driver(throughput_interval=120.0)
    await driver.create_table()
    created_s = int(driver.clock.now())
    driver.clock.advance(120)
    await driver.call("UpdateTable", table_name="t", reserved_throughput=units(5, None))
    driver.clock.advance(119)
    with pytest.raises(ServiceError, match="OTSTooFrequentReservedThroughputAdjustment: Capacity unit adjustment"):
        await driver.call("UpdateTable", table_name="t", reserved_throughput=units(6, 1))
    driver.clock.advance(1)
    await driver.call("UpdateTable", table_name="t", reserved_throughput=units(4, None))

    details = (await driver.call("DescribeTable", table_name="t")).reserved_throughput_details

    assert (details.capacity_unit.read, details.capacity_unit.write) == (4, 0)
    assert (details.last_increase_time, details.last_decrease_time) == (created_s + 120, created_s + 240)


async def test_negative_throughput_is_refused(driver: Driver) -> None:
    text = r"Invalid Capacity Unit for UpdateTable: Either read\(0\) or write\(-1\) should be non-negative"
    with pytest.raises(ServiceError, match=text):
        await driver.call("UpdateTable", table_name="t", reserved_throughput=units(0, -1))
    refused = await driver.refused(
        "CreateTable",
        table_meta=pb.TableMeta(table_name="n", primary_key=[pb.PrimaryKeySchema(name="k", type="STRING")]),
        reserved_throughput=units(-2, 0),
        table_options=pb.TableOptions(time_to_live=-1, max_versions=1),
    )
    assert refused[1:] == ("OTSParameterInvalid", "Invalid Capacity Unit:-2. Capacity Unit must be nonnegative.")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "No parameter is specified in table options"),
        ({"time_to_live": 0}, "TimeToLive cannot be 0 or less than -1"),
        ({"time_to_live": -2}, "TimeToLive cannot be 0 or less than -1"),
        ({"time_to_live": 86_399}, "TimeToLive must be -1 or greater equal than: 86400, found: 86399"),
        ({"max_versions": 0}, "The maximum versions cannot be less than or equal to 0"),
        ({"deviation_cell_version_in_sec": -1}, r"must be in range \[0, INT64_MAX/1000000\]"),
        ({"deviation_cell_version_in_sec": 9223372036855}, r"must be in range \[0, INT64_MAX/1000000\]"),
    ],
)
async def test_options_out_of_range_change_nothing(driver: Driver, options: dict[str, int], message: str) -> None:
    before = await driver.call("DescribeTable", table_name="t")
    with pytest.raises(ServiceError, match=message):
        await driver.call("UpdateTable", table_name="t", table_options=pb.TableOptions(**options))

    assert await driver.call("DescribeTable", table_name="t") == before


async def test_a_time_to_live_shorter_than_a_day_needs_a_setting(driver: Driver) -> None:
    for seconds in (1, 86_399):
        with pytest.raises(ServiceError, match=f"greater equal than: 86400, found: {seconds}"):
            await driver.create_table("short", ttl=seconds)
    await driver.create_table("day", ttl=86_400)

    driver.emulator.change_settings(least_time_to_live=1)
    await driver.create_table("short", ttl=1)


@pytest.mark.parametrize("missing", ["time_to_live", "max_versions"])
async def test_a_new_table_needs_its_options(missing: str) -> None:
    options = {"time_to_live": -1, "max_versions": 1}
    del options[missing]
    with pytest.raises(ServiceError, match="is missing while creating table"):
        await Driver().call(
            "CreateTable",
            table_meta=pb.TableMeta(table_name="t", primary_key=[pb.PrimaryKeySchema(name="k", type="STRING")]),
            reserved_throughput=units(0, 0),
            table_options=pb.TableOptions(**options),
        )


async def columns_refused(keys: list[pb.PrimaryKeySchema], defined: list[str]) -> str:
    meta = pb.TableMeta(
        table_name="t",
        primary_key=keys,
        defined_column=[pb.DefinedColumnSchema(name=name, type="DCT_STRING") for name in defined],
    )
    with pytest.raises(ServiceError) as refusal:
        await Driver().call(
            "CreateTable",
            table_meta=meta,
            reserved_throughput=units(0, 0),
            table_options=pb.TableOptions(time_to_live=-1, max_versions=1),
        )
    return str(refusal.value.message)


async def test_columns_are_checked() -> None:
    key = [pb.PrimaryKeySchema(name="k", type="STRING")]
    five = [pb.PrimaryKeySchema(name=f"k{number}", type="STRING") for number in range(5)]

    assert await columns_refused([], []) == "The number of primary key columns must be in range: [1, 4]."
    assert await columns_refused(five, []) == "The number of primary key columns must be in range: [1, 4]."
    two = [pb.PrimaryKeySchema(name=name, type="INTEGER", option=pb.AUTO_INCREMENT) for name in "ab"]
    assert await columns_refused([*key, *two], []) == "AUTO_INCREMENT primary key count must <= 1."
    assert await columns_refused(key * 2, []) == "Duplicated primary key name: 'k'."
    assert await columns_refused([pb.PrimaryKeySchema(name="#", type="STRING")], []) == "Invalid column name: '#'."
    assert await columns_refused(key, ["k"]) == "Duplicated defined column name: 'k'."
    assert await columns_refused(key, ["a" * 256]) == f"Invalid column name: '{'a' * 256}'."
    assert await columns_refused(key, [f"c{number}" for number in range(33)]) == (
        "The number of defined columns must be in range: [0, 32]."
    )


async def test_predefined_columns_are_described() -> None:
    driver = Driver()
    await driver.call(
        "CreateTable",
        table_meta=pb.TableMeta(
            table_name="t",
            primary_key=[pb.PrimaryKeySchema(name="k", type="BINARY")],
            defined_column=[pb.DefinedColumnSchema(name="a", type="DCT_BLOB")],
        ),
        reserved_throughput=units(0, 0),
        table_options=pb.TableOptions(time_to_live=-1, max_versions=1, update_full_row=True),
    )
    described = await driver.call("DescribeTable", table_name="t")

    assert [(column.name, column.type) for column in described.table_meta.defined_column] == [("a", pb.DCT_BLOB)]
    assert described.table_options.update_full_row
