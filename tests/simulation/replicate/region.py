"""A region in which users copy a table by `ots-tunnel replicate`, several of them at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from ots_tunnel.errors import TunnelError
from ots_tunnel.job_file import JobFile
from ots_tunnel.replicate.job import Copied
from tests.simulation.faults import Kind
from tests.simulation.fleet import tables
from tests.simulation.machine.process import EPOCH, Process
from tests.simulation.region import LOOK_INTERVAL, SETTLING, Region
from tests.simulation.replicate import epilogues
from tests.simulation.replicate.scenario import REPLICATE_KINDS, ReplicateScenario
from tests.simulation.replicate.terminal import Terminal, command
from tests.simulation.service import COPY, SOURCE, TABLE, TUNNEL
from tests.support.emulator.emulator_scene import create_table_request
from tests.support.ledger import Entry
from tests.support.row_changes import VERSIONS

#: Seconds for a run to which nothing happens.
ALONE = 200.0


class ReplicateRegion(Region):
    """Everything of one story."""

    kinds: ClassVar[Mapping[str, Kind]] = REPLICATE_KINDS
    scenario: ReplicateScenario

    def __init__(self, scenario: ReplicateScenario, folder: Path) -> None:
        super().__init__(scenario, folder)
        self._completed: list[str] = []
        #: Whether everything is copied, and an epilogue may follow.
        self._is_over = False
        end = datetime.fromtimestamp(EPOCH + scenario.end, UTC)
        reader = {"endpoint": "http://source.region", "instanceName": SOURCE, "tableName": TABLE}
        writer = {"endpoint": "http://copy.region", "instanceName": COPY, "tableName": TABLE}
        document = {
            "ots-reader": {**reader, "tunnelName": TUNNEL, "endTime": end.isoformat()},
            "ots-writer": {**writer, "batchWriteCount": min(200, scenario.batch_rows)},
        }
        self._job = (JobFile.model_validate(document), end)
        tables.install(self.service)

    def witness(self, entry: Entry) -> None:
        if not self._is_over:  # the channels of a new tunnel have the names of old ones
            super().witness(entry)

    def counts(self) -> dict[str, int]:
        return {**super().counts(), "runs that were complete": len(self._completed)}

    async def tell(self) -> None:
        scenario = self.scenario
        self._make_tables()
        for number in range(scenario.workers):
            name = f"t{number}"
            terminal = Terminal(
                self.loop,
                self.story,
                name,
                str(scenario.seed),
                self._job,
                self.violate,
                self._complete,
                lambda: any(pod.process is not None for pod in self.pods),
            )
            self.pods.append(terminal)
            self.loop.after(self.chance.uniform(0, 20 * number), terminal.start)
        self._expect(0)
        looking = asyncio.create_task(self._look())
        await self._write(self.loop.now + scenario.length)
        self.end_faults()
        self.story.tell("writers", "are done")
        await self._end()
        looking.cancel()
        self._is_over = True
        if self.violation is None:
            await epilogues.happen(self)

    def _make_tables(self) -> None:
        self.service.call(SOURCE, "CreateTable", create_table_request(TABLE, max_versions=VERSIONS))
        if self.scenario.destination == "empty":
            self.service.call(COPY, "CreateTable", epilogues.copy_request())
        self.service.emulator.set_partitions(SOURCE, TABLE, self.scenario.partitions)
        for number in range(self.scenario.keys):
            for _ in range(self.chance.randint(0, 6)):
                self.history.write(f"k{number:02}")

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_INTERVAL)
            tunnel = self.found_tunnel()
            if tunnel is None:
                continue
            owners = {channel.id: channel.owner or self._holder(channel) for channel in tunnel.channels.values()}
            for pod in self.pods:
                if pod.is_running and pod.process is not None and pod.worker is not None:
                    clients = frozenset(tunnel.clients)
                    pod.process.run(self.figures.look, pod.process, pod.worker, owners, clients)

    def found_tunnel(self) -> Any:
        """The tunnel; None before somebody has created it."""
        tunnels = self.service.emulator.instances[SOURCE].tunnels
        found = next((tunnel for tunnel in tunnels.values() if tunnel.name == TUNNEL), None)
        if found is not None:
            self.tunnel = found
        return found

    def _complete(self, process: Process) -> None:
        """A run says that everything is copied."""
        self._completed.append(process.name)
        if missing := self._missing():
            self.violate("complete", f"{process.name} says complete; missing are {', '.join(missing[:5])}")
        for terminal in self.pods:
            terminal.is_wanted = False

    def _missing(self) -> list[str]:
        """What the copy lacks up to the end time: changes, and rows that existed before."""
        copied = {key[0].decode() for key in epilogues.rows_of(self, COPY)}
        source = {key[0].decode() for key in epilogues.rows_of(self, SOURCE)}
        untouched = sorted(source - self.history.first_in_stream.keys() - copied)
        return self.delivery.missing() + [f"{key}: not there" for key in untouched]

    async def _end(self) -> None:
        """Every user runs the command until it says that everything is copied."""
        until = self.loop.now + self.scenario.timeout + SETTLING + 4 * self.scenario.assign_interval
        while running := [pod.name for pod in self.pods if pod.is_wanted or pod.process is not None]:
            if self.loop.now > until:
                self.violate("unstable", f"{', '.join(running)} did not complete the copy long after the last fault")
                return
            await asyncio.sleep(1)
        await asyncio.sleep(1)
        if missing := self._missing():
            self.violate("unstable", f"everybody is done; missing are {', '.join(missing[:5])}")

    # Epilogues

    def rows_of(self, instance: str) -> dict[object, object]:
        """The rows of an instance."""
        return epilogues.rows_of(self, instance)

    def counts_of_tables(self) -> dict[str, Any]:
        """What a refused command must not change."""
        tunnels = self.service.emulator.instances[SOURCE].tunnels
        names = {name: sorted(self.service.emulator.instances[name].tables) for name in (SOURCE, COPY)}
        rows = {name: hash(repr(sorted(self.rows_of(name).items()))) for name in (SOURCE, COPY)}
        return {"tables": names, "tunnels": sorted(tunnels), "rows": rows}

    async def run_once(self, *, merge: bool) -> Copied | TunnelError | None:
        """Run the command once, without faults; None where it does not end."""
        process = Process(self.loop, "last", self.chance, machine="last")

        async def run() -> Copied | TunnelError:
            try:
                return await command(*self._job, lambda text: None, merge=merge).run()
            except TunnelError as error:
                return error

        task = process.start(run())
        done, _ = await asyncio.wait((task,), timeout=ALONE)
        outcome = task.result() if done else None
        self.story.tell("last", "ends: %s", outcome)
        return outcome
