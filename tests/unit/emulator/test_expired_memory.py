"""What time has removed leaves the memory, also where nobody reads it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from ots_emulator.tables.partition import Partition
from ots_tunnel.model import Action
from ots_tunnel.protocol import table_pb2
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.http.rpc import build_request
from ots_tunnel.protocol.plainbuffer.codec import encode_primary_key, encode_row
from tests.support.emulator.emulator_driver import CREDENTIALS, IGNORE, Driver, put
from tests.support.emulator.emulator_state import unkept

HOUR = 3600
#: More entries than are removed at once.
MANY = 600


def entries(driver: Driver) -> int:
    """Entries of every log and of every partition that somebody still refers to."""
    known = {
        id(partition): partition
        for instance in driver.emulator.instances.values()
        for partition in [
            *(part for table in instance.tables.values() if table.log for part in table.log.partitions.values()),
            *(channel.source for tunnel in instance.tunnels.values() for channel in tunnel.channels.values()),
        ]
        if isinstance(partition, Partition)
    }
    return sum(len(partition.entries) for partition in known.values())


@pytest.fixture(params=[False, True], ids=["memory", "durable"])
async def scene(request: pytest.FixtureRequest, make_driver: Callable[..., Driver]) -> Driver:
    """A table whose stream keeps records for an hour, and has many of them."""
    driver = make_driver(page_rows=10) if request.param else Driver(page_rows=10)
    await driver.create_table(hours=1)
    await driver.fill(MANY)
    assert entries(driver) == MANY
    return driver


@pytest.mark.parametrize("call", ["ListTable", "BatchWriteRow"])
async def test_records_beyond_the_retention_go_although_nobody_reads(scene: Driver, call: str) -> None:
    scene.clock.advance(HOUR + 60)

    if call == "ListTable":
        await scene.call(call)
    else:
        await scene.put(1, put("v", 1))

    assert entries(scene) == (0 if call == "ListTable" else 1)


async def test_records_of_an_instance_without_calls_go_with_those_of_others(scene: Driver) -> None:
    scene.emulator.add_instance("other", {"test-id": "test-secret"})
    scene.clock.advance(HOUR + 60)

    request = build_request(
        TABLE_OPERATIONS["ListTable"],
        table_pb2.ListTableRequest(),
        instance="other",
        credentials=CREDENTIALS,
        now=scene.clock.now(),
        trace_id="t",
    )
    answer = await scene.emulator.handle(request)

    assert answer.status == 200
    assert entries(scene) == 0
    assert unkept(scene.emulator) == []
    scene.emulator.remove_instance("other")


async def test_few_large_records_do_not_wait_for_many(scene: Driver) -> None:
    scene.clock.advance(HOUR + 60)
    await scene.call("ListTable")
    for key in range(40):
        await scene.put(key, put("v", "x" * 10_000))
    scene.clock.advance(HOUR + 60)
    await scene.put(1, put("v", 1))

    assert entries(scene) == 1


async def test_a_closed_partition_leaves_nothing_behind_in_the_channels_of_a_tunnel(scene: Driver) -> None:
    await scene.create_tunnel("Stream", flag="EARLIEST")
    scene.clock.advance(HOUR / 2)
    await scene.put(1, put("v", 1))
    scene.emulator.split("demo", "t")
    scene.emulator.commit()
    scene.clock.advance(HOUR + 60)
    await scene.call("ListTable")

    assert entries(scene) == 0


async def test_a_stream_that_is_switched_off_leaves_nothing_behind_in_the_channels_of_a_tunnel(scene: Driver) -> None:
    await scene.create_tunnel("Stream", flag="EARLIEST")
    await scene.call("UpdateTable", table_name="t", stream_spec={"enable_stream": False})

    assert entries(scene) == 0


async def test_what_is_removed_is_counted_and_its_pages_dropped(scene: Driver) -> None:
    instance = scene.emulator.instances["demo"]
    tunnel = await scene.create_tunnel("Stream", flag="EARLIEST")
    (channel,) = await scene.channels(tunnel, "Stream")
    await scene.read(tunnel, channel, (await scene.checkpoint_of(tunnel, channel)).checkpoint)
    log = instance.tables["t"].log
    assert log is not None
    size = log.size_bytes
    assert len(instance.pages) == 1

    scene.clock.advance(HOUR + 60)
    await scene.call("ListTable")

    assert repr(instance.freed) == f"Freed({size} bytes)"
    assert len(instance.pages) == 0


async def test_a_trimmed_stream_is_counted(scene: Driver) -> None:
    instance = scene.emulator.instances["demo"]
    log = instance.tables["t"].log
    assert log is not None
    size = log.size_bytes

    scene.emulator.trim("demo", "t")

    assert entries(scene) == 0
    assert repr(instance.freed) == f"Freed({size} bytes)"


async def test_rows_beyond_their_time_to_live_go_although_nobody_reads() -> None:
    driver = Driver()
    await driver.create_table(ttl=86_400)
    await driver.fill(MANY)
    instance = driver.emulator.instances["demo"]
    size = instance.tables["t"].size_bytes

    driver.clock.advance(86_400 + 60)
    await driver.call("ListTable")

    assert len(instance.tables["t"]) == 0
    assert repr(instance.freed) == f"Freed({size} bytes)"


async def test_deleted_rows_are_counted_at_the_next_look() -> None:
    driver = Driver()
    await driver.create_table()
    await driver.fill(200)
    instance = driver.emulator.instances["demo"]
    size = instance.tables["t"].size_bytes
    await driver.write(*[(Action.DELETE, key, ()) for key in range(200)])

    driver.clock.advance(60)
    await driver.call("ListTable")

    assert repr(instance.freed) == f"Freed({size} bytes)"


async def test_transactions_beyond_their_time_go_although_nobody_writes() -> None:
    driver = Driver(transaction_lifetime=60.0)
    await driver.create_table()
    started = await driver.call("StartLocalTransaction", table_name="t", key=encode_primary_key((("k", 1),)))
    row = encode_row((("k", 1),), [put("v", "x" * 1000)])
    await driver.call("PutRow", table_name="t", row=row, condition=IGNORE, transaction_id=started.transaction_id)
    instance = driver.emulator.instances["demo"]

    driver.clock.advance(61)
    await driver.call("ListTable")

    assert len(instance.transactions) == 0
    assert re.fullmatch(r"Freed\(2\d\d\d bytes\)", repr(instance.freed)), "the row in the copy, and the change"


@pytest.mark.parametrize(
    ("operation", "fields"),
    [("GetStreamRecord", {"shard_iterator": "{shard}:0"}), ("GetShardIterator", {"stream_id": "{stream}"})],
)
async def test_a_shard_is_gone_on_time_whoever_asks(operation: str, fields: dict[str, Any]) -> None:
    """Not only once somebody has listed the shards."""
    driver = Driver()
    await driver.create_table(hours=1)
    await driver.fill(10)
    log = driver.emulator.instances["demo"].tables["t"].log
    assert log is not None
    (shard,) = log.partitions
    driver.emulator.split("demo", "t")
    filled = {name: text.format(shard=shard, stream=log.stream_id) for name, text in fields.items()}
    if operation == "GetShardIterator":
        filled["shard_id"] = shard
    await driver.call("ListTable")
    driver.clock.advance(HOUR + 1)

    status, code, _ = await driver.refused(operation, **filled)

    gone = "OTSTrimmedDataAccess" if operation == "GetStreamRecord" else "OTSObjectNotExist"
    assert (status, code) == ((400, gone) if operation == "GetStreamRecord" else (404, gone))
