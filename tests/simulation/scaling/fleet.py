"""A fleet whose load changes; every worker takes one row a second, whatever it could.

What is judged while the load lasts says `course`. Afterwards everything has to have arrived (`unstable`), and:

    idle    the number goes to minReplicas, and then nothing is written
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from tests.simulation.apiserver.store import Manifest
from tests.simulation.fleet.acts import KINDS, Kind, happen
from tests.simulation.fleet.evidence import Evidence
from tests.simulation.fleet.fleet import NAME, NAMESPACE, Fleet
from tests.simulation.scaling import acts
from tests.simulation.scaling.choosers import LOOK, LagHpa
from tests.simulation.scaling.course import LOOK_SECONDS, Course
from tests.simulation.scaling.loads import LOADS, chance_of
from tests.simulation.scaling.scenario import ScalingScenario

#: Seconds after the load in which the number has to be the smallest: two windows down, and what they wait for.
IDLE_SECONDS = 2400.0
#: Seconds until a slow page arrives: some of them after the operator has given up.
SLOW = (0.2, 3.0)


class ScalingFleet(Fleet):
    """Everything of one story."""

    kinds: ClassVar[Mapping[str, Kind]] = {**KINDS, **acts.OPERATOR, **acts.WORKERS, **acts.REPORTS}
    scenario: ScalingScenario

    def __init__(self, scenario: ScalingScenario, folder: Path) -> None:
        super().__init__(scenario, folder)
        self.course = Course(self)
        self.slow_pages_until = 0.0

    def counts(self) -> dict[str, int]:
        return {**super().counts(), **self.course.figures}

    def apply(self, name: str = NAME, **changes: Any) -> None:
        more: dict[str, Any] = {"delivery": {"rateLimit": {"rowsPerSecondPerWorker": 1}}}
        if self.scenario.chooser == "Auto":
            more["autoscaling"] = {"mode": "Auto", "minReplicas": 1, "maxReplicas": self.scenario.most}
        super().apply(name, **{**more, **changes})

    def page_seconds(self, address: str, evidence: Evidence) -> float | None:
        seconds = super().page_seconds(address, evidence)
        if seconds is None or self.loop.now >= self.slow_pages_until:
            return seconds
        return self._chance.uniform(*SLOW)

    @property
    def deployment(self) -> Manifest | None:
        """The Deployment of the workers; it must not be changed."""
        return self.store.peek(("Deployment", NAMESPACE, NAME))

    @property
    def deployed(self) -> int | None:
        """Workers that the Deployment asks for; None without one."""
        return None if self.deployment is None else int(self.deployment["spec"]["replicas"])

    async def tell(self) -> None:
        scenario = self.scenario
        self._prepare()
        self._controlling = asyncio.create_task(self.controllers.run())
        watching = [asyncio.create_task(each) for each in (self._look(), self.course.watch())]
        if scenario.chooser == "HPA":
            watching.append(asyncio.create_task(self._scale_by_lag()))
        self.operator.start()
        for act in scenario.acts:
            self.loop.after(act.at, happen, self, act)
        await self._write(scenario.length)
        self.course.is_loaded = False
        self._end_faults()
        await self._settle()
        if scenario.chooser == "Auto":
            self.course.judge()
            await self._rest()
        if scenario.chooser != "HPA":
            await self._stay_quiet()
        for task in watching:
            task.cancel()
        await self._delete()
        self.stop_controllers()

    def _prepare(self) -> None:
        super()._prepare()
        # with every key there, the partitions get as many of them: one that is too much for a worker is another story
        for key in self.key_names():
            self.history.write(key)

    async def _write(self, until: float) -> None:
        keys, chance = self.key_names(), chance_of(self.scenario.seed)
        rate, due, slow = LOADS[self.scenario.load](chance), 0.0, 0.0
        while self.loop.now < until:
            slow = 0.998 * slow + 0.06 * chance.gauss(0, 0.15)
            due += max(0.0, rate(self.loop.now) * (1 + slow + chance.gauss(0, 0.05)))
            while due >= 1:
                due -= 1
                self.history.write(keys[chance.randrange(len(keys))])
            await asyncio.sleep(1.0)

    async def _rest(self) -> None:
        """Wait until the number is the smallest."""
        until = self.loop.now + IDLE_SECONDS
        while self.deployed != 1 or self.unfit():
            if self.loop.now > until:
                self.violate("idle", f"{self.deployed} workers long after the load: {'; '.join(self.unfit())}")
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def _scale_by_lag(self) -> None:
        hpa = LagHpa(self.scenario.most)
        while True:
            await asyncio.sleep(LOOK)
            found = self.stored()
            if found is not None and (wanted := hpa.choose(found, self.loop.now)) != found["spec"]["replicas"]:
                self.edit({"replicas": wanted})

    def _unfit_while_following(self, status: Any, wanted: int) -> list[str]:
        desired = (status.get("autoscaling") or {}).get("desiredReplicas", wanted)
        return super()._unfit_while_following(status, desired)
