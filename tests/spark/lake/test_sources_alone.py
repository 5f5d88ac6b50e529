"""What a mirror asks of its source before anything is written, beside the emulator and without Spark."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from ots_emulator import Emulator
from ots_tunnel.client.sync_tunnel import SyncTunnelClient
from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import Action, Checkpoint, ClientId, TunnelType
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.spark.lake.readiness import check_table, look_at, wait_until_unmoved
from ots_tunnel.spark.stream.options import StreamOptions
from ots_tunnel.tables import TableAdmin, TableSchema
from tests.spark.conftest import CREDENTIALS, KEYS, Instance


@pytest.fixture
def tunnels(instance: Instance) -> Iterator[SyncTunnelClient]:
    client = SyncTunnelClient(instance.endpoint, "demo", CREDENTIALS)
    yield client
    client.close()


def options(instance: Instance, table: str = "flights") -> StreamOptions:
    place = {"endpoint": instance.endpoint, "instance": "demo", "table": table}
    return StreamOptions.parse({**place, "tunnel": "lake", "credentialsDirectory": str(instance.secrets)})


def test_a_new_tunnel_has_not_moved_and_one_with_a_checkpoint_has(
    instance: Instance, tunnels: SyncTunnelClient
) -> None:
    tunnel_id = tunnels.create_tunnel("flights", "lake", TunnelType.Stream)

    source = look_at(options(instance))
    assert source.tunnel_id == tunnel_id
    assert source.needs_snapshot
    wait_until_unmoved(options(instance), "/lake")
    (channel,) = look_at(options(instance)).tunnel.channels

    instance.client.batch_write("flights", [RowChange(Action.PUT, encode_row((("carrier", "n"), ("flight", 1)), ()))])
    asyncio.run(_consume(instance, channel.channel_id, tunnel_id))

    with pytest.raises(ConfigError, match="option 'tunnel': found 'lake', of which changes were consumed before"):
        wait_until_unmoved(options(instance), "/lake")


async def _consume(instance: Instance, channel_id: str, tunnel_id: str) -> None:
    client = TunnelClient(instance.endpoint, "demo", CREDENTIALS)
    try:
        stored = await client.get_checkpoint(tunnel_id, ClientId("other"), channel_id)
        page = await client.read_records(tunnel_id, ClientId("other"), channel_id, stored.token)
        moved = Checkpoint(page.next_token, stored.sequence_number + 1)
        await client.checkpoint(tunnel_id, ClientId("other"), channel_id, moved)
    finally:
        await client.close()


def test_a_tunnel_with_existing_rows_needs_no_snapshot(instance: Instance, tunnels: SyncTunnelClient) -> None:
    tunnels.create_tunnel("flights", "lake", TunnelType.BaseAndStream)

    assert not look_at(options(instance)).needs_snapshot
    wait_until_unmoved(options(instance), "/lake")


def test_a_missing_tunnel_names_the_option(instance: Instance) -> None:
    with pytest.raises(ConfigError, match="option 'tunnel': found 'lake', table 'flights' has no such tunnel"):
        look_at(options(instance))


def test_a_table_that_no_mirror_equals_is_refused(instance: Instance, emulator: Emulator) -> None:
    versions = instance.client.describe_table("flights")
    with pytest.raises(ConfigError, match=r"which keeps 3 versions; .* keeps one, or has_versions=True"):
        check_table(versions, has_versions=False, expires=False)
    check_table(versions, has_versions=True, expires=False)

    admin = TableAdmin(emulator.endpoint, "demo", CREDENTIALS)
    admin.create(TableSchema("short", KEYS, max_versions=1, ttl_seconds=86_400))
    admin.close()
    short = instance.client.describe_table("short")
    with pytest.raises(ConfigError, match=r"to live of 86400 s; .* allowed is a table without one, or expires=True"):
        check_table(short, has_versions=False, expires=False)
    check_table(short, has_versions=False, expires=True)
