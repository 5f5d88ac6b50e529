"""One region: service, network, workers, writers, faults and oracles on one virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from ots_emulator.refusal import Refusal
from ots_emulator.tunnels.channel import TunnelChannel
from ots_tunnel.model import ChannelId, ChannelStatus, ChannelType, TunnelType
from ots_tunnel.worker.progress.channel_progress import ChannelProgress
from tests.simulation.endings.unfinished import UnfinishedWork
from tests.simulation.faults import KINDS, Kind
from tests.simulation.machine.process import EPOCH, Process
from tests.simulation.oracles.figures import Figures
from tests.simulation.scenario import LEAST_MEMORY_MIB, Scenario
from tests.simulation.service import COPY, SOURCE, TABLE, TUNNEL
from tests.simulation.worker import GRACE, Pod
from tests.simulation.workload import Workload
from tests.support.ledger import Dismissed, Entry, NotStored

#: Seconds between two looks at the workers' figures.
LOOK_INTERVAL = 5.0
#: Seconds without faults, beyond the heartbeat timeout, after which everything has to be right.
SETTLING = 300.0
#: Seconds in which nothing may be written once everything is right.
QUIET = 40.0


class Region(Workload):
    """Everything of one story."""

    kinds: ClassVar[Mapping[str, Kind]] = KINDS

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        seed = str(scenario.seed)
        service = {"page_rows": scenario.page_rows, "assign_interval": scenario.assign_interval}
        super().__init__(seed, scenario, folder, is_fenced=scenario.sink != "python", **service)
        self.scenario = scenario
        self.service.empty_reads = scenario.empty_reads
        self.network.on_taken = self._judge_room
        if scenario.end:
            self.history.end = EPOCH + scenario.end
        beats = {"timeout": scenario.timeout, "interval": scenario.interval}
        self.figures = Figures(self.history, self.delivery, self.violate, **beats)

    def judge(self, entry: Entry) -> None:
        if isinstance(entry, Dismissed):
            self.figures.dismissed(entry)
        if isinstance(entry, NotStored):
            self.figures.not_stored(entry)
        super().judge(entry)

    def counts(self) -> dict[str, int]:
        return {"looks": self.figures.looks}

    # For faults

    def refused(self, control: Callable[..., Any], *arguments: Any) -> None:
        """Call a control of the service that may not be possible any more."""
        try:
            control(*arguments)
        except Refusal as refusal:
            self.story.tell("fault", "  not possible: %s", refusal)

    def forgive(self, process: Process) -> None:
        self.figures.forgive(process.name)

    def write_each_key(self) -> None:
        """Change every row once, unless the writers are done."""
        if self.loop.now < self._writes_until:
            self.write_all()

    def write_all(self) -> None:
        """Change every row once."""
        for key in self._keys:
            self.history.write(key)

    def _judge_room(self, process: Process, count: int) -> None:
        """A process takes so many answers at a time: with the least memory it has room for one, however large."""
        if self.scenario.memory_mib == LEAST_MEMORY_MIB and count > 1:
            self.violate("room", f"{process.name} takes {count} pages into memory at once, with room for one")

    # The story

    async def tell(self) -> None:
        scenario = self.scenario
        await self._prepare()
        for number in range(scenario.workers):
            pod = Pod(self.loop, self.story, f"w{number}", str(scenario.seed), self.document(), self.violate)
            self.pods.append(pod)
            self.loop.after(self.chance.uniform(0, 3), pod.start)
        self._expect(0)
        looking = asyncio.create_task(self._look())
        await self._write(self.loop.now + scenario.length)
        self.end_faults()
        self.story.tell("writers", "are done")
        await self._settle()
        await self._stay_quiet()
        if await UnfinishedWork(self).happen():
            await self._settle()
        looking.cancel()
        await self._stop()

    def end_faults(self) -> None:
        """Nothing goes wrong from now on."""
        self.service.emulator.clear_faults()

    async def _prepare(self) -> None:
        self._create_tables()
        self.service.emulator.set_partitions(SOURCE, TABLE, self.scenario.partitions)
        kind = TunnelType[self.scenario.tunnel]
        emulator = self.service.emulator
        if kind is TunnelType.BaseAndStream:
            for key in self._keys:
                for _ in range(self.chance.randint(0, 6)):
                    self.history.write(key)
        instance = emulator.instances[SOURCE]
        self.tunnel = instance.create_tunnel(TABLE, TUNNEL, kind, None, self.service.clock.now())

    def document(self) -> dict[str, Any]:
        """The document that pods are started with."""
        scenario, keys = self.scenario, {"directory": str(self._folder)}
        side = {"table": TABLE, "credentials": keys}
        tunnel = {"tunnelName": TUNNEL, "tunnelId": str(self.tunnel.id)}
        if self.history.end is not None:
            tunnel["endTime"] = datetime.fromtimestamp(self.history.end, UTC).isoformat()
        return {
            "source": {"endpoint": "http://source.region", "instance": SOURCE, **tunnel, **side},
            "sink": self.sink(),
            "client": {
                "heartbeatIntervalSeconds": scenario.interval,
                "heartbeatTimeoutSeconds": scenario.timeout,
                "drainSeconds": scenario.drain,
                "checkpointIntervalSeconds": scenario.checkpoint_interval,
                "lanesPerChannel": scenario.lanes,
                "maxParallelChannels": scenario.max_parallel_channels,
                "memoryBudgetBytes": scenario.memory_mib << 20,
            },
            "delivery": {
                "batchMaxRows": scenario.batch_rows,
                "onPermanentError": scenario.policy,
                "rateLimit": {"rowsPerSecond": scenario.rows_per_second},
            },
        }

    def sink(self) -> dict[str, Any]:
        """The section of the document that names the sink."""
        if self.scenario.sink == "python":
            return {"python": {"factory": "tests.simulation.processors:factory"}}
        side = {"table": TABLE, "credentials": {"directory": str(self._folder)}}
        return {"tablestore": {"endpoint": "http://copy.region", "instance": COPY, **side}}

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_INTERVAL)
            owners = {channel.id: channel.owner or self._holder(channel) for channel in self.tunnel.channels.values()}
            # the emulator removes a client whose time is over when another one sends a heartbeat
            now, known = self.service.clock.now(), self.tunnel.clients.values()
            clients = frozenset(client.id for client in known if now - client.last_seen <= client.timeout)
            for pod in self.pods:
                if pod.is_running and pod.process is not None and pod.worker is not None:
                    pod.process.run(self.figures.look, pod.process, pod.worker, owners, clients)

    def _holder(self, channel: TunnelChannel) -> str | None:
        """The client that holds a parent of a channel that waits: nobody else can know what the child has."""
        parents = (self.tunnel.channels.get(ChannelId(name)) for name in channel.parents)
        return next((parent.owner for parent in parents if parent is not None and parent.owner), None)

    # The end

    async def _settle(self) -> None:
        """Wait until everything is right, and no path is disturbed any more."""
        await self._wait_undisturbed()
        rest = 2 * self.scenario.interval + 3 * self.scenario.assign_interval
        until = self.loop.now + self.scenario.timeout + SETTLING + 2 * rest
        begun = float("inf")
        # who was suspended learns with a heartbeat that its client is gone; a channel that moves is taken away by one
        # assignment and given out by another one
        while (unfit := self._unfit()) or self.loop.now < begun + rest:
            begun = float("inf") if unfit else min(begun, self.loop.now)
            if unfit and self.loop.now > until:
                self.violate("unstable", f"long after the last fault: {'; '.join(unfit)}")
                return
            await asyncio.sleep(1)
        self.story.tell("region", "everything is copied")

    def _unfit(self) -> list[str]:
        """What is not as it has to be without faults."""
        unfit = [f"not copied: {', '.join(missing[:5])}"] if (missing := self.delivery.missing()) else []
        ends = self.has_ended
        if not unfit and (different := self.unlike()):
            unfit.append(f"unlike the source: {', '.join(different[:5])}")
        clients: dict[str, Pod] = {}
        for pod in self.pods:
            if not pod.is_running or pod.worker is None:
                unfit.append(f"{pod.name} does not run")
                continue
            clients[pod.worker.status.client_id or ""] = pod
            if ends and not pod.worker.status.completed:
                unfit.append(f"{pod.name} does not say that it is complete")
            if pod.worker.status.error:
                unfit.append(f"{pod.name} reports {pod.worker.status.error}")
        for channel in self.tunnel.channels.values():
            if channel.status is ChannelStatus.TERMINATED or (ends and channel.status is ChannelStatus.WAIT):
                continue  # with an end time children of a channel that stopped are never opened
            owner = clients.get(channel.owner or "")
            view = owner.worker.status.channels.get(channel.id) if owner and owner.worker else None
            if owner is None or view is None or channel.status is not ChannelStatus.OPEN:
                unfit.append(f"channel {channel.id[:8]} is {channel.status.name}, owned by {channel.owner}")
            elif view.progress.channel_type is ChannelType.STREAM and not owner.run(_is_fit, view.progress):
                unfit.append(f"channel {channel.id[:8]} is not caught up at {owner.name}")
        return unfit

    @property
    def has_ended(self) -> bool:
        """Whether the end time is over."""
        return self.history.end is not None and self.history.end < EPOCH + self.loop.now

    def unlike(self) -> list[str]:
        """Where the destination differs from the source, once everything that is due has taken effect."""
        return self.different_keys() if self.scenario.sink == "tablestore" and not self.has_ended else []

    async def _stay_quiet(self) -> None:
        """Nothing is written any more, and everything stays right."""
        begun = self.loop.now
        await asyncio.sleep(QUIET)
        if self._last_written > begun:
            self.violate("restless", f"rows were written at {self._last_written:.3f} s, after everything was copied")
        elif unfit := self._unfit():
            self.violate("unstable", f"without any fault: {'; '.join(unfit)}")

    async def _stop(self) -> None:
        """Stop the workers; each ends within its grace period, and leaves nothing behind."""
        for pod in self.pods:
            pod.is_wanted = False
            pod.terminate()
        until = self.loop.now + GRACE - 5
        while running := [pod.name for pod in self.pods if pod.process is not None]:
            if self.loop.now > until:
                self.violate("drain", f"{', '.join(running)} did not end in time")
                return
            await asyncio.sleep(0.5)
        await asyncio.sleep(1)
        if owned := [channel.id for channel in self.tunnel.channels.values() if channel.owner]:
            self.violate("drain", f"channels {owned} were not handed back")


def _is_fit(progress: ChannelProgress) -> bool:
    return progress.caught_up or progress.end_reached
