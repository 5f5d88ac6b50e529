"""An object asks for a PodMonitor that it cannot get.

By the seed, the API server knows no such kind, refuses to write one, or has one of somebody else by its name.

told      the object is Degraded with PodMonitorFailed, and Ready: records flow
quiet     a steady object is never written, however often the PodMonitor is tried again
foreign   the one of somebody else is not touched
made      once nothing is in its way, there is one, and the object is not Degraded
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ots_tunnel_operator import names
from ots_tunnel_operator.observe.pod_monitor import AGAIN_SECONDS
from tests.simulation.apiserver.api import APPLY, Request
from tests.simulation.apiserver.refusal import injected, not_served
from tests.simulation.apiserver.store import Manifest
from tests.simulation.fleet.expecting import expect
from tests.simulation.fleet.newcomers.newcomer import Newcomer
from tests.simulation.fleet.strangers import SHOP

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

KIND = "podmonitors"
MONITOR = f"/apis/monitoring.coreos.com/v1{SHOP}/{KIND}/"
#: Seconds in which the status tells it, and until its figures have settled.
TOLD_SECONDS, SETTLING_SECONDS = 120.0, 60.0
#: Seconds without a write: the PodMonitor is tried again twice in them.
QUIET_SECONDS = 2 * AGAIN_SECONDS + 60.0
#: Seconds until a PodMonitor that nothing refuses any more is there: until the next try, and a pass.
MADE_SECONDS = AGAIN_SECONDS + 120.0


class RefusedMonitor:
    """The object, and what keeps its PodMonitor from it."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._object = Newcomer(fleet, "monitored")
        self._name = names.workers_name("monitored")
        self._theirs: Manifest | None = None

    async def happen(self) -> None:
        """Apply the object, and let it have its PodMonitor at last."""
        fleet, new = self._fleet, self._object
        self._prevent()
        new.apply(monitoring={"podMonitor": True})
        await new.ready("an object without its PodMonitor is not Ready")
        wrong = "a refused PodMonitor is not told"
        await expect(fleet, self._is_told, TOLD_SECONDS, "monitor", wrong, why=new.conditions)
        await asyncio.sleep(SETTLING_SECONDS)
        begun = fleet.loop.now
        await asyncio.sleep(QUIET_SECONDS)
        if later := [at for at in fleet.fates.writes if at > begun]:
            fleet.violate("restless", f"{len(later)} writes to the API server for an object that only lacks a monitor")
        if not self._is_told() or not new.is_ready():
            fleet.violate("monitor", f"a refused PodMonitor is told no longer{new.conditions()}")
        self._allow()
        await expect(fleet, self._is_made, MADE_SECONDS, "monitor", "there is no PodMonitor", why=new.conditions)
        await new.gone()

    def _prevent(self) -> None:
        fleet = self._fleet
        match fleet.scenario.seed // 12 % 3:
            case 0:
                fleet.story.tell("region", "a role forbids to write a PodMonitor")
                fleet.fates.forbid(injected(403), lambda request: _concerns(request) and request.method != "GET")
            case 1:
                fleet.story.tell("region", "somebody else has the name of the PodMonitor")
                theirs = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor"}
                body = theirs | {"metadata": {"name": self._name}, "spec": {"selector": {}}}
                self._theirs = fleet.user("PATCH", MONITOR + self._name, body, APPLY)
            case _:
                fleet.story.tell("region", "the API server knows no PodMonitor")
                fleet.fates.forbid(not_served(KIND), _concerns)

    def _allow(self) -> None:
        self._fleet.story.tell("region", "nothing is in the way of the PodMonitor")
        self._fleet.fates.clear()
        if self._theirs is not None:
            if self._stored() != self._theirs:
                self._fleet.violate("foreign", "a PodMonitor of somebody else was changed or deleted")
            self._fleet.user("DELETE", MONITOR + self._name)

    def _is_told(self) -> bool:
        return self._object.says("Degraded") == ("True", "PodMonitorFailed")

    def _is_made(self) -> bool:
        return self._stored() is not None and self._object.says("Degraded")[0] == "False"

    def _stored(self) -> Manifest | None:
        return self._fleet.store.peek(("PodMonitor", "shop", self._name))


def _concerns(request: Request) -> bool:
    return KIND in request.path.split("/")
