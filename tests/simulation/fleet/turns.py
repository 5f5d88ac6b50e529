"""A second real operator whose scope overlaps, and the oracle of claims: of two operators only one acts on an object.

Both renew their Leases while they live. Each write of one of them is judged when it is sent:

    act         while the object's claim names the other one, and has done so for a pass, nothing of it is written
    takeover    the claim of an operator whose Lease is renewed is not taken

Taking a claim, holding the object by the finalizer and events are no acts.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from ots_tunnel_operator import names
from tests.simulation.apiserver.api import APPLY, Request
from tests.simulation.apiserver.client import ModelCluster
from tests.simulation.fleet.evidence import Evidence
from tests.simulation.fleet.fates import Fates
from tests.simulation.fleet.operator_process import SECOND_LEASE, OperatorProcess
from tests.simulation.fleet.reports import Reports

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

#: Seconds between two renewals of a Lease.
RENEWAL = 2.0
#: Seconds that a pass may still take when the claim changes.
PASS_SECONDS = 60.0
#: Seconds for which an operator has to be alive, so that nobody may take its claims.
ALIVE_SECONDS = 30.0
#: Seconds after a change of the claim until the status is served again: a takeover waits, and looks twice.
SERVED_SECONDS = 150.0


class Turns:
    """The second operator, and who serves the object."""

    def __init__(self, fleet: Fleet, seed: str) -> None:
        self._fleet = fleet
        self.evidence = Evidence(fleet, "second")
        fates = Fates(
            fleet.loop,
            random.Random(f"second:{seed}"),
            lambda away, orderly: self.second.end(away, orderly),
            lambda request: self.judge(request, self.second),
        )
        self.second = OperatorProcess(
            fleet.loop,
            fleet.story,
            f"second:{seed}",
            lambda: ModelCluster(fleet.api, fleet.watches, fates),
            Reports(lambda address, path: fleet.page(address, path, self.evidence), self._page_seconds),
            fleet.violate,
            name="second",
            lease=SECOND_LEASE,
        )
        self._until = -1.0
        self._renewals = 0
        self._holder = ""
        self._since = 0.0

    def begin(self, seconds: float) -> None:
        """Start the second operator for some seconds."""
        if self._until < 0:
            self._until = self._fleet.loop.now + seconds
            self.second.start()
            self._renew()

    def end(self) -> None:
        """The second operator goes for ever."""
        self._until = min(self._until, self._fleet.loop.now)
        self.second.kill(None)

    def unfit(self) -> list[str]:
        """What is left of the second operator: its claim, until the first one has taken it over."""
        self._look()
        return ["the claim names the second operator"] if self._holder == self.second.lease else []

    @property
    def is_served(self) -> bool:
        """Whether a living operator has served the object for long enough."""
        self._look()
        operator = self._named(self._holder)
        is_alive = operator.process is not None and self._fleet.loop.now - operator.began > PASS_SECONDS
        return self._until < 0 or (is_alive and self._fleet.loop.now - self._since > SERVED_SECONDS)

    def judge(self, request: Request, operator: OperatorProcess) -> None:
        """Judge a write of an operator."""
        evidence = self._fleet.evidence if operator is self._fleet.operator else self.evidence
        evidence.judge(request)
        if self._until < 0 or "finalizers" in str(request.body) or request.path.endswith("/events"):
            return
        if self._fleet.is_outdated(request):
            return  # of two that claim a new object at once, the later one is refused
        self._look()
        now, other = self._fleet.loop.now, self._named(self._holder)
        if not self._holder or self._holder == operator.lease:
            return
        if names.ANNOTATION_OPERATOR in str((request.body or {}).get("metadata")):
            if other.process is not None and now < self._until and now - other.began > ALIVE_SECONDS:
                self._fleet.violate("claim", f"{operator.name} takes the claim of {other.name}, which lives")
        elif now - self._since > PASS_SECONDS:
            self._fleet.violate("claim", f"{operator.name} writes {request.path}, which {other.name} serves")

    def _named(self, lease: str) -> OperatorProcess:
        return self.second if lease == SECOND_LEASE else self._fleet.operator

    def _look(self) -> None:
        """Notice a change of the claim."""
        found = self._fleet.stored()
        metadata = found["metadata"] if found is not None else {}
        holder = str((metadata.get("annotations") or {}).get(names.ANNOTATION_OPERATOR) or "")
        if holder != self._holder:
            self._holder, self._since = holder, self._fleet.loop.now

    def _renew(self) -> None:
        fleet = self._fleet
        if fleet.loop.now >= self._until:
            self.second.kill(None)
            return
        self._look()
        self._renewals += 1
        for operator in (fleet.operator, self.second):
            if operator.process is not None:
                namespace, _, name = operator.lease.partition("/")
                path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
                body = {
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {"name": name},
                    "spec": {"leaseTransitions": self._renewals},
                }
                fleet.user("PATCH", path, body, APPLY)
        fleet.loop.after(RENEWAL, self._renew)

    def _page_seconds(self, address: str) -> float | None:
        return self._fleet.page_seconds(address, self.evidence)
