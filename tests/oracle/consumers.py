"""Worker processes, the vendor's and ours, and their delivered records in the order of arrival.

A delivery session is one owner's uninterrupted hold of a channel: it ends when another client delivers the channel's
next record.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
from asyncio.subprocess import PIPE, Process
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ots_tunnel.config import (
    ClientConfig,
    CredentialsConfig,
    HttpConfig,
    SinkConfig,
    StdoutSinkConfig,
    TunnelConfig,
    WorkerConfig,
    dump_config,
)
from tests.support.emulator.emulator_scene import TABLE, EmulatorScene
from tests.support.programs.go_program import go_command
from tests.support.programs.processes import inherited_environment, module

#: A page of records is one line of the Go worker.
LINE_LIMIT = 1 << 26
#: Our worker allows no shorter heartbeat than the service; the vendor's do, which makes the tests fast.
OUR_BEAT, OUR_TIMEOUT = 5, 12
THEIR_BEAT, THEIR_TIMEOUT, THEIR_PAUSE = "500ms", "4s", "1s"


@dataclass(frozen=True, slots=True)
class Arrival:
    """One delivered record: the number written to a key."""

    consumer: str
    client: str
    channel: str
    key: str
    number: int


@dataclass
class Delivered:
    """Records delivered by all consumers, in the order of arrival."""

    arrivals: list[Arrival] = field(default_factory=list)

    def records(self) -> list[tuple[str, int]]:
        return [(arrival.key, arrival.number) for arrival in self.arrivals]

    def by(self, consumer: str) -> list[Arrival]:
        return [arrival for arrival in self.arrivals if arrival.consumer == consumer]

    def sessions(self) -> Iterator[list[Arrival]]:
        """Records of each uninterrupted hold of a channel."""
        channels: dict[str, list[Arrival]] = defaultdict(list)
        for arrival in self.arrivals:
            channels[arrival.channel].append(arrival)
        for held in channels.values():
            for _, session in itertools.groupby(held, lambda arrival: (arrival.consumer, arrival.client)):
                yield list(session)

    def owners(self) -> dict[str, list[str]]:
        """Per channel, the consumers that delivered it, in order."""
        names: dict[str, list[str]] = defaultdict(list)
        for session in self.sessions():
            names[session[0].channel].append(session[0].consumer)
        return names


def check_monotonic(records: Iterable[Arrival]) -> None:
    """Per key, numbers strictly increase."""
    last: dict[str, int] = {}
    for record in records:
        assert record.number > last.get(record.key, 0), f"{record} after {last[record.key]}"
        last[record.key] = record.number


class Consumer:
    """A running worker process."""

    def __init__(self, name: str, process: Process, delivered: Delivered) -> None:
        self.name = name
        self.process = process
        self.summary: dict[str, Any] = {}
        self._delivered = delivered
        self._errors: list[str] = []
        self._tasks = (asyncio.create_task(self._read()), asyncio.create_task(self._read_errors()))

    @property
    def errors(self) -> str:
        """The lines of its standard error."""
        return "".join(self._errors)

    async def wait(self, seconds: float = 90) -> int:
        """Exit status, once everything it wrote has been read."""
        async with asyncio.timeout(seconds):
            await asyncio.gather(*self._tasks)
            return await self.process.wait()

    async def leave(self, seconds: float = 90) -> None:
        """End in order."""
        self.process.send_signal(signal.SIGTERM)
        assert await self.wait(seconds) == 0, self.errors

    async def kill(self) -> None:
        """Kill the process if it still runs."""
        if self.process.returncode is None:
            self.process.kill()
        await self.wait()

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            document = json.loads(line)
            if "rows" in document:
                self.summary = document
            elif "records" in document:
                self._delivered.arrivals += map(lambda entry: _theirs(self.name, document, entry), document["records"])
            else:
                self._delivered.arrivals.append(_ours(self.name, document))

    async def _read_errors(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self._errors.append(line.decode(errors="replace"))


def _theirs(name: str, batch: dict[str, Any], entry: dict[str, Any]) -> Arrival:
    return Arrival(name, batch["client"], batch["channel"], entry["key"][0], entry["columns"]["n"])


def _ours(name: str, line: dict[str, Any]) -> Arrival:
    (column,) = line["columns"]
    return Arrival(name, name, line["channel"], line["key"]["pk"], column["value"])


class Consumers:
    """Starts workers on the scene's tunnel."""

    def __init__(self, scene: EmulatorScene, program: Path, folder: Path) -> None:
        self.delivered = Delivered()
        self._scene = scene
        self._program = program
        self._folder = folder
        self._members: list[Consumer] = []

    async def theirs(
        self, name: str = "theirs", endpoint: str | None = None, *, program: Path | None = None, **flags: object
    ) -> Consumer:
        """Start a worker of the vendor's: the consumers's, or another program with the same flags."""
        endpoint = endpoint or self._scene.emulator.endpoint
        flags = {"heartbeat": THEIR_BEAT, "timeout": THEIR_TIMEOUT, "reconnect": THEIR_PAUSE, **flags}
        command = go_command(program or self._program, endpoint, self._scene.tunnel_id, "print", **flags)
        return await self._start(name, command)

    async def ours(self, name: str = "ours") -> Consumer:
        """Start our worker with the stdout sink."""
        path = self._folder / f"{name}.yaml"
        path.write_text(dump_config(self._document(name)))
        return await self._start(name, module("ots_tunnel", "run", "--config", str(path)))

    async def _start(self, name: str, command: list[str]) -> Consumer:
        process = await asyncio.create_subprocess_exec(
            *command, stdout=PIPE, stderr=PIPE, limit=LINE_LIMIT, env=inherited_environment(), cwd=self._folder
        )
        consumer = Consumer(name, process, self.delivered)
        self._members.append(consumer)
        return consumer

    async def dismiss(self) -> None:
        """End every worker that still runs."""
        for member in self._members:
            await member.kill()

    def _document(self, name: str) -> WorkerConfig:
        keys = self._folder / "keys"
        keys.mkdir(exist_ok=True)
        (keys / "accessKeyId").write_text("test-id")
        (keys / "accessKeySecret").write_text("test-secret")
        return WorkerConfig(
            source=TunnelConfig(
                endpoint=self._scene.emulator.endpoint,
                instance="demo",
                credentials=CredentialsConfig(directory=keys),
                table=TABLE,
                tunnel_name="t",
                tunnel_id=self._scene.tunnel_id,
            ),
            sink=SinkConfig(stdout=StdoutSinkConfig()),
            client=ClientConfig(
                tag_prefix=name,
                heartbeat_interval_seconds=OUR_BEAT,
                heartbeat_timeout_seconds=OUR_TIMEOUT,
                checkpoint_interval_seconds=1,
            ),
            http=HttpConfig(port=0),
        )


@asynccontextmanager
async def consumers_of(scene: EmulatorScene, program: Path, folder: Path) -> AsyncIterator[Consumers]:
    """Workers on the scene's tunnel; those still running at the end are killed."""
    consumers = Consumers(scene, program, folder)
    try:
        yield consumers
    finally:
        await consumers.dismiss()
