"""Rows of one partition key stay in one partition, however a table is cut."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

import pytest

from ots_emulator.refusal import Refusal
from ots_emulator.tables.cuts import check_split_key
from ots_emulator.tables.keys import KeySchema
from ots_tunnel.model import KeyColumn, KeyType
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.codec import decode_primary_key, encode_row
from tests.support.emulator.emulator_driver import IGNORE, Driver


async def create(driver: Driver, *rows: tuple[str, Iterable[int]], name: str = "two", hours: int = 24) -> None:
    """Create a table with partition key ``p`` and a second key column ``k``, and put rows, a batch for each `p`."""
    meta = pb.TableMeta(table_name=name)
    meta.primary_key.add(name="p", type="STRING")
    meta.primary_key.add(name="k", type="INTEGER")
    await driver.call(
        "CreateTable",
        table_meta=meta,
        reserved_throughput=pb.ReservedThroughput(capacity_unit=pb.CapacityUnit(read=0, write=0)),
        table_options=pb.TableOptions(time_to_live=-1, max_versions=1),
        stream_spec=pb.StreamSpecification(enable_stream=True, expiration_time=hours),
    )
    for p, keys in rows:
        batch = pb.TableInBatchWriteRowRequest(table_name=name)
        for k in keys:
            batch.rows.add(type="PUT", row_change=encode_row((("p", p), ("k", k)), ()), condition=IGNORE)
        await driver.call("BatchWriteRow", tables=[batch])


async def cuts(driver: Driver) -> list[Any]:
    described = await driver.call("DescribeTable", table_name="two")
    splits = [decode_primary_key(split) for split in described.shard_splits]
    assert {tuple(name for name, _ in split) for split in splits} <= {("p",)}, "more than the partition key"
    return [split[0][1] for split in splits]


@pytest.mark.parametrize(
    ("rows", "at"),
    [
        ([("a", range(100)), ("b", range(1))], ["b"]),
        ([("a", range(1)), ("b", range(100))], ["b"]),
        ([("a", range(40)), ("b", range(50)), ("c", range(1))], ["b"]),
        ([("a", range(10)), ("b", range(40)), ("c", range(40))], ["c"]),
    ],
)
async def test_a_split_is_at_the_partition_key_nearest_to_the_middle(
    make_driver: type[Driver], rows: list[tuple[str, range]], at: list[str]
) -> None:
    driver = make_driver()
    await create(driver, *rows)

    driver.emulator.split("demo", "two")

    assert await cuts(driver) == at


async def test_a_partition_of_one_partition_key_is_not_split(make_driver: type[Driver]) -> None:
    driver = make_driver()
    await create(driver, ("only", range(100)))

    with pytest.raises(Refusal, match="cannot be split: its rows have fewer than 2 partition keys"):
        driver.emulator.split("demo", "two")
    with pytest.raises(Refusal, match="allowed is a value of the partition key alone"):
        driver.emulator.split("demo", "two", key=(b"only", 50))

    assert await cuts(driver) == []


@pytest.mark.parametrize(
    ("key", "complaint"),
    [
        ((), "split key: found (), allowed is a value of the partition key alone"),
        (b"m", "split key: found b'm', allowed is a value of the partition key alone"),
        (("m",), "split key, 'p': found 'm', allowed is text in UTF-8 as bytes, at most 1024"),
        ((5,), "split key, 'p': found 5, allowed is text in UTF-8 as bytes, at most 1024"),
        ((b"\xff",), r"split key, 'p': found b'\xff', allowed is text in UTF-8 as bytes, at most 1024"),
        ((b"m" * 1025,), "...mmmmmmmmmmmmm' of 1025 bytes, allowed is text in UTF-8 as bytes, at most 1024"),
    ],
)
async def test_a_split_key_is_one_that_a_row_could_have(
    make_driver: type[Driver], key: tuple[Any, ...], complaint: str
) -> None:
    driver = make_driver()
    await create(driver, ("a", range(2)), ("z", range(2)))

    with pytest.raises(Refusal) as refused:
        driver.emulator.split("demo", "two", key=key)
    assert refused.value.message.endswith(complaint)
    driver.emulator.split("demo", "two", key=(b"m" * 1024,))

    assert await cuts(driver) == ["m" * 1024]


@pytest.mark.parametrize(
    ("kind", "value", "fits"),
    [
        (KeyType.INTEGER, -(2**63), True),
        (KeyType.INTEGER, 2**63, False),
        (KeyType.INTEGER, True, False),
        (KeyType.INTEGER, b"5", False),
        (KeyType.BINARY, b"\xff", True),
        (KeyType.BINARY, "m", False),
    ],
)
def test_a_split_key_is_of_the_type_of_its_column(kind: KeyType, value: Any, *, fits: bool) -> None:
    schema = KeySchema([KeyColumn("p", kind)])

    with nullcontext() if fits else pytest.raises(Refusal, match="split key, 'p': found "):
        check_split_key(schema, (value,))


async def test_the_largest_partition_that_can_be_split_is_split(make_driver: type[Driver]) -> None:
    driver = make_driver()
    await create(driver, ("a", range(100)), ("b", range(10)), ("c", range(10)))
    driver.emulator.split("demo", "two")

    driver.emulator.split("demo", "two")

    assert await cuts(driver) == ["b", "c"]


async def test_a_table_splits_itself_between_partition_keys(make_driver: type[Driver]) -> None:
    driver = make_driver(partitions=4, partition_rows=16)
    await create(driver, ("hot", range(150)), ("a", range(20)), ("b", range(20)), ("c", range(20)), ("z", range(20)))

    found = await cuts(driver)

    assert len(found) == 3
    assert set(found) <= {"a", "b", "c", "hot", "z"}


async def test_a_table_of_one_partition_key_does_not_split_itself(make_driver: type[Driver]) -> None:
    driver = make_driver(partitions=4, partition_rows=16)

    await create(driver, ("only", range(200)))

    assert await cuts(driver) == []


async def test_base_channels_start_at_partition_keys(make_driver: type[Driver]) -> None:
    driver = make_driver(base_split_bytes=100)
    await create(driver, ("a", range(100)), ("b", range(100)), ("c", range(100)))
    tunnel = await driver.create_tunnel("BaseData", table="two")

    channels = await driver.channels(tunnel, "BaseData")

    sizes = [len((await driver.drain(tunnel, channel))[0]) for channel in channels]
    assert sizes == [100, 100, 100]
