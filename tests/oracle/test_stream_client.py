"""The vendor's unmodified Stream Client library on our emulator: shards in order, leases in a table, a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.model import Action, Marker
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.plainbuffer.codec import decode_rows, encode_primary_key, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from tests.oracle.stream_worker import STATUS, create_table, running
from tests.support.emulator.emulator_scene import TABLE, EmulatorScene, create_table_request
from tests.support.waiting import until

pytestmark = [pytest.mark.oracle, pytest.mark.leases, pytest.mark.timeout(300)]  # the first test also builds it

KEYS = [f"k{number}" for number in range(8)]


async def checkpoints(scene: EmulatorScene) -> list[str]:
    """What the library has stored for its shards."""
    ends = [
        encode_primary_key(tuple((name, marker) for name in ("StreamId", "StatusType", "StatusValue")))
        for marker in (Marker.INF_MIN, Marker.INF_MAX)
    ]
    answer, _ = await scene.caller.call(
        TABLE_OPERATIONS["GetRange"],
        pb.GetRangeRequest(
            table_name=STATUS,
            direction=pb.FORWARD,
            max_versions=1,
            inclusive_start_primary_key=ends[0],
            exclusive_end_primary_key=ends[1],
        ),
    )
    rows = [{column.name: column.value for column in row.columns} for row in decode_rows(answer.rows)]
    return [str(row["Checkpoint"]) for row in rows]


async def test_every_change_arrives_in_order_through_a_split_and_a_merge(
    scene: EmulatorScene, stream_client: Path
) -> None:
    await create_table(scene)
    await scene.put(KEYS, range(3))
    async with running(stream_client, scene.emulator.endpoint) as worker:
        await until(lambda: worker.has(24), 60, "the first records arrive")
        scene.emulator.split("demo", TABLE)
        await scene.put(KEYS, range(3, 6))
        await until(lambda: worker.has(48), 60, "the records of the children arrive")
        scene.emulator.merge("demo", TABLE)
        await scene.put(KEYS, range(6, 9))
        await until(lambda: worker.has(72), 60, "the records of the merged shard arrive")

        # Nothing was repeated or exchanged: nobody took a lease away.
        assert worker.written == {key: list(range(9)) for key in KEYS}
        assert [reason for _, reason in worker.of("stop")] == ["TERMINATE"] * 3
        assert len({shard for shard, *_ in worker.of("record")}) == 4
    # That of the merged shard may be a position already.
    assert (await checkpoints(scene)).count("SHARD_END") == 3


async def test_a_table_of_two_key_columns_that_is_split_already(scene: EmulatorScene, stream_client: Path) -> None:
    """The library describes the table first, and its SDK 4.3.1 knows no INF_MIN among the places of the splits."""
    request = create_table_request(TABLE)
    request.table_meta.primary_key.add(name="line", type=pb.INTEGER)
    request.stream_spec.enable_stream, request.stream_spec.expiration_time = True, 24
    await scene.caller.call(TABLE_OPERATIONS["CreateTable"], request)
    rows = [encode_row((("pk", key), ("line", 1)), (Column("n", 0),)) for key in KEYS]
    outcomes = await scene.table.batch_write(TABLE, [RowChange(Action.PUT, row) for row in rows])
    assert all(outcome.code is None for outcome in outcomes)
    scene.emulator.split("demo", TABLE)
    async with running(stream_client, scene.emulator.endpoint) as worker:
        await until(lambda: worker.has(len(KEYS)), 60, "the records arrive")


async def test_a_restarted_worker_goes_on_where_it_was(scene: EmulatorScene, stream_client: Path) -> None:
    await create_table(scene)
    await scene.put(KEYS, range(2))
    async with running(stream_client, scene.emulator.endpoint) as first:
        await until(lambda: first.has(16), 60, "the first records arrive")

        async def stored() -> bool:
            return await checkpoints(scene) not in ([], ["TRIM_HORIZON"])

        await until(stored, 20, "a checkpoint is stored")
    await scene.put(KEYS, range(2, 4))
    async with running(stream_client, scene.emulator.endpoint) as second:
        await until(lambda: second.has(16), 60, "the other records arrive")

        assert first.written == {key: [0, 1] for key in KEYS}
        assert second.written == {key: [2, 3] for key in KEYS}
