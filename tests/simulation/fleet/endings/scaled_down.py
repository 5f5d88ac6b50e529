"""Four workers become one under load, in every fourth story: they leave one at a time, and each hands over the least.

one at a time    a second pod leaves only when the one before has gone
the fewest       the pod that leaves owned no more channels than any that stays, as the service had it before; the
                 fleet is left alone first until the operator has looked at the channels, which it does every 15 s
rest             after one has gone, a heartbeat passes before the next one leaves
goes on          an operator that is killed in between is followed by one that ends it
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from functools import partial
from typing import TYPE_CHECKING

from ots_emulator.refusal import Refusal
from ots_tunnel_operator import names
from tests.simulation.fleet.expecting import expect
from tests.simulation.service import SOURCE, TABLE

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

#: Workers before it.
MOST = 4
#: Seconds in which they start and share the channels.
STARTING_SECONDS = 400.0
#: Seconds in which three of them have left: each after a drain and two looks at channels that have settled.
LEAVING_SECONDS = 500.0
#: Seconds between two looks.
LOOK_SECONDS = 0.2
#: Seconds within which the operator is killed.
KILLING_SECONDS = 150.0


class ScaledDown:
    """Scales a fleet down, and judges who leaves."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._chance = random.Random(f"scaled down:{fleet.scenario.seed}")
        self._owned: dict[str, int] = {}
        self._left: set[str] = set()
        self._known: set[str] = set()
        self._gone = 0.0
        self._is_done = False

    async def happen(self) -> None:
        """Scale it up and down, by the seed."""
        fleet, scenario = self._fleet, self._fleet.scenario
        if scenario.end_after or scenario.prefix != "fleet:" or scenario.seed % 4 != 1:
            return
        shared = self._shared()
        with contextlib.suppress(Refusal):
            # one with fewer than two rows stays whole
            fleet.service.emulator.split(SOURCE, TABLE)
            shared += 1
        fleet.edit({"replicas": MOST})
        wrong = "four workers do not share the channels"
        # a fleet that had four workers before is fit until the partition's channel has reached its end
        is_shared = partial(self._is_shared, shared)
        await expect(fleet, is_shared, STARTING_SECONDS, "unstable", wrong, why=self._unfit)
        writing = asyncio.create_task(self._write())
        if scenario.seed % 8 == 1:
            fleet.loop.after(self._chance.uniform(0, KILLING_SECONDS), self._kill)
        fleet.edit({"replicas": 1})
        wrong = "three workers of four have not left"
        await expect(fleet, self._is_over, LEAVING_SECONDS, "unstable", wrong, every=LOOK_SECONDS)
        writing.cancel()
        self._is_done = True
        if self._costs():
            fleet.violate("marks", f"a deletion cost is left on {', '.join(self._costs())}")
        wrong = "the last worker has not everything"
        await expect(fleet, lambda: not fleet.unfit(), STARTING_SECONDS, "unstable", wrong, why=self._unfit)

    def _kill(self) -> None:
        if not self._is_done:
            self._fleet.operator.kill(10.0)

    def _is_shared(self, least: int) -> bool:
        """Whether four workers share at least so many channels, and the operator has looked at them."""
        fleet = self._fleet
        if fleet.unfit():
            return False
        seen = ((fleet.stored() or {}).get("status") or {}).get("channels") or {}
        return least <= self._shared() == seen.get("open")

    def _shared(self) -> int:
        """Number of channels that the workers own."""
        return sum(self._fleet.owned(pod["metadata"]["name"]) for pod in self._fleet.pods())

    def _costs(self) -> list[str]:
        """Pods that carry a deletion cost."""
        found = (pod["metadata"] for pod in self._fleet.pods())
        return [one["name"] for one in found if names.ANNOTATION_DELETION_COST in (one.get("annotations") or {})]

    def _is_over(self) -> bool:
        """Judge who leaves; whether one worker is left."""
        fleet = self._fleet
        pods = {pod["metadata"]["name"]: bool(pod["metadata"].get("deletionTimestamp")) for pod in fleet.pods()}
        leaving = {name for name, leaves in pods.items() if leaves}
        if len(leaving) > 1:
            fleet.violate("one at a time", f"{', '.join(sorted(leaving))} leave at once")
        if any(name not in pods for name in self._known):
            self._gone = fleet.loop.now
        self._known = set(pods)
        for name in leaving - self._left:
            if (rest := fleet.loop.now - self._gone) < fleet.scenario.interval:
                fleet.violate("rest", f"{name} leaves {rest:.1f} s after another one has gone")
            fewest = min(self._owned.values(), default=0)
            if self._owned.get(name, 0) > fewest:
                fleet.violate("the fewest", f"{name} leaves with {self._owned[name]} channels, another has {fewest}")
        self._left |= leaving
        self._owned = {name: fleet.owned(name) for name, leaves in pods.items() if not leaves}
        return len(pods) == 1

    async def _write(self) -> None:
        """The load."""
        keys = self._fleet.key_names()
        while True:
            self._fleet.history.write(self._chance.choice(keys))
            await asyncio.sleep(self._chance.uniform(0, 2))

    def _unfit(self) -> str:
        return f": {'; '.join(self._fleet.unfit())}"
