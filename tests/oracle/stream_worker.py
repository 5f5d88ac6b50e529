"""A running worker of the vendor's Stream Client library, and the events that it has printed."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from tests.support.emulator.emulator_scene import TABLE, EmulatorScene, create_table_request

STATUS = "leases"


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
        for _, _, key, value, _ in self.of("record"):
            found[key].append(int(value))
        return found

    def has(self, count: int) -> bool:
        errors = self.of("error")
        assert errors == [], errors
        return len(self.of("record")) >= count


@asynccontextmanager
async def running(program: Path, endpoint: str, **flags: int) -> AsyncIterator[StreamWorker]:
    """Run the program inside the block; then kill it, so that it releases nothing."""
    process = await asyncio.create_subprocess_exec(
        program,
        f"-endpoint={endpoint}",
        "-instance=demo",
        "-key-id=test-id",
        "-key-secret=test-secret",
        f"-table={TABLE}",
        f"-status-table={STATUS}",
        *(f"-{name}={value}" for name, value in flags.items()),
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
