"""The Stream API's calls on an emulator: streams, shards with their parents, positions, records."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from ots_tunnel.errors import ConfigError, NoStream, ObjectNotExist, ParameterInvalid, TunnelExpired
from ots_tunnel.model import Action, Credentials
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.stream.calls.client import StreamClient
from ots_tunnel.stream.shards import ShardId, ShardIterator
from tests.support.emulator.emulator_scene import TABLE
from tests.support.emulator.stream_scene import StreamScene, stream_scene

KEYS = [f"k{number}" for number in range(8)]


@pytest.fixture
async def scene() -> AsyncIterator[StreamScene]:
    async with stream_scene() as made:
        yield made


async def numbers_of(client: StreamClient, stream_id: str, shard: ShardId, limit: int = 3) -> list[tuple[str, int]]:
    """Key and number of every record of a shard, up to where it ends for now."""
    found: list[tuple[str, int]] = []
    iterator = await client.iterator(stream_id, shard)
    while True:
        page = await client.read(iterator, limit=limit)
        for record in page.records:
            column = record.column("n")
            assert record.action is Action.PUT
            assert column is not None
            found.append((str(record.primary_key[0][1]), int(str(column.value))))
        if page.is_last or not page.records:
            return found
        assert page.next_iterator is not None
        iterator = page.next_iterator


async def test_a_table_without_a_stream_says_so(scene: StreamScene) -> None:
    await scene.create_table()

    with pytest.raises(NoStream, match="table 'events' has no stream") as caught:
        await scene.stream_client().stream_of(TABLE)

    assert not caught.value.retryable


async def test_a_missing_table_is_another_error(scene: StreamScene) -> None:
    with pytest.raises(ObjectNotExist):
        await scene.stream_client().stream_of("missing")


async def test_every_record_is_read_in_order_by_pages(scene: StreamScene) -> None:
    stream_id = await scene.create_stream()
    await scene.put(KEYS, range(3))
    client = scene.stream_client()
    [shard] = await client.shards(stream_id)

    found = await numbers_of(client, stream_id, shard.shard_id)

    assert found == [(key, number) for number in range(3) for key in KEYS]
    assert shard.parents == frozenset()


async def test_a_page_at_the_end_of_an_open_shard_stands_still(scene: StreamScene) -> None:
    stream_id = await scene.create_stream()
    client = scene.stream_client()
    [shard] = await client.shards(stream_id)
    iterator = await client.iterator(stream_id, shard.shard_id)

    page = await client.read(iterator)

    assert (page.records, page.next_iterator, page.is_last, page.may_more) == ([], iterator, False, False)
    assert page.size_bytes > 0
    assert page.service_time is not None


async def test_parents_end_and_children_go_on(scene: StreamScene) -> None:
    stream_id = await scene.create_stream()
    client = scene.stream_client()
    [first] = await client.shards(stream_id)
    await scene.put(KEYS, range(2))
    scene.emulator.split("demo", TABLE)
    await scene.put(KEYS, range(2, 4))
    scene.emulator.merge("demo", TABLE)
    await scene.put(KEYS, range(4, 6))

    shards = await client.shards(stream_id)

    left, right, merged = shards[1:]
    assert shards[0] == first
    assert left.parents == right.parents == {first.shard_id}
    assert merged.parents == {left.shard_id, right.shard_id}
    found = [await numbers_of(client, stream_id, shard.shard_id) for shard in shards]
    assert sorted(found[1] + found[2]) == sorted((key, number) for number in (2, 3) for key in KEYS)
    assert found[3] == [(key, number) for number in (4, 5) for key in KEYS]
    ended = await client.read(await client.iterator(stream_id, first.shard_id))
    assert ended.is_last
    assert len(ended.records) == 16


async def test_a_time_is_a_position(scene: StreamScene) -> None:
    stream_id = await scene.create_stream()
    client = scene.stream_client()
    await scene.put(KEYS[:1], range(3))
    [shard] = await client.shards(stream_id)
    page = await client.read(await client.iterator(stream_id, shard.shard_id))
    sequence = page.records[2].sequence
    assert sequence is not None

    later = await client.iterator(stream_id, shard.shard_id, timestamp_us=sequence.timestamp_us)

    assert (await client.read(later)).records == page.records[2:]


async def test_shards_are_listed_by_pages(scene: StreamScene) -> None:
    stream_id = await scene.create_stream()
    await scene.put(KEYS)
    for _ in range(3):
        scene.emulator.split("demo", TABLE)
    calls = []

    async def two_at_a_time(request: HttpRequest) -> HttpResponse:
        message = pb.DescribeStreamRequest.FromString(request.body)
        calls.append(message.inclusive_start_shard_id)
        answer, response = await scene.caller.call(
            TABLE_OPERATIONS["DescribeStream"],
            pb.DescribeStreamRequest(
                stream_id=message.stream_id,
                shard_limit=2,
                inclusive_start_shard_id=message.inclusive_start_shard_id or None,
            ),
        )
        return HttpResponse(200, response.headers, answer.SerializeToString())

    shards = await scene.stream_client(two_at_a_time).shards(stream_id)

    assert shards == await scene.stream_client().shards(stream_id)
    assert len(shards) == 7
    assert calls == ["", shards[2].shard_id, shards[4].shard_id, shards[6].shard_id]


async def test_what_cannot_succeed_later_is_not_retryable(scene: StreamScene) -> None:
    stream_id = await scene.create_stream()
    client = scene.stream_client()

    with pytest.raises(ObjectNotExist) as no_stream:
        await client.shards("missing")
    with pytest.raises(ObjectNotExist) as no_shard:
        await client.iterator(stream_id, ShardId("missing"))
    with pytest.raises(TunnelExpired) as trimmed:
        await client.read(ShardIterator("missing:0"))
    with pytest.raises(ParameterInvalid) as malformed:
        await client.read(ShardIterator("malformed"))

    assert [each.value.retryable for each in (no_stream, no_shard, trimmed, malformed)] == [False] * 4


def test_a_wrong_endpoint_is_refused() -> None:
    with pytest.raises(ConfigError, match="endpoint"):
        StreamClient("ftp://host", "demo", lambda: Credentials("id", "secret"))


async def test_a_client_makes_and_closes_its_own_connections() -> None:
    client = StreamClient("http://127.0.0.1:1", "demo", lambda: Credentials("id", "secret"))

    await client.close()

    assert repr(client) == "StreamClient(demo at http://127.0.0.1:1)"
