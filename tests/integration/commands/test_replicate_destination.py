"""`ots-tunnel replicate` under the tunnel of an earlier run: the destination must be the one of that run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ots_emulator import Emulator, Settings
from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.client.sync_table import SyncTableClient
from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import ConfigError, WrongDestination
from ots_tunnel.model import Action, Marker, StreamConfig, TunnelType
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.replicate.preparation import StartOptions
from ots_tunnel.tables import TableAdmin
from ots_tunnel.transport.aio import AioTransport
from tests.support.commands.replicate_scene import compared, create_source, in_seconds, job
from tests.support.verify_scene import BASE, COPY, INSTANCE, KEYS, SCHEMA, SOURCE, VerifyScene, key, row
from tests.support.waiting import until

OTHER = "other_copy"
ROWS = 300
DAY = 86_400
ANY_VERSION = 9_223_372_036_854


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[VerifyScene]:
    with Emulator(settings=Settings(init_delay=0.01, page_rows=100)) as emulator:
        yield VerifyScene(emulator, tmp_path)


def create_other(scene: VerifyScene) -> None:
    """A table with one row of a key that the source has, and one of its own."""
    admin = TableAdmin(scene.emulator.endpoint, INSTANCE, KEYS)
    admin.create(replace(SCHEMA, name=OTHER, deviation_seconds=ANY_VERSION))
    admin.close()
    scene.put(OTHER, [row(3, Column("x", -1, BASE)), row(2000, Column("x", -2, BASE))])


async def set_deviation(scene: VerifyScene, seconds: int) -> None:
    request = pb.UpdateTableRequest(table_name=SOURCE)
    request.table_options.deviation_cell_version_in_sec = seconds
    caller = ServiceCaller(AioTransport(scene.emulator.endpoint), INSTANCE, KEYS)
    try:
        await caller.call(TABLE_OPERATIONS["UpdateTable"], request)
    finally:
        await caller.close()


def remove(scene: VerifyScene, table: str, numbers: range) -> None:
    client = SyncTableClient(scene.emulator.endpoint, INSTANCE, KEYS)
    for number in numbers:
        client.batch_write(table, [RowChange(Action.DELETE, encode_row(key(number), (), delete=True))])
    client.close()


async def copied(scene: VerifyScene, state: Path | None = None) -> None:
    await asyncio.to_thread(create_source, scene, ROWS)
    await set_deviation(scene, DAY)  # the versions of these rows are years old
    run = job(scene, in_seconds(1), start=StartOptions(state=state))
    assert (await asyncio.wait_for(run.run(), 40)).complete


def rows_of_other(scene: VerifyScene) -> bytes:
    client = SyncTableClient(scene.emulator.endpoint, INSTANCE, KEYS)
    low, high = (tuple((column.name, end) for column in SCHEMA.keys) for end in (Marker.INF_MIN, Marker.INF_MAX))
    page = client.get_range(OTHER, low, high, max_versions=10)
    client.close()
    return page.rows


def refused(scene: VerifyScene, state: Path | None) -> Awaitable[object]:
    run = job(scene, in_seconds(1), start=StartOptions(state=state), writer_tableName=OTHER)
    return asyncio.wait_for(run.run(), 40)


@pytest.mark.lasts(18)
async def test_another_destination_is_refused_before_a_write(scene: VerifyScene) -> None:
    state = scene.folder / "state.json"
    await copied(scene, state)
    await asyncio.to_thread(create_other, scene)
    await asyncio.to_thread(scene.put, SOURCE, [row(3, Column("x", 33))])
    before = rows_of_other(scene)

    with pytest.raises(ConfigError, match=r"delivers rows to demo/orders_copy at .*'other_copy'.*--merge"):
        await refused(scene, state)
    with pytest.raises(
        ConfigError, match=r"'other_copy' holds none of those that were looked for, but others.*--merge"
    ):
        await refused(scene, scene.folder / "that of another machine")

    assert rows_of_other(scene) == before
    merging = job(scene, in_seconds(1), start=StartOptions(True, state), writer_tableName=OTHER)
    assert (await asyncio.wait_for(merging.run(), 40)).complete
    assert rows_of_other(scene) != before
    assert f'"table": "{OTHER}"' in state.read_text(), "from now on this is the destination"


@pytest.mark.lasts(8)
async def test_of_two_destinations_at_the_same_moment_one_is_refused(scene: VerifyScene) -> None:
    await asyncio.to_thread(create_source, scene, 1)
    start = StartOptions(state=scene.folder / "state.json")
    runs = [job(scene, in_seconds(1), start=start, writer_tableName=table) for table in (COPY, OTHER)]

    ended = await asyncio.wait_for(asyncio.gather(*(run.run() for run in runs), return_exceptions=True), 40)

    (refusal,) = (found for found in ended if isinstance(found, BaseException))
    assert isinstance(refusal, ConfigError)
    assert "delivers rows to demo/" in str(refusal)
    (copied,) = (found for found in ended if not isinstance(found, BaseException))
    assert copied.complete


@pytest.mark.lasts(18)
async def test_the_destination_of_the_first_run_is_recognised_after_every_change(scene: VerifyScene) -> None:
    await copied(scene)
    await asyncio.to_thread(remove, scene, SOURCE, range(200))
    await asyncio.to_thread(remove, scene, SOURCE, range(250, ROWS))
    # as an import does: old versions are allowed for a while
    await set_deviation(scene, ANY_VERSION)
    await asyncio.to_thread(scene.put, SOURCE, [row(number) for number in (*range(-50, 0), *range(500, 550))])
    await set_deviation(scene, DAY)

    said: list[str] = []
    resumed = await asyncio.wait_for(job(scene, in_seconds(1), said).run(), 40)

    assert resumed.complete
    assert "resumes" in said[1]
    assert (await compared(scene)).equal


@pytest.mark.lasts(6)
async def test_a_state_that_cannot_be_kept_is_said(scene: VerifyScene) -> None:
    await asyncio.to_thread(create_source, scene, 1)
    said: list[str] = []
    run = job(scene, in_seconds(0), said, StartOptions(state=scene.folder / "nowhere" / "state.json"))
    assert (await asyncio.wait_for(run.run(), 40)).complete
    assert any("the state cannot be written" in line and "was changed" in line for line in said), said


async def drop_and_create(scene: VerifyScene) -> None:
    """The destination without the rows that were copied."""
    caller = ServiceCaller(AioTransport(scene.emulator.endpoint), INSTANCE, KEYS)
    try:
        await caller.call(TABLE_OPERATIONS["DeleteTable"], pb.DeleteTableRequest(table_name=COPY))
    finally:
        await caller.close()
    admin = TableAdmin(scene.emulator.endpoint, INSTANCE, KEYS)
    await asyncio.to_thread(admin.create, replace(SCHEMA, name=COPY, deviation_seconds=ANY_VERSION))
    admin.close()


async def keep_one_version(scene: VerifyScene) -> None:
    request = pb.UpdateTableRequest(table_name=COPY)
    request.table_options.max_versions = 1
    caller = ServiceCaller(AioTransport(scene.emulator.endpoint), INSTANCE, KEYS)
    try:
        await caller.call(TABLE_OPERATIONS["UpdateTable"], request)
    finally:
        await caller.close()


@pytest.mark.parametrize(
    ("change", "code"), [(drop_and_create, "DestinationReplaced"), (keep_one_version, "DestinationChanged")]
)
async def test_a_destination_that_is_changed_during_the_run_is_no_copy(
    scene: VerifyScene, change: Callable[[VerifyScene], Awaitable[None]], code: str
) -> None:
    await asyncio.to_thread(create_source, scene, 20)
    said: list[str] = []
    running = asyncio.create_task(job(scene, in_seconds(6), said).run())
    await until(lambda: any(line.startswith("4/4") for line in said), 30, "the copy begins")
    async with asyncio.timeout(30):
        while True:
            if (await compared(scene)).equal:
                break
            await asyncio.sleep(0.05)
    await change(scene)

    with pytest.raises(WrongDestination) as raised:
        await running
    assert raised.value.code == code


async def test_changes_behind_a_tunnels_own_end_are_not_taken_for_copied(scene: VerifyScene) -> None:
    await asyncio.to_thread(create_source, scene, 5)
    client = TunnelClient(scene.emulator.endpoint, INSTANCE, KEYS)
    config = StreamConfig(end_offset_ns=time.time_ns() + 10**9)
    await client.create_tunnel(SOURCE, "copy", TunnelType.BaseAndStream, config)
    await client.close()

    with pytest.raises(ConfigError, match="ends by itself"):
        await job(scene, in_seconds(60)).run()
