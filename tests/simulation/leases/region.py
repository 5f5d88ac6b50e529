"""One story of workers that share leases."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from ots_tunnel.client.table_calls import batch_write_request
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.stream.lease.lease import NO_WORKER
from tests.simulation.faults import Kind
from tests.simulation.leases.faults import KINDS
from tests.simulation.leases.ledger import LEASES, SILENT, LeaseWritten, note_leases
from tests.simulation.leases.moving import Moving
from tests.simulation.leases.ownership import Ownership
from tests.simulation.leases.programs import follow_stream, library_program
from tests.simulation.leases.scenario import LeasesScenario
from tests.simulation.leases.sharing import Sharing
from tests.simulation.oracles.history import VERSIONS_FROM_MS
from tests.simulation.service import COPY, SOURCE, TABLE
from tests.simulation.worker import GRACE, RESTART, Pod
from tests.simulation.workload import Workload
from tests.support.ledger import Entry
from tests.support.row_changes import change_of

#: Seconds without faults, beyond the duration of a lease, after which everything has to be right.
SETTLING = 300.0
#: Seconds in which nothing may move once everything is right.
QUIET = 120.0
#: Seconds of calls in a round of a taker: a list, a few takes, a steal.
ROUND_CALLS = 2.0


class LeasesRegion(Workload):
    """Everything of one story."""

    kinds: ClassVar[Mapping[str, Kind]] = KINDS

    def __init__(self, scenario: LeasesScenario, folder: Path) -> None:
        seed = f"leases:{scenario.seed}"
        super().__init__(seed, scenario, folder, range_rows=scenario.page_rows)
        note_leases()
        self.service.silent = self.service.silent | SILENT
        self.scenario = scenario
        resets_count = 3 * scenario.timeout
        self.sharing = Sharing(
            self.history, self.violate, self._asks_the_fence, resets_count, lambda who: who[0] == "j"
        )
        # an owner that dies has renewed just now; who sees it learns that one round later, and acts one after that
        within = scenario.timeout + 2 * (scenario.take + ROUND_CALLS)
        self.ownership = Ownership(self.violate, within)
        self.moving = Moving(self.violate, scenario.timeout, scenario.take)
        self._moves_seen = 0

    def judge(self, entry: Entry) -> None:
        self.sharing.take(entry)
        if isinstance(entry, LeaseWritten):
            self.moving.take(entry)
        for at in self.sharing.moves[self._moves_seen :]:
            self.story.tell("leases", "one has another owner since %.3f s", at)
        self._moves_seen = len(self.sharing.moves)

    def counts(self) -> dict[str, int]:
        return {**self.sharing.counts, **self.moving.counts()}

    # The story

    @property
    def _ours(self) -> list[Pod]:
        return self.pods[: self.scenario.workers]

    @property
    def _libraries(self) -> list[Pod]:
        return self.pods[self.scenario.workers :]

    def _asks_the_fence(self, who: str) -> bool:
        return who.startswith("w") and self.scenario.sink == "tablestore"

    async def tell(self) -> None:
        scenario = self.scenario
        self._prepare()
        names = [f"w{number}" for number in range(scenario.workers)] + [f"j{number}" for number in range(scenario.java)]
        for name in names:
            program = follow_stream if name.startswith("w") else library_program(self.witness)
            pod = Pod(self.loop, self.story, name, scenario.name, self.document(), self.violate, program)
            self.pods.append(pod)
            self.loop.after(self.chance.uniform(0, 3), pod.start)
        self._expect(0)
        looking = asyncio.create_task(self._look())
        await self._write(self.loop.now + scenario.length)
        self.service.emulator.clear_faults()
        self.story.tell("writers", "are done")
        await self._settle()
        await self._stay_quiet()
        looking.cancel()
        await self._stop()

    def _prepare(self) -> None:
        """Both tables with the same rows; the stream begins with them, and is cut between them."""
        self._create_tables()
        for key in self._keys:
            for _ in range(self.chance.randint(1, 6)):
                self.history.write(key)
                change = change_of(key, self.history.last[key], VERSIONS_FROM_MS)
                self.service.call(COPY, "BatchWriteRow", batch_write_request(TABLE, [change]))
        self.service.emulator.set_partitions(SOURCE, TABLE, self.scenario.partitions)
        request = pb.UpdateTableRequest(table_name=TABLE)
        request.stream_spec.enable_stream, request.stream_spec.expiration_time = True, 24
        self.service.call(SOURCE, "UpdateTable", request)

    def document(self) -> dict[str, Any]:
        """The document that our pods are started with; each adds its id."""
        scenario, keys = self.scenario, {"directory": str(self._folder)}
        sink: dict[str, Any] = {"python": {"factory": "tests.simulation.processors:factory"}}
        if scenario.sink == "tablestore":
            place = {"endpoint": "http://copy.region", "instance": COPY, "table": TABLE, "credentials": keys}
            sink = {"tablestore": place}
        return {
            "source": {
                "endpoint": "http://source.region",
                "instance": SOURCE,
                "table": TABLE,
                "leaseTable": LEASES,
                "credentials": keys,
            },
            "sink": sink,
            "client": {
                "leaseDurationSeconds": scenario.timeout,
                "renewIntervalSeconds": scenario.interval,
                "takeIntervalSeconds": scenario.take,
                "syncIntervalSeconds": scenario.sync,
                "drainSeconds": scenario.drain,
                "checkpointIntervalSeconds": scenario.checkpoint_interval,
                "lanesPerChannel": scenario.lanes,
            },
            "delivery": {"batchMaxRows": scenario.batch_rows},
        }

    # Looks

    def _shards(self) -> dict[str, bool]:
        """The shards that the stream lists, and whether each is read to its end."""
        log = self.service.emulator.instances[SOURCE].tables[TABLE].log
        assert log is not None
        rows = self.sharing.rows
        return {shard: shard in rows and rows[shard].is_finished for shard in log.partitions}

    def _holder(self, shard: str) -> Pod | None:
        """The worker that holds a lease, as it says itself and as the table has it."""
        row = self.sharing.rows.get(shard)
        for pod in self.pods if row is not None else ():
            if pod.is_running and pod.process is not None and pod.process.name == row.owner and pod.worker is not None:
                held = pod.worker.status.channels if pod in self._ours else None
                is_held = shard in held if held is not None else pod.run(pod.worker.holds, shard)
                return pod if is_held else None
        return None

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(1)
            unread = [shard for shard, is_read in self._shards().items() if not is_read]
            self.ownership.look(self.loop.now, unread, lambda shard: self._holder(shard) is not None)

    # The end

    async def _settle(self) -> None:
        """Wait until everything is right, and no path is disturbed any more."""
        await self._wait_undisturbed()
        until = self.loop.now + self.scenario.timeout + SETTLING
        rest = 4 * self.scenario.take
        begun = float("inf")
        while (unfit := self._unfit()) or self.loop.now < begun + rest:
            begun = float("inf") if unfit else min(begun, self.loop.now)
            self._end_stuck()
            if self.ownership.calm_since is None and all(
                pod.is_running and pod.worker is not None for pod in self.pods
            ):
                self.ownership.calm_since = self.loop.now
                self.story.tell("region", "is calm")
            if unfit and self.loop.now > until:
                self.violate("unstable", f"long after the last fault: {'; '.join(unfit)}")
                return
            await asyncio.sleep(1)
        self.story.tell("region", "everything is copied, and every lease is at rest")

    def _end_stuck(self) -> None:
        """End the library's workers that hold a lease and read its shard no more, as docs/stream.md tells people to."""
        for pod in self._libraries:
            if pod.is_running and pod.worker is not None and pod.run(pod.worker.is_stuck):
                self.story.tell(pod.name, "holds a lease and reads the shard no more: it is ended")
                pod.kill(RESTART[0])

    def _unfit(self) -> list[str]:
        """What is not as it has to be without faults."""
        unfit = [f"not copied: {', '.join(missing[:5])}"] if (missing := self.sharing.missing()) else []
        if not unfit and (different := self._unlike()):
            unfit.append(f"unlike the source: {', '.join(different[:5])}")
        for pod in self.pods:
            if not pod.is_running or pod.worker is None:
                unfit.append(f"{pod.name} does not run")
            elif pod in self._ours and pod.worker.status.error:
                unfit.append(f"{pod.name} reports {pod.worker.status.error}")
        return unfit + self._restless()

    def _restless(self) -> list[str]:
        """Leases that are not where they stay."""
        shares, unfit = Counter({pod.name: 0 for pod in self.pods}), []
        for shard in self._shards():
            holder, row = self._holder(shard), self.sharing.rows.get(shard)
            if holder is None or row is None:
                unfit.append(f"shard {shard[:8]} is held by no worker")
                continue
            shares[holder.name] += 1
            if row.stealer != NO_WORKER:
                unfit.append(f"shard {shard[:8]} is on its way to {row.stealer}")
            if self._is_closed(shard) and not row.is_finished:
                unfit.append(f"shard {shard[:8]} is not read to its end")
        if shares and max(shares.values()) - min(shares.values()) > 1:
            unfit.append(f"shares are {dict(shares)}")
        return unfit

    def _is_closed(self, shard: str) -> bool:
        log = self.service.emulator.instances[SOURCE].tables[TABLE].log
        assert log is not None
        return log.partitions[shard].closed_us is not None

    def _unlike(self) -> list[str]:
        """Keys whose rows differ between source and copy, where every write was fenced."""
        return [] if self.scenario.java or self.scenario.sink != "tablestore" else self.different_keys()

    async def _stay_quiet(self) -> None:
        """Nothing is written any more, no lease moves, and everything stays right."""
        begun = self.loop.now
        await asyncio.sleep(QUIET)
        if self._last_written > begun:
            self.violate("restless", f"rows were written at {self._last_written:.3f} s, after everything was copied")
        elif moves := [at for at in self.sharing.moves if at > begun]:
            self.violate("restless", f"leases moved at {moves[:5]}, after {begun:.3f} s")
        elif unfit := self._unfit():
            self.violate("unstable", f"without any fault: {'; '.join(unfit)}")

    async def _stop(self) -> None:
        """Stop our workers, one after the other: each ends in time, and hands its leases over."""
        for pod in self._ours:
            assert pod.process is not None
            name, pod.is_wanted = pod.process.name, False
            pod.terminate()
            until = self.loop.now + GRACE - 5
            while pod.process is not None:
                if self.loop.now > until:
                    self.violate("drain", f"{pod.name} did not end in time")
                    return
                await asyncio.sleep(0.5)
            await asyncio.sleep(0.5)
            if owned := [shard for shard, row in self.sharing.rows.items() if row.owner == name]:
                self.violate("drain", f"{name} has left {len(owned)} leases without an heir")
        for pod in self._libraries:
            pod.is_wanted = False
            pod.terminate()
        await asyncio.sleep(5)


def _is_library(who: str) -> bool:
    return who.startswith("j")
