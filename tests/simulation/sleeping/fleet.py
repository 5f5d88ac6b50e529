"""A fleet that sleeps: whatever is written is copied, and the status does not claim to sleep well when it cannot know.

meddling    the operator is no client: it connects, reports and stores nothing, and what it reads moves no checkpoint,
            consume point or row count
overslept   rows that are written while no worker runs are copied soon, and no worker is missing for longer than a
            quarter of the retention
unseen      with Ready=True and Asleep the operator has read an empty page of every channel within the bound: in every
            status that it writes, and, with some patience, in every look at what is stored
restless    while it sleeps and nothing happens, nothing is written to the API server
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ots_tunnel.model import ChannelStatus
from tests.simulation.fleet.claims import Claims
from tests.simulation.fleet.endings.losses import RETENTION_HOURS
from tests.simulation.fleet.evidence import Evidence
from tests.simulation.fleet.fleet import NAME, NAMESPACE, Fleet
from tests.simulation.sleeping.bereft import Bereft
from tests.simulation.sleeping.nights import NIGHTS, asleep
from tests.simulation.sleeping.scenario import SleepingScenario
from tests.support.ledger import Connected, Entry, Read, Reported, Stored

#: Seconds between two looks at the fleet.
LOOK_SECONDS = 2.0
#: Seconds for a pass, a pod's start, and the channels of a worker that was killed.
STARTING = 150.0
#: Seconds in which a fleet without work falls asleep, beside its idle time: it may begin with several workers.
FALLING = 1500.0
#: Seconds in which a status may still claim what was not looked at within the bound: a pass that failed, and the next.
UNSEEN = 45.0
#: Seconds of sleep in which nothing may be written.
STILL = 240.0


class SleepingEvidence(Evidence):
    """What backs the claim that nothing is to be read: empty pages of every channel."""

    def __init__(self, fleet: SleepingFleet, operator: str) -> None:
        super().__init__(fleet, operator)
        self._sleeping = fleet
        self._empty: dict[str, float] = {}

    def read(self, entry: Read) -> None:
        """The operator has read a page."""
        if entry.rows:
            self._empty.pop(entry.channel, None)
        else:
            self._empty[entry.channel] = entry.t

    def _wrong_lag(self, lag: Mapping[str, Any], since: float) -> Iterator[tuple[str, str]]:
        operator = self._sleeping.operator.process
        # times of a status come from the operator's clock
        yield from super()._wrong_lag(lag, since - (0.0 if operator is None else operator.ahead))

    def unseen(self) -> str:
        """A channel of which no empty page was read within the bound; empty where there is none."""
        bound = self._sleeping.loop.now - 2 * self._sleeping.scenario.peek - self._longest_pass()
        for channel in self._described.streams if self._described is not None else ():
            if channel.status is not ChannelStatus.TERMINATED and self._empty.get(channel.id, -1.0) < bound:
                return channel.id[:8]
        return ""

    def _wrong(
        self, before: Mapping[str, Any], after: Mapping[str, Any], change: Mapping[str, Any]
    ) -> Iterator[tuple[str, str]]:
        if not asleep(after):
            yield from super()._wrong(before, after, change)
            return
        if "conditions" not in change:
            return  # a record before the step that follows from it
        if channel := self.unseen():
            yield "unseen", f"Asleep, and no empty page of {channel} was read within the bound"


class SleepingClaims(Claims):
    """What a status says of a fleet that sleeps."""

    def _ready(self, status: Mapping[str, Any]) -> str:
        if not asleep(status):
            return super()._ready(status)
        late = self._fleet.missing_before(self._fleet.loop.now - 600.0)
        return f"Asleep, and not copied: {', '.join(late[:5])}" if late else ""

    def _orphaned(self, status: Mapping[str, Any]) -> str:
        return "" if asleep(status) else super()._orphaned(status)


class SleepingFleet(Fleet):
    """Everything of one story."""

    scenario: SleepingScenario

    def __init__(self, scenario: SleepingScenario, folder: Path) -> None:
        super().__init__(scenario, folder)
        self.evidence: SleepingEvidence = SleepingEvidence(self, "operator")
        self.claims = SleepingClaims(self, self.violate)
        self._alone: dict[str, tuple[Any, ...]] = {}
        self._alone_since: float | None = None
        self._unseen_since: float | None = None
        self.nights = 0

    def counts(self) -> dict[str, int]:
        return {**super().counts(), "nights": self.nights}

    def apply(self, name: str = NAME, **changes: Any) -> None:
        scenario = self.scenario
        autoscaling = {
            "mode": "Auto",
            "minReplicas": 0,
            "maxReplicas": scenario.most,
            "scaleDown": {"stabilizationSeconds": 60},
            "scaleToZero": {
                "enabled": True,
                "idleSeconds": scenario.idle,
                "peekIntervalSeconds": scenario.peek,
            },
        }
        super().apply(name, **{"autoscaling": autoscaling, **changes})

    def witness(self, entry: Entry) -> None:
        super().witness(entry)
        if not entry.who.startswith("operator"):
            return
        if isinstance(entry, Connected | Stored | Reported):
            self.violate("meddling", f"{entry.who} acts as a client: {entry}")
        if isinstance(entry, Read):
            self.evidence.read(entry)

    async def tell(self) -> None:
        self._prepare()
        self._controlling = asyncio.create_task(self.controllers.run())
        watching = [asyncio.create_task(each) for each in (self._look(), self._watch())]
        self.operator.start()
        await self._write(self.scenario.length)
        self._end_faults()
        for name in self.scenario.nights:
            await self.fall_asleep()
            self.story.tell("region", "the night of %s", name)
            await NIGHTS[name](self)
            await self._settle()
            self.nights += 1
        await self.fall_asleep()
        await self._stay_quiet()
        await Bereft(self).happen()
        for task in watching:
            task.cancel()
        await self._delete()
        self.stop_controllers()

    # What is

    @property
    def quarter(self) -> float:
        """Seconds for which no worker may run at a stretch."""
        return RETENTION_HOURS * 3600 / 4

    @property
    def slack(self) -> float:
        """Seconds within which a worker has to run, or rows have to be copied, without faults."""
        return 3 * self.scenario.peek + STARTING

    @property
    def is_asleep(self) -> bool:
        """Whether no pod is left and the status says so."""
        found, workers = self.stored(), self.store.peek(("Deployment", NAMESPACE, NAME))
        is_empty = workers is not None and not workers["spec"]["replicas"] and not self.pods()
        return is_empty and found is not None and asleep(found.get("status") or {})

    async def _watch(self) -> None:
        """Nothing moves on the channels while no worker lives, and none is missing for too long."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self._judge_sight()
            tunnel = self.tunnel()
            if tunnel is None or self.programs() or self.pods():
                self._alone, self._alone_since = {}, None
                continue
            self._alone_since = self.loop.now if self._alone_since is None else self._alone_since
            found = {
                f"{channel.id[:8]} of {tunnel.id}": (
                    channel.token,
                    channel.sequence,
                    channel.consume_point_ns,
                    channel.rows,
                )
                for channel in tunnel.channels.values()
            }
            moved = [key for key, before in self._alone.items() if found.get(key, before) != before]
            if moved:
                self.violate("meddling", f"with no worker, {moved[0]} has moved")
            self._alone = found
            if not self.is_operator_able or self.is_suspended:
                self._alone_since = self.loop.now
            if self.loop.now - self._alone_since > self.quarter + self.slack:
                self.violate("overslept", f"no worker for {self.loop.now - self._alone_since:.0f} s")

    def _judge_sight(self) -> None:
        """Judge whether what is stored still claims to sleep well when the operator has not looked for long."""
        claims = asleep((self.stored() or {}).get("status") or {})
        if not claims or not self.is_operator_able or not self.evidence.unseen():
            self._unseen_since = None
            return
        self._unseen_since = self.loop.now if self._unseen_since is None else self._unseen_since
        if self.loop.now - self._unseen_since > UNSEEN:
            self.violate("unseen", f"Asleep, and for long no empty page of {self.evidence.unseen()} was read")

    # What nights need

    async def fall_asleep(self) -> None:
        """Wait until no worker runs because nothing is to be read."""
        await self._wait(lambda: self.is_asleep, self.scenario.idle + FALLING, "awake", "it does not fall asleep")

    async def doze(self) -> None:
        """Let some time pass."""
        await asyncio.sleep(self.chance.uniform(0, 3 * self.scenario.peek))

    async def be_quiet(self) -> None:
        """Let some time pass in which nothing may be written to the API server."""
        await asyncio.sleep(60.0)
        begun = self.loop.now
        await asyncio.sleep(STILL)
        if later := [at for at in self.fates.writes if at > begun]:
            self.violate("restless", f"{len(later)} writes to the API server while it sleeps")

    def write_rows(self) -> None:
        """Write some rows at the source."""
        keys = self.key_names()
        for _ in range(self.chance.randint(1, 8)):
            self.history.write(keys[self.chance.randrange(len(keys))])

    async def wake_by_rows(self, fault: float = 0.0) -> None:
        """Write rows, and wait until they are copied; `fault` is how long something may keep that from happening."""
        self.write_rows()
        await self.wait_for_rows(fault + self.slack)

    async def wait_for_rows(self, seconds: float) -> None:
        """Wait until everything is copied, what was written in this moment as well."""
        await self._wait(
            lambda: not self.missing_before(self.loop.now + 1), seconds, "overslept", "rows are not copied"
        )

    async def wait_for_worker(self, why: str, seconds: float) -> None:
        """Wait until a worker runs."""
        await self._wait(lambda: bool(self.programs()), seconds, "overslept", f"no worker after {why}")

    async def wait_for_decision(self) -> None:
        """Wait until the last worker is told to go."""

        def is_decided() -> bool:
            found = (self.stored() or {}).get("status") or {}
            return (found.get("autoscaling") or {}).get("desiredReplicas") == 0

        await self._wait(is_decided, self.scenario.idle + FALLING, "awake", "it does not fall asleep")

    async def _wait(self, is_over: Any, seconds: float, rule: str, text: str) -> None:
        until = self.loop.now + seconds
        while not is_over():
            if self.loop.now > until:
                self.violate(rule, f"{text} within {seconds:.0f} s: {'; '.join(self.unfit())}")
                return
            await asyncio.sleep(0.5)

    def _unfit_while_following(self, status: Any, wanted: int) -> list[str]:
        if self.is_asleep:
            return []
        desired = (status.get("autoscaling") or {}).get("desiredReplicas", wanted)
        return super()._unfit_while_following(status, desired)
