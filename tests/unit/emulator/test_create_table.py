"""What can be chosen when a table is created: partitions in advance, encryption; and when it may be used."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from ots_tunnel.errors import ServiceError
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer import decode_primary_key, encode_value
from tests.unit.emulator.driver import Driver


async def create(driver: Driver, kind: str = "STRING", **fields: Any) -> None:
    await driver.call(
        "CreateTable",
        table_meta=pb.TableMeta(table_name="t", primary_key=[pb.PrimaryKeySchema(name="k", type=kind)]),
        reserved_throughput=pb.ReservedThroughput(capacity_unit=pb.CapacityUnit(read=0, write=0)),
        table_options=pb.TableOptions(time_to_live=-1, max_versions=1),
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
        (ranges(""), "must be a non-empty STRING of column 'k'"),
        (ranges(5), "must be a non-empty STRING of column 'k'"),
        (ranges("x" * 65), "exceeds the MaxLength:64 with CurrentLength:65"),
        (ranges(*"abcdefghij"), "The count of partitions cannot be greater than 10"),
    ],
)
async def test_bad_partitions_are_refused(partitions: list[pb.PartitionRange], message: str) -> None:
    with pytest.raises(ServiceError, match=message):
        await create(Driver(), partitions=partitions)


async def test_encryption_is_remembered() -> None:
    driver = Driver()
    spec = pb.SSESpecification(enable=True, key_type="SSE_BYOK", key_id="k", role_arn="r")
    await create(driver, sse_spec=spec)

    details = (await driver.call("DescribeTable", table_name="t")).sse_details

    assert (details.enable, details.key_id, details.role_arn) == (True, "k", "r")


async def test_secondary_indexes_are_refused_with_a_reason() -> None:
    index = pb.IndexMeta(name="i", index_update_mode="IUM_ASYNC_INDEX", index_type="IT_GLOBAL_INDEX")
    with pytest.raises(ServiceError, match="index_metas of CreateTable"):
        await create(Driver(), index_metas=[index])


async def test_a_new_table_is_not_ready_where_a_delay_is_set() -> None:
    driver = Driver(table_ready_delay=30.0)
    await driver.create_table()

    with pytest.raises(ServiceError, match="OTSTableNotReady"):
        await driver.get(1)
    driver.clock.advance(31)
    assert await driver.get(1) is None


async def test_table_calls_are_limited_where_a_limit_is_set() -> None:
    driver = Driver(table_operations_per_second=10)
    for _ in range(10):
        await driver.call("ListTable")

    with pytest.raises(ServiceError, match="Too frequent table operations"):
        await driver.call("ListTable")
    driver.clock.advance(1)
    await driver.call("ListTable")
