"""The vendor's unmodified Stream Client library on our emulator: shards in order, leases in a table, a restart."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ots_tunnel.model import Marker
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.plainbuffer.codec import decode_rows, encode_primary_key
from tests.support.emulator.emulator_scene import TABLE, EmulatorScene, create_table_request
from tests.support.waiting import until

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(300)]  # the first test also builds it

STATUS = "leases"
KEYS = [f"k{number}" for number in range(8)]


class StreamWorker:
    """A running program and the events it has printed."""

    def __init__(self) -> None:
        self.events: list[list[str]] = []

    async def read(self, lines: asyncio.StreamReader) -> None:
        while line := (await lines.readline()).decode():
            self.events.append(line.rstrip("\n").split("\t"))

    def of(self, kind: str) -> list[list[str]]:
        return [event[1:] for event in self.events if event[0] == kind]

    @property
    def written(self) -> dict[str, list[int]]:
        """The numbers of each key, in the order of arrival."""
        found: dict[str, list[int]] = defaultdict(list)
        for _, _, key, value in self.of("record"):
            found[key].append(int(value))
        return found

    def has(self, count: int) -> bool:
        assert self.of("error") == []
        return len(self.of("record")) >= count


@asynccontextmanager
async def running(program: Path, endpoint: str) -> AsyncIterator[StreamWorker]:
    """Run the program inside the block; then kill it, so that it releases nothing."""
    process = await asyncio.create_subprocess_exec(
        program,
        f"-endpoint={endpoint}",
        "-instance=demo",
        "-key-id=test-id",
        "-key-secret=test-secret",
        f"-table={TABLE}",
        f"-status-table={STATUS}",
        stdout=PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    worker = StreamWorker()
    reading = asyncio.create_task(worker.read(process.stdout))
    try:
        yield worker
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await reading


async def create_table(scene: EmulatorScene) -> None:
    request = create_table_request(TABLE)
    request.stream_spec.enable_stream, request.stream_spec.expiration_time = True, 24
    await scene.caller.call(TABLE_OPERATIONS["CreateTable"], request)


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
