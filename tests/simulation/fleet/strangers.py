"""What others do to the operator's objects: another operator, other users, another client of the tunnel.

claim             another operator, with a Lease that it renews, claims the object: ours may do nothing to it
edit_deployment   somebody changes a child by hand: the change may not last
apply_rival       a second object on the same tunnel: only the elder one may have workers
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ots_tunnel_operator import names
from tests.simulation.apiserver.api import APPLY, Request
from tests.simulation.apiserver.store import Manifest

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

OTHER_LEASE = "other/other-operator"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/other/leases/other-operator"
SHOP = "/namespaces/shop"
OBJECTS = f"/apis/ots-tunnel.dev/v1alpha1{SHOP}/tablestoretunnels"
OBJECT = f"{OBJECTS}/orders"
DEPLOYMENT = f"/apis/apps/v1{SHOP}/deployments/orders"
RIVAL = "rival"
#: Seconds that a pass may still take when another operator claims its object.
PASS_SECONDS = 60.0
#: Seconds after the other's last renewal in which our operator need not act: it waits, looks again, and waits again.
TAKE_OVER_SECONDS = 150.0


def _says_that_it_leaves_it(request: Request) -> bool:
    """Whether an event tells users that the operator leaves the object alone, because it must not read the Lease."""
    return request.path.endswith("/events") and "leaves the object alone" in str(request.body)


class Strangers:
    """Everybody else."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._claimed_from = self._claimed_until = self._free_at = -1.0
        self._claimed_uid = ""
        self._renewals = 0
        self._deadline: Any = None

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
        now = self._fleet.loop.now
        if now < self._free_at:
            return True
        # a process that began after that has not looked at the other's Lease for long enough
        return self._holder() == OTHER_LEASE and now < self._fleet.operator.began + TAKE_OVER_SECONDS

    def judge(self, request: Request) -> None:
        """Judge a write of our operator: nothing may be written for an object of another operator that lives."""
        fleet, now = self._fleet, self._fleet.loop.now
        if not self._claimed_from < now < self._claimed_until or "finalizers" in str(request.body):
            return
        if fleet.is_outdated(request) or _says_that_it_leaves_it(request):
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


def _with_deadline(seconds: int | None) -> Manifest:
    return {"template": {"spec": {"terminationGracePeriodSeconds": seconds}}}
