"""An export of a time range of the stream to files: chosen columns, a range of keys, every version, nothing twice."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ots_emulator import Emulator, Settings
from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.model import Action, CellOp, StreamConfig, TunnelType
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from tests.support.emulator.emulator_scene import TABLE, EmulatorScene
from tests.support.programs.run_process import ended, start

#: Milliseconds; versions are explicit, so that the test knows all of them.
VERSION = int(time.time() * 1000) - 60_000
KEYS = [f"k{number:03}" for number in range(100)]
INSIDE = [key for key in KEYS if "k020" <= key < "k060"]

#: Action, key, and (column, operation, version, value) of every cell.
Change = tuple[str, str, tuple[tuple[str, str, int | None, object], ...]]


@pytest.fixture
async def scene() -> AsyncIterator[EmulatorScene]:
    # Pages are small, so that the page with the end time is not the only one.
    async with Emulator(settings=Settings(page_rows=30, init_delay=0.01)) as emulator:
        scene = EmulatorScene(emulator)
        await scene.create_table(partitions=2)
        await scene.client.create_tunnel(TABLE, "another", TunnelType.Stream)  # the table keeps its changes from now on
        yield scene


async def write(scene: EmulatorScene, changes: list[RowChange]) -> None:
    for at in range(0, len(changes), 100):
        outcomes = await scene.table.batch_write(TABLE, changes[at : at + 100])
        assert all(outcome.code is None for outcome in outcomes), outcomes


def put(key: str, number: int, version: int = VERSION) -> RowChange:
    cells = (Column("n", number, version), Column("other", "not wanted", version))
    return RowChange(Action.PUT, encode_row((("pk", key),), cells))


def update(key: str, *cells: Column) -> RowChange:
    return RowChange(Action.UPDATE, encode_row((("pk", key),), cells))


def delete(key: str) -> RowChange:
    return RowChange(Action.DELETE, encode_row((("pk", key),), (), delete=True))


async def write_expected_changes(scene: EmulatorScene) -> list[Change]:
    """Make changes of every kind to all keys; return those that the export must hold, per key in their order."""
    expected: list[Change] = []
    for key in KEYS:
        two = (Column("n", 2, VERSION + 1), Column("n", 3, VERSION + 2), Column("other", "x", VERSION + 2))
        unwanted = Column("other", "y", VERSION + 3)
        gone = Column("n", None, VERSION + 1, CellOp.DELETE_ONE_VERSION)
        await write(scene, [put(key, 1)])
        await write(scene, [update(key, *two)])
        await write(scene, [update(key, unwanted)])
        await write(scene, [update(key, gone)])
        await write(scene, [delete(key)])
        if key in INSIDE:
            expected += [
                ("PUT", key, (("n", "PUT", VERSION, 1),)),
                ("UPDATE", key, (("n", "PUT", VERSION + 1, 2), ("n", "PUT", VERSION + 2, 3))),
                ("UPDATE", key, (("n", "DELETE_ONE_VERSION", VERSION + 1, None),)),
                ("DELETE", key, ()),
            ]
    return expected


def document(scene: EmulatorScene, folder: Path, end: datetime) -> Path:
    (folder / "keys").mkdir()
    (folder / "keys" / "accessKeyId").write_text("test-id")
    (folder / "keys" / "accessKeySecret").write_text("test-secret")
    path = folder / "worker.yaml"
    path.write_text(
        json.dumps(  # which is YAML
            {
                "source": {
                    "endpoint": scene.emulator.endpoint,
                    "instance": "demo",
                    "table": TABLE,
                    "tunnelName": "export",
                    "tunnelId": scene.tunnel_id,
                    "credentials": {"directory": str(folder / "keys")},
                    "endTime": end.isoformat(),
                },
                "sink": {"files": {"url": f"file://{folder}/out", "format": "Parquet"}},
                "delivery": {
                    "columns": {"include": ["n"]},
                    "filter": {"keyRange": {"begin": ["k020"], "end": ["k060"]}},
                },
                "client": {"heartbeatIntervalSeconds": 5, "heartbeatTimeoutSeconds": 15},
                "http": {"port": 0},
            }
        )
    )
    return path


def exported(folder: Path) -> list[Change]:
    """Every record of every file, by position."""
    rows = [row for path in sorted(folder.rglob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    rows.sort(key=lambda row: tuple(row["sequence"].values()))
    return [
        (
            row["action"],
            row["key"]["pk"],
            tuple((cell["name"], cell["operation"], cell["version"], _value(cell)) for cell in row["cells"]),
        )
        for row in rows
    ]


def _value(cell: dict[str, dict[str, object] | None]) -> object:
    found = [value for value in (cell["value"] or {}).values() if value is not None]
    return found[0] if found else None


def per_key(changes: list[Change]) -> dict[str, list[Change]]:
    return {key: [change for change in changes if change[1] == key] for key in INSIDE}


@pytest.mark.timeout(120)
@pytest.mark.lasts(20)
async def test_the_files_hold_exactly_the_selected_records(scene: EmulatorScene, tmp_path: Path) -> None:
    await write(scene, [put(key, 100) for key in KEYS])
    await asyncio.sleep(0.02)
    begin_ns = time.time_ns()
    await asyncio.sleep(0.02)
    expected = await write_expected_changes(scene)
    await asyncio.sleep(0.02)
    end = datetime.now(UTC)
    await asyncio.sleep(0.02)
    await write(scene, [put(key, 200) for key in KEYS])
    stream = StreamConfig(start_offset_ns=begin_ns // 1_000_000 * 1_000_000)
    scene.tunnel_id = await scene.client.create_tunnel(TABLE, "export", TunnelType.Stream, stream)
    path = document(scene, tmp_path, end)

    for run in ("the first", "one that finds everything done"):
        process = await start(path, "--exit-when-complete")
        left = await ended(process, path, 60)
        assert left.code == 0, (run, left.lines[-3:])
        found = exported(tmp_path / "out")
        assert Counter(found) == Counter(expected), run
        assert per_key(found) == per_key(expected), run
        assert scene.owners() == []
