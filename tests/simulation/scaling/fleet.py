"""A fleet whose load changes; every worker takes one row a second, whatever it could.

spec        the operator never writes spec.replicas
bounds      the Deployment asks for at least one worker, and never for more than maxReplicas or channels
unsteady    the number is changed so often, or rows wait so long, that a fixed fleet would be better
idle        when the load is over, the number goes to minReplicas, and then nothing is written

Lateness is that of the source: a look is late where a row waits that was committed more than 60 s ago.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Any

from tests.simulation.fleet.acts import happen
from tests.simulation.fleet.fleet import NAME, NAMESPACE, Fleet
from tests.simulation.machine.process import EPOCH
from tests.simulation.scaling.choosers import LOOK, LagHpa
from tests.simulation.scaling.loads import LOADS
from tests.simulation.scaling.scenario import ScalingScenario

#: Seconds after which a row that waits is late.
LATE = 60.0
#: Seconds between two looks at the fleet.
LOOK_SECONDS = 5.0
#: Seconds after the load in which the number has to be the smallest: two windows down, and what they wait for.
IDLE_SECONDS = 2400.0
#: Load -> most changes of the number, and largest share of late looks, that Auto may have without faults.
BOUNDS = {"steady": (8, 0.15), "sine": (16, 0.25), "bursts": (16, 0.30), "step": (14, 0.20)}


class ScalingFleet(Fleet):
    """Everything of one story."""

    scenario: ScalingScenario

    def __init__(self, scenario: ScalingScenario, folder: Path) -> None:
        super().__init__(scenario, folder)
        self.figures: Counter[str] = Counter()
        self._oldest: dict[str, int] = {}
        self._asked = 0
        self._is_loaded = True

    def counts(self) -> dict[str, int]:
        return {**super().counts(), **self.figures}

    def apply(self, name: str = NAME, **changes: Any) -> None:
        more: dict[str, Any] = {"delivery": {"rateLimit": {"rowsPerSecond": 1}}}
        if self.scenario.chooser == "Auto":
            more["autoscaling"] = {"mode": "Auto", "minReplicas": 1, "maxReplicas": self.scenario.most}
        super().apply(name, **{**more, **changes})

    def _prepare(self) -> None:
        super()._prepare()
        # with every key there, the partitions get as many of them: one that is too much for a worker is another story
        for key in self.key_names():
            self.history.write(key)

    async def tell(self) -> None:
        scenario = self.scenario
        self._prepare()
        self._controlling = asyncio.create_task(self.controllers.run())
        watching = [asyncio.create_task(each) for each in (self._look(), self._watch())]
        if scenario.chooser == "HPA":
            watching.append(asyncio.create_task(self._scale_by_lag()))
        self.operator.start()
        for act in scenario.acts:
            self.loop.after(act.at, happen, self, act)
        await self._write(scenario.length)
        self._is_loaded = False
        self._end_faults()
        await self._settle()
        if scenario.chooser == "Auto":
            self._judge_course()
            await self._rest()
        if scenario.chooser != "HPA":
            await self._stay_quiet()
        for task in watching:
            task.cancel()
        await self._delete()
        self.stop_controllers()

    async def _write(self, until: float) -> None:
        keys, chance = self.key_names(), random.Random(f"load:{self.scenario.seed}")
        rate, due, slow = LOADS[self.scenario.load](chance), 0.0, 0.0
        while self.loop.now < until:
            slow = 0.998 * slow + 0.06 * chance.gauss(0, 0.15)
            due += max(0.0, rate(self.loop.now) * (1 + slow + chance.gauss(0, 0.05)))
            while due >= 1:
                due -= 1
                self.history.write(keys[chance.randrange(len(keys))])
            await asyncio.sleep(1.0)

    # What is

    @property
    def deployed(self) -> int | None:
        """Workers that the Deployment asks for; None without one."""
        found = self.store.peek(("Deployment", NAMESPACE, NAME))
        return None if found is None else int(found["spec"]["replicas"])

    def late(self) -> bool:
        """Whether a row waits that was committed long ago."""
        applied, before = self.delivery.applied, EPOCH + self.loop.now - LATE
        is_late = False
        for channel, places in self.history.entries.items():
            oldest = self._oldest.get(channel, 0)
            while oldest < len(places) and applied.get(places[oldest].key, 0) >= places[oldest].number:
                oldest += 1
            self._oldest[channel] = oldest
            is_late = is_late or (oldest < len(places) and places[oldest].committed < before)
        return is_late

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            found, asked = self.stored(), self.deployed
            if found is None or asked is None:
                continue
            if self.scenario.chooser != "HPA" and found["spec"]["replicas"] != self.scenario.replicas:
                self.violate("spec", f"spec.replicas is {found['spec']['replicas']}")
            self._judge_number(asked)
            # a smaller number is one decision, which the operator carries out worker by worker
            decided = ((found.get("status") or {}).get("autoscaling") or {}).get("desiredReplicas")
            asked = decided or asked
            if asked != self._asked and self._asked and self._is_loaded:
                self.figures["rescales"] += 1
                self.story.tell("region", "%s workers instead of %s", asked, self._asked)
            self._asked = asked
            if self._is_loaded:
                self.figures["looks at the load"] += 1
                self.figures["workers in looks"] += asked
                self.figures["late looks"] += self.late()

    def _judge_number(self, asked: int) -> None:
        tunnel = self.tunnel()
        if self.scenario.chooser != "Auto" or tunnel is None or not tunnel.channels:
            return
        most = min(self.scenario.most, len(tunnel.channels))
        if not 1 <= asked <= most:
            self.violate("bounds", f"{asked} workers, and there are {len(tunnel.channels)} channels")

    def _judge_course(self) -> None:
        if self.scenario.acts:
            return
        rescales, late = BOUNDS[self.scenario.load]
        share = self.figures["late looks"] / max(1, self.figures["looks at the load"])
        if self.figures["rescales"] > rescales or share > late:
            self.violate("unsteady", f"{self.figures['rescales']} changes, and {share:.0%} of the time late")

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
