"""The table stream: shards through splits and merges, iterators, retention (docs/data-plane.md 2.8)."""

from __future__ import annotations

from typing import Any

import pytest

from ots_emulator.refusal import Refusal
from ots_tunnel.errors import ServiceError
from ots_tunnel.protocol.plainbuffer.codec import DecodedRow, decode_row
from tests.support.emulator.emulator_driver import Driver, put


@pytest.fixture
async def streamed(make_driver: Any) -> Driver:
    driver: Driver = make_driver()
    await driver.create_table(hours=24)
    return driver


async def stream_id(driver: Driver) -> str:
    (stream,) = (await driver.call("ListStream", table_name="t")).streams
    return str(stream.stream_id)


async def shards(driver: Driver, **fields: Any) -> Any:
    return await driver.call("DescribeStream", stream_id=await stream_id(driver), **fields)


async def iterator(driver: Driver, shard: str, **fields: Any) -> str:
    answer = await driver.call("GetShardIterator", stream_id=await stream_id(driver), shard_id=shard, **fields)
    return str(answer.shard_iterator)


async def drain(driver: Driver, shard: str, *, limit: int | None = None) -> tuple[list[DecodedRow], bool]:
    """Every record of a shard, and whether it has ended."""
    place, rows = await iterator(driver, shard), []
    while True:
        answer = await driver.call("GetStreamRecord", shard_iterator=place, limit=limit)
        rows += [decode_row(record.record) for record in answer.stream_records]
        if not answer.next_shard_iterator:
            return rows, True
        if answer.next_shard_iterator == place:
            assert not answer.may_more_record
            return rows, False
        place = answer.next_shard_iterator


async def test_records_may_follow_every_page_that_has_some(streamed: Driver) -> None:
    """The service says so of the page with the last record as well; the next one is empty, and nothing follows it."""
    driver = streamed
    await driver.fill(3)
    (shard,) = (await shards(driver)).shards
    first = await driver.call("GetStreamRecord", shard_iterator=await iterator(driver, shard.shard_id))
    second = await driver.call("GetStreamRecord", shard_iterator=first.next_shard_iterator)

    assert (len(first.stream_records), first.may_more_record) == (3, True)
    assert (len(second.stream_records), second.may_more_record) == (0, False)
    assert second.next_shard_iterator == first.next_shard_iterator


async def everything(driver: Driver) -> dict[int, list[int]]:
    """All changes per key, children after their parents."""
    done: set[str] = set()
    changes: dict[int, list[int]] = {}
    waiting = list((await shards(driver)).shards)
    while waiting:
        ready = [shard for shard in waiting if {shard.parent_id, shard.parent_sibling_id} - {""} <= done]
        assert ready, "a shard waits for parents that are not there"
        for shard in ready:
            rows, ended = await drain(driver, shard.shard_id, limit=7)
            for row in rows:
                changes.setdefault(int(row.primary_key[0][1]), []).append(int(row.columns[0].value))
            waiting.remove(shard)
            if ended or not waiting:
                done.add(shard.shard_id)
            done.add(shard.shard_id)
    return changes


async def test_a_stream_is_listed_and_described(streamed: Driver) -> None:
    described = await shards(streamed)

    assert (described.table_name, described.expiration_time) == ("t", 24)
    assert described.creation_time == streamed.clock.now() * 1_000_000
    assert len(described.shards) == 1
    assert [stream.table_name for stream in (await streamed.call("ListStream")).streams] == ["t"]


async def test_a_table_without_a_stream_has_none(make_driver: Any) -> None:
    driver = make_driver()
    await driver.create_table()

    assert not (await driver.call("ListStream", table_name="t")).streams


async def test_every_change_comes_once_and_in_order_through_splits_and_merges(streamed: Driver) -> None:
    for number in range(1, 4):
        for key in range(20):
            await streamed.put(key, put("v", number))
    left, *_ = streamed.emulator.split("demo", "t")[1:]
    for key in range(20):
        await streamed.put(key, put("v", 4))
    streamed.emulator.split("demo", "t", left)
    for key in range(20):
        await streamed.put(key, put("v", 5))
    streamed.emulator.merge("demo", "t")
    for key in range(20):
        await streamed.put(key, put("v", 6))
    streamed.emulator.merge("demo", "t")
    for key in range(20):
        await streamed.put(key, put("v", 7))

    assert await everything(streamed) == {key: [1, 2, 3, 4, 5, 6, 7] for key in range(20)}


async def test_children_name_their_parents(streamed: Driver) -> None:
    await streamed.fill(10)
    parent, first, second = streamed.emulator.split("demo", "t")
    *_, child = streamed.emulator.merge("demo", "t")

    links = {shard.shard_id: (shard.parent_id, shard.parent_sibling_id) for shard in (await shards(streamed)).shards}

    assert links == {parent: ("", ""), first: (parent, ""), second: (parent, ""), child: (first, second)}


async def test_shards_come_in_pages(streamed: Driver) -> None:
    await streamed.fill(10)
    ids = streamed.emulator.split("demo", "t")

    first = await shards(streamed, shard_limit=2)
    second = await shards(streamed, shard_limit=2, inclusive_start_shard_id=first.next_shard_id)

    assert [shard.shard_id for page in (first, second) for shard in page.shards] == ids
    assert not second.next_shard_id


async def test_an_iterator_begins_at_a_time(streamed: Driver) -> None:
    await streamed.put(1, put("v", 1))
    streamed.clock.advance(10)
    moment = int(streamed.clock.now() * 1_000_000)
    await streamed.put(1, put("v", 2))
    shard = (await shards(streamed)).shards[0].shard_id

    place = await iterator(streamed, shard, timestamp=moment)
    answer = await streamed.call("GetStreamRecord", shard_iterator=place)

    assert [decode_row(record.record).columns[0].value for record in answer.stream_records] == [2]


async def test_records_beyond_the_retention_are_gone_at_once(streamed: Driver) -> None:
    await streamed.put(1, put("v", 1))
    shard = (await shards(streamed)).shards[0].shard_id
    place = await iterator(streamed, shard)
    streamed.clock.advance(24 * 3600 - 1)
    await streamed.put(1, put("v", 2))
    streamed.clock.advance(2)

    with pytest.raises(ServiceError, match="OTSTrimmedDataAccess"):
        await streamed.call("GetStreamRecord", shard_iterator=place)
    rows, _ = await drain(streamed, shard)
    assert [row.columns[0].value for row in rows] == [2]


@pytest.mark.parametrize(
    ("name", "fields", "code"),
    [
        ("ListStream", {"table_name": "absent"}, "OTSObjectNotExist"),
        ("DescribeStream", {"stream_id": "absent"}, "OTSObjectNotExist"),
        ("GetShardIterator", {"stream_id": "absent", "shard_id": "x"}, "OTSObjectNotExist"),
        ("GetStreamRecord", {"shard_iterator": "absent:0"}, "OTSTrimmedDataAccess"),
    ],
)
async def test_missing_streams_and_shards_are_refused(
    streamed: Driver, name: str, fields: dict[str, Any], code: str
) -> None:
    with pytest.raises(ServiceError, match=code):
        await streamed.call(name, **fields)


async def test_iterators_and_limits_are_checked(streamed: Driver) -> None:
    shard = (await shards(streamed)).shards[0].shard_id

    for place, fields, message in (
        (f"{shard}:5", {}, "Invalid shard iterator"),
        (f"{shard}:x", {}, "Invalid shard iterator"),
        ("none", {}, "Invalid shard iterator"),
        (f"{shard}:0", {"limit": 0}, "limit must be greater than 0, found: 0"),
        (f"{shard}:0", {"table_name": "other"}, "belongs to table 't', found: 'other'"),
    ):
        with pytest.raises(ServiceError, match=message):
            await streamed.call("GetStreamRecord", shard_iterator=place, **fields)


async def test_only_neighbours_can_be_merged(streamed: Driver) -> None:
    with pytest.raises(Refusal, match="the table has one partition"):
        streamed.emulator.merge("demo", "t")
    await streamed.fill(10)
    parent, _, last = streamed.emulator.split("demo", "t")
    for partition in (last, parent):
        with pytest.raises(Refusal, match="no open partition follows"):
            streamed.emulator.merge("demo", "t", partition)
    with pytest.raises(Refusal, match="has no partition 'absent'"):
        streamed.emulator.merge("demo", "t", "absent")


async def test_a_merged_channel_waits_for_both_parents(streamed: Driver) -> None:
    await streamed.fill(10)
    streamed.emulator.split("demo", "t")
    tunnel = await streamed.create_tunnel("Stream")
    client = await streamed.connect(tunnel)
    await streamed.heartbeat(tunnel, client)
    first, second, child = streamed.emulator.merge("demo", "t")

    async def states() -> dict[str, str]:
        await streamed.heartbeat(tunnel, client)
        return {channel.channel_id: channel.channel_status for channel in (await streamed.describe(tunnel)).channels}

    assert (await states())[child] == "WAIT"
    held = await streamed.heartbeat(tunnel, client)
    await streamed.heartbeat(tunnel, client, (first, held[first][0] + 1, "TERMINATED"))
    assert (await states())[child] == "WAIT"
    held = await streamed.heartbeat(tunnel, client)
    await streamed.heartbeat(tunnel, client, (second, held[second][0] + 1, "TERMINATED"))
    assert (await states())[child] == "OPEN"


async def test_a_tunnel_whose_unread_log_is_gone_shows_that_it_expired(streamed: Driver) -> None:
    tunnel = await streamed.create_tunnel("Stream")
    await streamed.put(1, put("v", 1))
    streamed.clock.advance(24 * 3600 + 1)

    assert (await streamed.describe(tunnel)).tunnel.expired
    with pytest.raises(ServiceError, match="OTSTunnelExpired"):
        await streamed.connect(tunnel)


async def test_an_idle_tunnel_does_not_expire(streamed: Driver) -> None:
    tunnel = await streamed.create_tunnel("Stream")
    streamed.clock.advance(30 * 24 * 3600)

    assert not (await streamed.describe(tunnel)).tunnel.expired


@pytest.mark.parametrize(
    "position",
    ["9" * 19, pytest.param("9" * 5000, id="more digits than Python reads"), "\u0663", "\u00b2", "-1", "", "1 "],
)
async def test_a_malformed_iterator_is_named(driver: Driver, position: str) -> None:
    await driver.create_table("s", hours=24)
    stream = (await driver.call("ListStream", table_name="s")).streams[0].stream_id
    shard = (await driver.call("DescribeStream", stream_id=stream)).shards[0].shard_id

    status, code, message = await driver.refused("GetStreamRecord", shard_iterator=f"{shard}:{position}")

    assert (status, code) == (400, "OTSParameterInvalid")
    # Long texts of refusals are cut.
    assert message.startswith(f"Invalid shard iterator: '{shard}:{position}'."[:200])
