"""What ends a story, after everything else: scenes that change what the object is about.

replace_tunnel    somebody deletes the tunnel and creates another one of its name, which is not the object's
delete_early      the object is deleted when its tunnel was created, and the operator died before it knew
release_by_hand   an object is applied where the deletion of another one of its name still goes on
delete_busy       the object is deleted while its workers run, which a slow node tells late: the tunnel outlives them
delete_at_once    an object goes before anybody could hold it: nothing may have been created for it
keep_off          children's names are taken by somebody else's objects: these may not be touched
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

from ots_emulator.server.faults import FaultRule
from ots_tunnel.model import StreamConfig, TunnelType
from ots_tunnel.protocol import table_pb2
from ots_tunnel_operator import names
from tests.simulation.apiserver.api import APPLY
from tests.simulation.apiserver.refusal import injected
from tests.simulation.apiserver.store import Manifest, copied
from tests.simulation.fleet.expecting import expect
from tests.simulation.fleet.strangers import DEPLOYMENT, OBJECT, SHOP
from tests.simulation.service import COPY, SOURCE, TABLE, TUNNEL

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

CONFIG_MAP = f"/api/v1{SHOP}/configmaps/orders-config"
#: Seconds after which a tunnel that was replaced has no worker any more.
STOPPING_SECONDS = 180.0
#: Seconds for which the service refuses to create a table, and writes to the API server in half of that time.
REFUSING_SECONDS, REFUSING_WRITES = 60.0, 1
#: Seconds for which nobody can hold a new object, and within which it is deleted.
AT_ONCE_SECONDS = 12.0
#: Seconds in which workers start, and in which they are told late to end.
STARTING_SECONDS, LINGERING_SECONDS = 120.0, 60.0
#: Seconds until its loop has ended: five minutes where no read has ever found it, and the longest pause.
FORGETTING_SECONDS = 400.0
#: Seconds for which a release is refused, at least.
RELEASING_SECONDS = 120.0
#: Seconds in which an object is released.
DELETING_SECONDS = 300.0
#: Seconds in which a tunnel is created: the longest pause after failed passes is a minute.
CREATING_SECONDS = 100.0


class Epilogues:
    """The last scenes of a story."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.has_replaced_tunnel = False

    async def replace_tunnel(self) -> None:
        """In every third story: the workers have to stop, and the new tunnel is not the object's."""
        fleet = self._fleet
        if fleet.scenario.seed % 3:
            return
        fleet.story.tell("user", "deletes the tunnel, and creates another one")
        self._drop_tunnel()
        instance = fleet.service.emulator.instances[SOURCE]
        instance.create_tunnel(TABLE, TUNNEL, TunnelType.Stream, StreamConfig(), fleet.service.clock.now())
        self.has_replaced_tunnel = True
        # its workers end by themselves: what counts is that nobody starts them again
        wrong = "workers of a tunnel that was replaced are still wanted"
        await expect(fleet, lambda: not fleet.programs() and not self.wanted(), STOPPING_SECONDS, "replaced", wrong)

    async def delete_early(self) -> None:
        """The operator dies right after it has created a tunnel, and the object is deleted meanwhile."""
        fleet = self._fleet
        self.apply_anew()
        if fleet.scenario.seed % 2:
            await self._refuse_creation()
        await self._created()
        fleet.operator.kill(5.0)
        fleet.user("DELETE", OBJECT)
        await self.gone()
        if fleet.tunnel() is not None:
            fleet.violate("deletion", "a tunnel that was created right before a crash is left behind")

    async def release_by_hand(self) -> None:
        """In every sixth story: a user who cannot wait for the release removes the finalizer, and applies it again."""
        fleet = self._fleet
        if fleet.scenario.seed % 6 != 1:
            return
        self.apply_anew()
        await self._created()
        fleet.fates.refuse_finalizers(injected(500), RELEASING_SECONDS)
        fleet.user("DELETE", OBJECT)
        wrong = "the tunnel of a deleted object is not deleted"
        await expect(fleet, lambda: fleet.tunnel() is None, RELEASING_SECONDS, "deletion", wrong)
        fleet.story.tell("user", "removes the finalizer, and applies the object again")
        fleet.user("PATCH", OBJECT, {"metadata": {"finalizers": []}})
        fleet.fates.clear()
        self.apply_anew()
        await self._created()
        created = fleet.tunnel()
        await asyncio.sleep(RELEASING_SECONDS)
        if fleet.tunnel() is not created:
            fleet.violate("deletion", "the deletion of an object takes the tunnel of the one that has its name now")
        fleet.user("DELETE", OBJECT)
        await self.gone()

    def apply_anew(self, **changes: Any) -> None:
        """Apply the object where nothing of it is left: rows in the destination would keep it from a tunnel."""
        self.clear()
        self._fleet.service.created.clear()
        self._fleet.apply(deletionPolicy="Delete", **changes)

    def clear(self) -> None:
        """Leave nothing of the object at the service."""
        self._drop_tunnel()
        self.drop_table()

    def drop_table(self) -> None:
        """Delete the destination, if it exists."""
        service = self._fleet.service
        if TABLE in service.emulator.instances[COPY].tables:
            service.call(COPY, "DeleteTable", table_pb2.DeleteTableRequest(table_name=TABLE))

    async def _created(self) -> None:
        """Wait for the tunnel; the operator has only just created it."""
        try:
            async with asyncio.timeout(CREATING_SECONDS):
                await self._fleet.service.created.wait()
        except TimeoutError:
            self._fleet.violate("unstable", f"no tunnel is created within {CREATING_SECONDS:.0f} s")

    async def _refuse_creation(self) -> None:
        """The service refuses the destination for a while; the status says so once, and not in every pass."""
        fleet, clock = self._fleet, self._fleet.service.clock.now
        refusing = FaultRule(operation="CreateTable", code="OTSInternalServerError", until=clock() + REFUSING_SECONDS)
        fleet.service.emulator.add_fault(refusing)
        await asyncio.sleep(REFUSING_SECONDS / 3)
        before = len(fleet.fates.writes)
        await asyncio.sleep(REFUSING_SECONDS / 2)
        if (count := len(fleet.fates.writes) - before) > REFUSING_WRITES:
            fleet.violate("restless", f"{count} writes to the API server while the service refuses the destination")

    async def delete_busy(self) -> None:
        """In every sixth story: no tunnel is deleted under workers that still run."""
        fleet = self._fleet
        if fleet.scenario.seed % 6 != 3:
            return
        self.apply_anew()
        await expect(fleet, fleet.programs, STARTING_SECONDS, "unstable", "no worker starts")
        fleet.slow_cluster_until = fleet.loop.now + LINGERING_SECONDS
        fleet.user("DELETE", OBJECT)
        wrong = "the tunnel of a deleted object is not deleted"
        await expect(fleet, lambda: fleet.tunnel() is None, DELETING_SECONDS, "deletion", wrong, every=0.2)
        if running := fleet.programs():
            fleet.violate("deletion", f"the tunnel was deleted under {len(running)} workers")
        await self.gone()

    async def delete_at_once(self) -> None:
        """In every fourth story: an object is deleted while the API server refuses its finalizer, and goes at once."""
        fleet, seed = self._fleet, self._fleet.scenario.seed
        if seed % 4 != 1:
            return
        fleet.fates.refuse_finalizers(injected(500), AT_ONCE_SECONDS)
        self.apply_anew()
        await asyncio.sleep(random.Random(f"at once:{seed}").uniform(0.02, AT_ONCE_SECONDS))
        fleet.user("DELETE", OBJECT)
        fleet.fates.clear()
        await self.gone()
        wrong = "the operator waits for a pass over an object that is gone"
        await expect(fleet, lambda: not fleet.operator.oldest_pass(), FORGETTING_SECONDS, "probe", wrong)
        if fleet.tunnel() is not None:
            fleet.violate("deletion", "a tunnel is left behind that was created for an object which nobody held")

    async def keep_off(self) -> None:
        """The names of the children are taken, and the object is suspended and deleted."""
        fleet = self._fleet
        fleet.stop_controllers()
        template = {
            "metadata": {"labels": {"app": "else"}},
            "spec": {"containers": [{"name": "else", "image": "else:1"}]},
        }
        spec = {"replicas": 1, "selector": {"matchLabels": {"app": "else"}}, "template": template}
        found = [
            fleet.user("PATCH", CONFIG_MAP, _foreign("v1", "ConfigMap", "orders-config", data={"mine": "yes"}), APPLY),
            fleet.user("PATCH", DEPLOYMENT, _foreign("apps/v1", "Deployment", "orders", spec=spec), APPLY),
        ]
        fleet.apply(deletionPolicy="Delete")
        await asyncio.sleep(30)
        fleet.edit({"suspend": True})
        await asyncio.sleep(20)
        fleet.user("DELETE", OBJECT)
        await self.gone()
        fleet.judge_foreign()
        for before in found:
            key = (before["kind"], "shop", before["metadata"]["name"])
            if fleet.store.peek(key) != before:
                fleet.violate("foreign", f"the {before['kind']} of somebody else was changed or deleted")

    def wanted(self) -> int:
        """Number of workers that the Deployment asks for."""
        found = self._fleet.store.peek(("Deployment", "shop", "orders"))
        return 0 if found is None else int(found["spec"].get("replicas", 1))

    async def gone(self) -> None:
        """Wait until the object that is being deleted exists no more."""
        fleet = self._fleet
        await expect(fleet, lambda: fleet.stored() is None, DELETING_SECONDS, "deletion", "the object is not released")

    def _drop_tunnel(self) -> None:
        found = self._fleet.tunnel()
        if found is not None:
            del self._fleet.service.emulator.instances[SOURCE].tunnels[found.id]


def _foreign(version: str, kind: str, name: str, **values: Any) -> Manifest:
    # with the labels of the object's own children, as a copy has them: only the owner tells them apart
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "else", "uid": "else"}
    metadata = {"name": name, "labels": names.labels("orders", names.ROLE_WORKER), "ownerReferences": [owner]}
    return copied({"apiVersion": version, "kind": kind, "metadata": metadata, **values})
