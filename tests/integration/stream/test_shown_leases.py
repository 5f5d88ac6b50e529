"""What is shown of leases: by `ots-tunnel stream leases`, and by a worker to other threads."""

from __future__ import annotations

from typing import Any, cast

import pytest

from ots_tunnel.commands.stream.leases import lease_rows
from ots_tunnel.errors import WrongLeaseTable
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.calls.lease_table_creation import create_lease_table
from ots_tunnel.stream.decide.consumer import State
from ots_tunnel.stream.following.followed_shards import FollowedShards
from ots_tunnel.stream.following.settings import FollowSettings
from ots_tunnel.stream.lease.lease import Lease, Position
from ots_tunnel.stream.shards import ShardId, ShardPage
from tests.support.emulator.emulator_scene import TABLE
from tests.support.emulator.stream_scene import StreamScene, quick_caller, stream_scene


async def begin(scene: StreamScene) -> tuple[LeaseTable, Lease]:
    """A stream of one shard with a record, and its lease."""
    stream_id = await scene.create_stream()
    await scene.put(["k"])
    table = LeaseTable(quick_caller(scene.emulator.handle), "leases")
    await create_lease_table(table)
    [shard] = await scene.stream_client().shards(stream_id)
    return table, Lease(stream_id, shard.shard_id)


async def test_a_checkpoint_that_is_no_position_does_not_hide_the_other_leases() -> None:
    async with stream_scene() as scene:
        table, lease = await begin(scene)
        await table.create(lease)
        await table.create(Lease(lease.stream_id, ShardId("odd"), checkpoint=Position("garbage")))

        rows = await lease_rows(scene.stream_client(), table, TABLE, with_lag=True)

        assert {row["shard"]: row["lagSeconds"] is None for row in rows} == {lease.shard_id: False, "odd": True}


async def test_a_lag_is_unknown_where_the_records_come_with_a_later_page() -> None:
    async with stream_scene() as scene:
        table, lease = await begin(scene)
        await table.create(lease)
        client = scene.stream_client()

        async def read(iterator: str, *, limit: int) -> ShardPage:
            return ShardPage([], cast(Any, f"{iterator}0"), True, 100, 1_700_000_000.0)

        client.read = read  # type: ignore[assignment]
        [row] = await lease_rows(client, table, TABLE, with_lag=True)

        assert row["lagSeconds"] is None


async def test_a_table_with_another_key_is_named() -> None:
    async with stream_scene() as scene:
        await begin(scene)

        # the source table itself, whose key is none of leases
        with pytest.raises(
            WrongLeaseTable, match=rf"primary key of lease table '{TABLE}': found .* allowed is StreamId"
        ):
            await lease_rows(
                scene.stream_client(), LeaseTable(quick_caller(scene.emulator.handle), TABLE), TABLE, with_lag=False
            )


class _Task:
    """A shard's task, while another one begins in the thread of the loop."""

    def __init__(self, shards: dict[str, Any]) -> None:
        self._shards = shards

    @property
    def state(self) -> State:
        self._shards[f"s{len(self._shards)}"] = self
        return State.READING


def test_another_thread_may_ask_for_the_shards_while_they_change() -> None:
    nothing = cast(Any, None)
    followed = FollowedShards(nothing, nothing, nothing, FollowSettings(), dict, lambda: None, nothing)
    shards: dict[str, Any] = {}
    shards["s0"] = _Task(shards)
    followed._shards = shards  # noqa: SLF001 # no test meets the moment at which another thread asks

    assert set(followed.held) == {"s0"}
