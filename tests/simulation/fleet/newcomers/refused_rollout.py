"""A new release of the operator meets five objects, of which three cannot have its workers.

By the seed, a policy of the API server refuses the image of the release to them, or somebody else has the name of their
ServiceAccount.

budget     never more than ROLLOUT_BUDGET objects replace their workers at once
others     those that can have the workers of the release get them: who cannot begin keeps no place from them
left       those that cannot keep the workers that they have
goes on    once nothing is in the way, they follow
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ots_tunnel_operator import names
from tests.simulation.apiserver.api import APPLY, Request
from tests.simulation.apiserver.refusal import injected
from tests.simulation.fleet.expecting import expect
from tests.simulation.fleet.newcomers.newcomer import Newcomer
from tests.simulation.fleet.operator_process import ROLLOUT_BUDGET
from tests.simulation.fleet.strangers import SHOP

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

ACCOUNT = f"/api/v1{SHOP}/serviceaccounts/"
#: Objects that cannot have the release at first, and those that can.
REFUSED, OTHERS = ("refused0", "refused1", "refused2"), ("welcome0", "welcome1")
RELEASE = "worker:2"
#: Seconds after which a worker counts as available.
AVAILABLE_SECONDS = 40.0
#: Seconds in which those that can have the workers of the release, and later the others.
ROLLING_SECONDS = 600.0
#: Seconds between two looks.
LOOK_SECONDS = 0.5


class RefusedRollout:
    """The objects, and a release."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._refused = [Newcomer(fleet, name) for name in REFUSED]
        self._others = [Newcomer(fleet, name) for name in OTHERS]
        self._all = [*self._refused, *self._others]

    async def happen(self) -> None:
        """Upgrade the operator."""
        fleet = self._fleet
        for one in self._all:
            one.apply(workers={"heartbeatIntervalSeconds": 10, "heartbeatTimeoutSeconds": 60})
        for one in self._all:
            await one.ready(f"{one.name} is not Ready")
        await asyncio.sleep(AVAILABLE_SECONDS)
        before = [set(one.images()) for one in self._refused]
        self._prevent()
        fleet.story.tell("user", "upgrades the operator to a release with %s", RELEASE)
        fleet.operator.worker_image = RELEASE
        fleet.operator.kill(5.0)
        wrong = "objects wait for others whose rollout cannot begin"
        await self._rolled(self._others, wrong)
        if before != [set(one.images()) for one in self._refused]:
            fleet.violate("rollout", "the workers of an object whose next ones are refused were replaced")
        self._allow()
        await self._rolled(self._all, "not every object has the workers of the release that nothing refuses any more")
        for one in self._all:
            await one.gone()

    async def _rolled(self, objects: list[Newcomer], otherwise: str) -> None:
        def is_over() -> bool:
            self._judge_budget()
            return all(set(one.images().values()) == {RELEASE} and one.is_ready() for one in objects)

        await expect(self._fleet, is_over, ROLLING_SECONDS, "rollout", otherwise, why=self._why, every=LOOK_SECONDS)

    def _judge_budget(self) -> None:
        rolling = [one.name for one in self._all if len(set(one.images().values())) > 1]
        if len(rolling) > ROLLOUT_BUDGET:
            self._fleet.violate("budget", f"{', '.join(rolling)} roll at once")

    def _prevent(self) -> None:
        fleet = self._fleet
        if fleet.scenario.seed // 12 % 2:
            fleet.story.tell("region", "a policy refuses %s to %s", RELEASE, ", ".join(REFUSED))
            fleet.fates.forbid(injected(403), _has_refused_image)
            return
        fleet.story.tell("user", "takes the names of the accounts of %s", ", ".join(REFUSED))
        for name in map(names.workers_name, REFUSED):
            theirs = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
            fleet.user("DELETE", ACCOUNT + name)
            fleet.user("PATCH", ACCOUNT + name, theirs, APPLY)

    def _allow(self) -> None:
        fleet = self._fleet
        fleet.story.tell("region", "nothing is in the way of the release")
        fleet.fates.clear()
        if not fleet.scenario.seed // 12 % 2:
            for name in map(names.workers_name, REFUSED):
                fleet.user("DELETE", ACCOUNT + name)

    def _why(self) -> str:
        return "".join(f"; {one.name} {sorted(one.images().values())}{one.conditions()}" for one in self._all)


def _has_refused_image(request: Request) -> bool:
    """Whether a request would give an object that cannot have the release its image."""
    body = request.body or {}
    if body.get("kind") != "Deployment" or body["metadata"]["name"] not in REFUSED:
        return False
    pod = ((body.get("spec") or {}).get("template") or {}).get("spec") or {}
    return any(container.get("image") == RELEASE for container in pod.get("containers") or ())
