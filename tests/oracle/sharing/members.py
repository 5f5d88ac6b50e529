"""Worker processes of both kinds that share a table of leases, and what they have printed."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.oracle.stream_worker import STATUS, StreamWorker
from tests.support.emulator.emulator_scene import TABLE
from tests.support.programs.processes import inherited_environment, unmeasured

OURS = Path(__file__).parent / "our_worker.py"
#: Seconds that a lease lasts, and between two rounds of a worker. Six workers that renew 24 leases, list them and read
#: them more often keep one emulator busy on a slow machine, so that renewals come too late.
LEASE, ROUND = 8.0, 1.0
#: Seconds that a worker has to stop kindly, on a machine that is many times slower.
STOPPING = 300


class Member:
    """A running worker process."""

    def __init__(self, name: str, process: Process) -> None:
        self.name = name
        self.process = process
        self.printed = StreamWorker()
        assert process.stdout is not None
        self._reading = asyncio.create_task(self.printed.read(process.stdout))

    @property
    def is_ours(self) -> bool:
        return self.name.startswith("ours")

    @property
    def has_failed(self) -> bool:
        """Whether it has ended by itself, with an error."""
        return self.process.returncode not in (None, 0, -signal.SIGKILL, -signal.SIGTERM)

    @property
    def shut_down(self) -> set[str]:
        """The shards whose lease it had lost when it last said something about them."""
        last = {event[1]: event for event in self.printed.events if event[0] != "error"}
        return {shard for shard, event in last.items() if event[0] == "stop" and event[2] == "ZOMBIE"}

    async def stop(self) -> None:
        """Stop it kindly; one that has only begun to start ends by the signal."""
        self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(STOPPING):
            await self.process.wait()
        await self._reading

    async def kill(self) -> None:
        """Kill it, if it runs."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        await self._reading

    async def pause(self, seconds: float) -> None:
        """Stop it, as SIGSTOP does, for some seconds."""
        self.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGCONT)


class Members:
    """Starts workers on the scene's table."""

    def __init__(self, endpoint: str, java: Path) -> None:
        self._endpoint = endpoint
        self._java = java
        self.all: list[Member] = []

    def running(self, *, ours: bool) -> list[Member]:
        """The workers of one kind that run."""
        return [each for each in self.all if each.is_ours is ours and each.process.returncode is None]

    @property
    def failed(self) -> list[Member]:
        """The workers that have ended by themselves, with an error."""
        return [each for each in self.all if each.has_failed]

    async def complete(self) -> None:
        """Start workers until three of each kind run.

        One of the library's ends where a call has failed too often, and sometimes while it starts beside others.
        """
        for ours in (True, False) * 3:
            if len(self.running(ours=ours)) < 3:
                await self.start(ours=ours)

    async def start(self, *, ours: bool) -> Member:
        """Start a worker under an id of its own."""
        name = f"{'ours' if ours else 'java'}-{len(self.all)}"
        command = [sys.executable, str(OURS)] if ours else [str(self._java)]
        flags = {
            "endpoint": self._endpoint,
            "instance": "demo",
            "key-id": "test-id",
            "key-secret": "test-secret",
            "table": TABLE,
            "status-table": STATUS,
            "worker": name,
            "lease-millis": round(1000 * LEASE),
            "round-millis": round(1000 * ROUND),
        }
        if not ours:
            flags["idle-millis"] = 300  # not every 20 ms: six workers ask one emulator
        process = await asyncio.create_subprocess_exec(
            *command,
            *(f"-{flag}={value}" for flag, value in flags.items()),
            stdout=PIPE,
            stderr=None if ours else asyncio.subprocess.DEVNULL,
            env=unmeasured(inherited_environment()),
        )
        made = Member(name, process)
        self.all.append(made)
        return made

    def delivered(self) -> set[tuple[str, int]]:
        """The numbers of each key that any worker has read."""
        written = [each.printed.written for each in self.all]
        return {(key, number) for found in written for key, numbers in found.items() for number in numbers}

    def first_seen(self) -> dict[str, dict[int, int]]:
        """When any worker saw each number of each key for the first time: nanoseconds of `time.monotonic_ns`.

        A worker reads the clock before it stores how far it has read, so before another one may read on from there.
        Every program on a machine has the same clock: however late a pipe brings a line, its time tells the order.
        """
        found: dict[str, dict[int, int]] = defaultdict(dict)
        for each in self.all:
            for _, _, key, number, time in each.printed.of("record"):
                seen = found[key]
                seen[int(number)] = min(int(time), seen.get(int(number), int(time)))
        return found

    def sessions(self) -> Iterator[tuple[str, dict[str, list[int]]]]:
        """What each worker has read of each shard between two beginnings, by key, in the order of arrival."""
        for member in self.all:
            open_sessions: dict[str, dict[str, list[int]]] = {}
            for kind, shard, *rest in member.printed.events:
                if kind == "start":
                    if shard in open_sessions:
                        yield f"{member.name} on {shard}", open_sessions[shard]
                    open_sessions[shard] = defaultdict(list)
                elif kind == "record":
                    _, key, number, _ = rest
                    open_sessions[shard][key].append(int(number))
            for shard, session in open_sessions.items():
                yield f"{member.name} on {shard}", session


@asynccontextmanager
async def members_of(endpoint: str, java: Path) -> AsyncIterator[Members]:
    """Workers; those that still run at the end are killed."""
    members = Members(endpoint, java)
    try:
        yield members
    finally:
        for each in members.all:
            await each.kill()
