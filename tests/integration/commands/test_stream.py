"""`ots-tunnel stream run` and `ots-tunnel stream leases`, as processes beside an emulator."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ots_emulator import Emulator, Settings
from ots_tunnel.errors import ObjectNotExist
from ots_tunnel.model import Marker
from ots_tunnel.protocol.plainbuffer.codec import decode_rows
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.lease.lease import Lease
from tests.support.emulator.emulator_scene import TABLE
from tests.support.emulator.stream_scene import StreamScene
from tests.support.programs.processes import output_of
from tests.support.programs.run_process import TERMINATION_LOG, command, ended
from tests.support.waiting import until

KEYS = [f"k{number}" for number in range(8)]


@pytest.fixture
async def scene() -> AsyncIterator[StreamScene]:
    async with Emulator(settings=Settings(init_delay=0.01)) as emulator:
        yield StreamScene(emulator)


def document(scene: StreamScene, folder: Path, name: str, sink: dict[str, Any], **source: Any) -> Path:
    (folder / "accessKeyId").write_text("test-id")
    (folder / "accessKeySecret").write_text("test-secret")
    path = folder / name / "stream.yaml"
    path.parent.mkdir()
    place = {
        "endpoint": scene.emulator.endpoint,
        "instance": "demo",
        "table": TABLE,
        "leaseTable": "leases",
        "credentials": {"directory": str(folder)},
        **source,
    }
    times = {
        "workerId": name,
        "leaseDurationSeconds": 3,
        "renewIntervalSeconds": 0.5,
        "takeIntervalSeconds": 0.3,
        "parentPollIntervalSeconds": 0.3,
        "syncIntervalSeconds": 0.5,
        "checkpointIntervalSeconds": 0.1,
    }
    path.write_text(yaml.safe_dump({"source": place, "sink": sink, "client": times, "http": {"port": 0}}))
    return path


async def start(path: Path) -> Any:
    log = path.parent / TERMINATION_LOG
    log.touch()
    return await command("stream", "run", "--config", str(path), "--termination-log", str(log))


async def leases(scene: StreamScene, stream_id: str) -> Iterable[Lease]:
    try:
        return (await LeaseTable(scene.caller, "leases").list(stream_id)).leases
    except ObjectNotExist:
        return ()  # no worker has created the table yet


@pytest.mark.lasts(15)
async def test_two_workers_copy_a_table_into_another_one_while_it_is_split(scene: StreamScene, tmp_path: Path) -> None:
    stream_id = await scene.create_stream()
    await scene.create_table(table="copy")
    await scene.put(KEYS)
    keys = {"directory": str(tmp_path)}
    copy = {"endpoint": scene.emulator.endpoint, "instance": "demo", "table": "copy", "credentials": keys}
    paths = [document(scene, tmp_path, name, {"tablestore": copy}) for name in ("one", "two")]
    one = await start(paths[0])

    await until(lambda: _owners(scene, stream_id, {"one"}), what="the first worker has the shard")
    two = await start(paths[1])
    for number in range(2, 6):
        scene.emulator.split("demo", TABLE)
        await scene.put(KEYS, [number])
    await until(lambda: _owners(scene, stream_id, {"one", "two"}), what="both have leases")
    two.send_signal(signal.SIGTERM)
    left = await ended(two, paths[1])
    await scene.put(KEYS, [6])
    await until(lambda: _numbers(scene, dict.fromkeys(KEYS, 6)), what="everything is copied")

    one.send_signal(signal.SIGTERM)
    last = await ended(one, paths[0])
    assert (left.code, last.code) == (0, 0)
    assert last.lines[-1]["action"] == "stopped"
    assert await _owners(scene, stream_id, {""})


async def _owners(scene: StreamScene, stream_id: str, owners: set[str]) -> bool:
    return {lease.owner for lease in await leases(scene, stream_id)} == owners


async def _numbers(scene: StreamScene, wanted: dict[str, int]) -> bool:
    page = await scene.table.get_range("copy", (("pk", Marker.INF_MIN),), (("pk", Marker.INF_MAX),), max_versions=1)
    return {row.primary_key[0][1]: row.columns[0].value for row in decode_rows(page.rows)} == wanted


@pytest.mark.parametrize(
    ("source", "code", "said"),
    [
        ({"leaseTable": TABLE}, 2, "source.leaseTable: found 'events', the source itself"),
        (
            {"startTime": "2026-01-01T00:00:00Z", "startFrom": "Latest"},
            2,
            "source.startTime: found with startFrom Latest",
        ),
        ({"table": "missing"}, 11, "there is no table 'missing'"),
    ],
)
async def test_a_wrong_document_ends_with_its_exit_code(
    scene: StreamScene, tmp_path: Path, source: dict[str, Any], code: int, said: str
) -> None:
    await scene.create_stream()
    path = document(scene, tmp_path, "w", {"count": {}}, **source)

    left = await ended(await start(path), path)

    assert left.code == code
    assert said in left.error
    assert said in left.termination_message


async def test_a_table_that_serves_something_else_ends_with_its_exit_code(scene: StreamScene, tmp_path: Path) -> None:
    await scene.create_stream()
    await scene.create_table(table="other")
    path = document(scene, tmp_path, "w", {"count": {}}, leaseTable="other")

    left = await ended(await start(path), path)

    assert left.code == 17
    assert left.termination_message.startswith("WrongLeaseTable: primary key of lease table 'other': found pk STRING")


async def test_a_stream_that_is_off_ends_with_what_to_do(scene: StreamScene, tmp_path: Path) -> None:
    await scene.create_table()
    path = document(scene, tmp_path, "w", {"count": {}})

    left = await ended(await start(path), path)

    assert left.code == 15
    assert "table 'events' has no stream: switch it on" in left.termination_message


@pytest.mark.lasts(8)
async def test_leases_are_shown_with_owner_and_lag(scene: StreamScene, tmp_path: Path) -> None:
    stream_id = await scene.create_stream()
    await scene.put(KEYS)
    path = document(scene, tmp_path, "one", {"count": {}})
    worker = await start(path)
    await until(lambda: _owners(scene, stream_id, {"one"}), what="it has the shard")
    parent, *children = scene.emulator.split("demo", TABLE)
    await scene.put(KEYS, [2])

    async def is_read() -> bool:
        rows = {row["shard"]: row for row in await shown(scene, tmp_path)}
        return rows.keys() == {parent, *children} and all(row["lagSeconds"] == 0 for row in rows.values())

    await until(is_read, what="all is read")
    rows = {row["shard"]: row for row in await shown(scene, tmp_path)}
    assert rows[parent]["state"] == "finished"
    assert rows[parent]["checkpoint"] == "SHARD_END"
    assert {rows[child]["state"] for child in children} == {"open"}
    assert {row["owner"] for row in rows.values()} == {"one"}
    assert {row["stealer"] for row in rows.values()} == {None}
    worker.send_signal(signal.SIGTERM)
    assert (await ended(worker, path)).code == 0

    await scene.put(KEYS, [3])
    rows = {row["shard"]: row for row in await shown(scene, tmp_path)}
    assert {row["owner"] for row in rows.values()} == {None}
    assert max(row["lagSeconds"] for row in rows.values()) > 0


async def shown(scene: StreamScene, folder: Path) -> list[dict[str, Any]]:
    """What `stream leases` prints."""
    place = ["--endpoint", scene.emulator.endpoint, "--instance", "demo", "--credentials", str(folder)]
    code, out, errors = await output_of(await command("stream", "leases", TABLE, "leases", "-o", "json", *place))
    assert code == 0, errors
    found: list[dict[str, Any]] = json.loads(out)
    return found
