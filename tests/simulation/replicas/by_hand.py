"""Somebody deletes the Lease, or writes another holder into it, while the operator carries out what a user edits.

At the end of every story, when both replicas stand: the Lease is deleted a few times, once while the replica that stood
by starts anew and has never seen it, and then names a holder that does not exist. `replicas` judges who writes, and
whether an edit is carried out in time.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from ots_tunnel_operator.kube.lease import RETRY_SECONDS
from tests.simulation.fleet.expecting import expect
from tests.simulation.fleet.operator_process import LEASE, RESTARTS
from tests.simulation.replicas.replicas import BOUND

if TYPE_CHECKING:
    from tests.simulation.replicas.fleet import ReplicatedFleet

_NAMESPACE, _, _NAME = LEASE.partition("/")
PATH = f"/apis/coordination.k8s.io/v1/namespaces/{_NAMESPACE}/leases/{_NAME}"
#: A holder that no replica is.
SOMEBODY = "somebody"
#: How often the Lease is deleted: each time the one that looks first makes it again.
DELETIONS = 3
#: Seconds between two edits of a user: each makes the leader write.
EDIT_SECONDS = 0.25
#: Seconds of edits after a deletion: both replicas have looked by then.
LOOKED_SECONDS = 2 * RETRY_SECONDS
#: Seconds after which both replicas stand by or lead again.
STANDING_SECONDS = RESTARTS[1] + 2 * BOUND


class ByHand:
    """Changes the Lease of a fleet's replicas."""

    def __init__(self, fleet: ReplicatedFleet) -> None:
        self._fleet = fleet
        self._chance = random.Random(f"by hand:{fleet.scenario.seed}")

    async def happen(self) -> None:
        """Delete the Lease, and write another holder, one after the other."""
        for _ in range(DELETIONS):
            await self._stand()
            await self._delete()
        await asyncio.sleep(BOUND)  # what the last deletion asked for is judged
        await self._stand()
        standby = next(replica for replica in self._fleet.operator.all if not replica.leads)
        standby.kill(None)
        standby.start()
        await self._delete()
        await self._stand()
        self._fleet.story.tell("user", "writes another holder into the Lease")
        self._fleet.user("PATCH", PATH, {"spec": {"holderIdentity": SOMEBODY}})
        self._fleet.operator.changed_by_hand(SOMEBODY)
        await self._edit(BOUND)
        await self._stand()

    async def _delete(self) -> None:
        """Delete the Lease, and edit the object until both replicas have looked."""
        self._fleet.story.tell("user", "deletes the Lease")
        self._fleet.user("DELETE", PATH)
        self._fleet.operator.changed_by_hand("")
        await self._edit(LOOKED_SECONDS)

    async def _stand(self) -> None:
        """Wait until one replica leads and the other one stands by, and a moment of their looks."""
        fleet = self._fleet
        await expect(fleet, fleet.operator.stands, STANDING_SECONDS, "failover", "no replica stands by")
        await asyncio.sleep(self._chance.uniform(0, RETRY_SECONDS))

    async def _edit(self, seconds: float) -> None:
        """Edit the object again and again."""
        fleet = self._fleet
        until = fleet.loop.now + seconds
        number = 0
        while fleet.loop.now < until:
            number += 1
            fleet.edit({"monitoring": {"lagDegradedSeconds": 600 + number}})
            await asyncio.sleep(EDIT_SECONDS)
