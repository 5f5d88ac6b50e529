"""What others do to the operator's objects: another operator, other users, another client of the tunnel.

claim             another operator, with a Lease that it renews, claims the object: ours may do nothing to it
edit_deployment   somebody changes a child by hand: the change may not last
apply_rival       a second object on the same tunnel: only the elder one may have workers
replace_tunnel    somebody deletes the tunnel and creates another one of its name, which is not the object's
delete_early      the object is deleted when its tunnel was created, and the operator died before it knew
keep_off          children's names are taken by somebody else's objects: these may not be touched
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ots_tunnel.model import StreamConfig, TunnelType
from ots_tunnel_operator import names
from tests.simulation.apiserver.api import APPLY, Request
from tests.simulation.apiserver.store import Manifest, copied
from tests.simulation.service import SOURCE, TABLE, TUNNEL

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

OTHER_LEASE = "other/other-operator"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/other/leases/other-operator"
SHOP = "/namespaces/shop"
OBJECTS = f"/apis/ots-tunnel.dev/v1alpha1{SHOP}/tablestoretunnels"
OBJECT = f"{OBJECTS}/orders"
DEPLOYMENT = f"/apis/apps/v1{SHOP}/deployments/orders"
CONFIG_MAP = f"/api/v1{SHOP}/configmaps/orders-config"
RIVAL = "rival"
#: Seconds that a pass may still take when another operator claims its object.
PASS_SECONDS = 60.0
#: Seconds after the other's last renewal in which our operator need not act: it waits, looks again, and waits again.
TAKE_OVER_SECONDS = 150.0
#: Seconds after which a tunnel that was replaced has no worker any more.
STOPPING_SECONDS = 180.0
#: Seconds in which a tunnel is created, if at all.
CREATING_SECONDS = 60.0


class Strangers:
    """Everybody else."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._claimed_from = self._claimed_until = self._free_at = -1.0
        self._claimed_uid = ""
        self._renewals = 0
        self._deadline: Any = None
        self.has_replaced_tunnel = False

    @property
    def has_rival(self) -> bool:
        """Whether a second object is on the tunnel."""
        return self._fleet.store.peek(("TablestoreTunnel", "shop", RIVAL)) is not None

    # Another operator

    def claim(self, seconds: float) -> None:
        """Claim the object, and renew the Lease for some seconds."""
        fleet, now = self._fleet, self._fleet.loop.now
        found = fleet.stored()
        if found is None or self.is_claimed or found["metadata"].get("deletionTimestamp"):
            return
        self._claimed_from, self._claimed_until = now, now + seconds
        self._free_at = self._claimed_until + TAKE_OVER_SECONDS
        self._claimed_uid = found["metadata"]["uid"]
        self._renew()
        fleet.user("PATCH", OBJECT, {"metadata": {"annotations": {names.ANNOTATION_OPERATOR: OTHER_LEASE}}})

    @property
    def is_claimed(self) -> bool:
        """Whether another operator may be serving the object, or ours waits until it is certainly gone."""
        return self._fleet.loop.now < self._free_at

    def judge(self, request: Request) -> None:
        """Judge a write of our operator: nothing may be written for an object of another operator that lives."""
        fleet, now = self._fleet, self._fleet.loop.now
        if not self._claimed_from < now < self._claimed_until or "finalizers" in str(request.body):
            return
        if fleet.is_outdated(request):
            return
        holder = self._holder()
        is_takeover = holder == OTHER_LEASE and names.ANNOTATION_OPERATOR in str((request.body or {}).get("metadata"))
        if RIVAL in request.path or RIVAL in str((request.body or {}).get("metadata")):
            return
        if is_takeover and now > self._claimed_from + 10:
            fleet.violate("claim", "the operator takes over the claim of one whose Lease is renewed")
        elif holder == OTHER_LEASE and now > self._claimed_from + PASS_SECONDS:
            fleet.violate("claim", f"the operator writes {request.path}, which another one serves")

    def _holder(self) -> str:
        found = self._fleet.stored()
        if found is None or found["metadata"]["uid"] != self._claimed_uid:
            return ""
        return str((found["metadata"].get("annotations") or {}).get(names.ANNOTATION_OPERATOR) or "")

    def _renew(self) -> None:
        fleet = self._fleet
        if fleet.loop.now >= self._claimed_until:
            return
        self._renewals += 1
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "other-operator"},
            "spec": {"leaseTransitions": self._renewals},
        }
        fleet.user("PATCH", LEASES, body, APPLY)
        if self._claimed_from < fleet.loop.now and self._holder() not in ("", OTHER_LEASE):
            fleet.violate("claim", "the object was taken from an operator whose Lease is renewed")
        fleet.loop.after(2.0, self._renew)

    # Users

    def edit_deployment(self, value: str) -> None:
        """Change the workers' Deployment by hand."""
        found = self._fleet.store.peek(("Deployment", "shop", "orders"))
        if found is None:
            return
        before = found["spec"]["template"]["spec"].get("terminationGracePeriodSeconds")
        if self._deadline is None:
            self._deadline = before
        changed = {"set": 7, "remove": None}
        spec = {"replicas": 4} if value == "replicas" else _with_deadline(changed[value])
        self._fleet.user("PATCH", DEPLOYMENT, {"spec": spec})

    def apply_rival(self, seconds: float) -> None:
        """Apply a second object on the tunnel, and delete it after some seconds."""
        fleet = self._fleet
        if fleet.store.peek(("TablestoreTunnel", "shop", RIVAL)) is None:
            fleet.apply(RIVAL, deletionPolicy="Retain")
            fleet.loop.after(seconds, self._delete_rival)

    def _delete_rival(self) -> None:
        if self._fleet.store.peek(("TablestoreTunnel", "shop", RIVAL)) is not None:
            self._fleet.user("DELETE", f"{OBJECTS}/{RIVAL}")

    def rivalry(self) -> str:
        """What is wrong about two objects on the tunnel; empty while one of them has workers."""
        pods = self._fleet.store.all("Pod", "shop")
        owners = {
            pod["metadata"]["labels"].get(names.LABEL_NAME)
            for pod in pods
            if not pod["metadata"].get("deletionTimestamp")
        }
        return "two objects have workers on one tunnel" if len(owners) > 1 else ""

    def end(self) -> None:
        """Leave."""
        self._claimed_until = min(self._claimed_until, self._fleet.loop.now)
        self._delete_rival()

    def unfit(self) -> list[str]:
        """What is left of the changes of others."""
        found = self._fleet.store.peek(("Deployment", "shop", "orders"))
        if found is None or self._deadline is None:
            return []
        value = found["spec"]["template"]["spec"].get("terminationGracePeriodSeconds")
        return [f"terminationGracePeriodSeconds is {value}"] if value != self._deadline else []

    # After everything else

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
        until = fleet.loop.now + STOPPING_SECONDS
        # its workers end by themselves: what counts is that nobody starts them again
        while fleet.programs() or self.wanted():
            if fleet.loop.now > until:
                fleet.violate("replaced", "workers of a tunnel that was replaced are still wanted")
                return
            await asyncio.sleep(2)

    async def delete_early(self) -> None:
        """The operator dies right after it has created a tunnel, and the object is deleted meanwhile."""
        fleet = self._fleet
        self._drop_tunnel()
        fleet.service.created.clear()
        fleet.apply(deletionPolicy="Delete")
        with suppress(TimeoutError):
            async with asyncio.timeout(CREATING_SECONDS):
                await fleet.service.created.wait()
        fleet.operator.kill(5.0)
        fleet.user("DELETE", OBJECT)
        await self._gone()
        if fleet.tunnel() is not None:
            fleet.violate("deletion", "a tunnel that was created right before a crash is left behind")

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
        await self._gone()
        fleet.judge_foreign()
        for before in found:
            key = (before["kind"], "shop", before["metadata"]["name"])
            if fleet.store.peek(key) != before:
                fleet.violate("foreign", f"the {before['kind']} of somebody else was changed or deleted")

    def wanted(self) -> int:
        """Number of workers that the Deployment asks for."""
        found = self._fleet.store.peek(("Deployment", "shop", "orders"))
        return 0 if found is None else int(found["spec"].get("replicas", 1))

    async def _gone(self) -> None:
        fleet = self._fleet
        until = fleet.loop.now + 300
        while fleet.stored() is not None:
            if fleet.loop.now > until:
                fleet.violate("deletion", "the object is not released")
                return
            await asyncio.sleep(1)

    def _drop_tunnel(self) -> None:
        found = self._fleet.tunnel()
        if found is not None:
            del self._fleet.service.emulator.instances[SOURCE].tunnels[found.id]


def _with_deadline(seconds: int | None) -> Manifest:
    return {"template": {"spec": {"terminationGracePeriodSeconds": seconds}}}


def _foreign(version: str, kind: str, name: str, **values: Any) -> Manifest:
    # with the labels of the object's own children, as a copy has them: only the owner tells them apart
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "else", "uid": "else"}
    metadata = {"name": name, "labels": names.labels("orders", names.ROLE_WORKER), "ownerReferences": [owner]}
    return copied({"apiVersion": version, "kind": kind, "metadata": metadata, **values})
