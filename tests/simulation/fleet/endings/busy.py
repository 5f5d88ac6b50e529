"""The API server is too busy for watches, and says when it wants to be asked again.

In every thirteenth story without an end time the operator is started anew, with its real client over the model of the
API server (`wire`). An object comes to be Ready by it; then every watch is refused by 429 for a while:

pause       who is told to wait asks again only after the pause that the API server has asked for
unstable    the object is Ready again once the API server is no longer busy
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from ots_tunnel_operator.kube.cluster import Cluster
from tests.simulation.apiserver.api import Request
from tests.simulation.apiserver.wire import Wire
from tests.simulation.fleet.expecting import expect, is_ready
from tests.simulation.fleet.strangers import OBJECT

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

#: Seconds until the operator is back, and in which an object is Ready.
AWAY_SECONDS, READY_SECONDS = 5.0, 400.0
#: Seconds for which the API server is busy, and for which it wants to be left alone.
BUSY_SECONDS, PAUSE_SECONDS = 90.0, (8, 25)
#: What tells one watch from another one on the same path.
OWN = ("labelSelector", "fieldSelector", "timeoutSeconds")


class Busy:
    """Refuses the watches of a story."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._chance = random.Random(f"busy:{fleet.scenario.seed}")
        self._busy_until = 0.0
        #: When each watch may be asked for again.
        self._free: dict[tuple[str, ...], float] = {}

    async def happen(self) -> None:
        """Be busy, by the seed."""
        fleet, scenario = self._fleet, self._fleet.scenario
        if scenario.end_after or scenario.prefix != "fleet:" or scenario.seed % 13 != 7:
            return
        former, wire = fleet.operator.cluster, Wire(fleet.api, fleet.watches, fleet.fates, self._pause)
        await self._start(wire.client)
        fleet.epilogues.apply_anew()
        await self._ready("by its real client, the operator does not make an object Ready")
        fleet.story.tell("region", "the API server is too busy for watches")
        self._busy_until = fleet.loop.now + BUSY_SECONDS
        fleet.watches.break_all()
        await asyncio.sleep(BUSY_SECONDS)
        await self._ready("an object is not Ready although the API server is no longer busy")
        fleet.user("DELETE", OBJECT)
        await fleet.epilogues.gone()
        await self._start(former)

    async def _start(self, cluster: Callable[[], Cluster]) -> None:
        """Start the operator anew with a connection."""
        operator = self._fleet.operator
        operator.kill(AWAY_SECONDS)
        operator.cluster = cluster
        wrong = "no operator leads"
        await expect(self._fleet, lambda: operator.process is not None, 2 * AWAY_SECONDS, "unstable", wrong)

    async def _ready(self, otherwise: str) -> None:
        await expect(self._fleet, lambda: is_ready(self._fleet), READY_SECONDS, "unstable", otherwise)

    def _pause(self, request: Request) -> int | None:
        """The pause that is asked for; who has not made the one before is found out."""
        fleet, query = self._fleet, request.query
        if "watch" not in query:
            return None
        watch = (request.path, *(query.get(name, "") for name in OWN))
        early = self._free.get(watch, 0.0) - fleet.loop.now
        if early > 0:
            text = f"a watch of {request.path} is asked for {early:.1f} s before the pause is over"
            fleet.violate("pause", f"{text} that the API server has asked for")
        if fleet.loop.now >= self._busy_until:
            return None
        seconds = self._chance.randint(*PAUSE_SECONDS)
        self._free[watch] = fleet.loop.now + seconds
        return seconds
