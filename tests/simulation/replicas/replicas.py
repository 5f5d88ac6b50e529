"""Two replicas of the operator, and the oracle of their turns.

double     no replica sends a write to the API server while the Lease there names another one, or nobody; where
           somebody has changed the Lease by hand, its holder may write until it reads that another one holds it, and
           never once another replica does
failover   after the leader was killed, frozen or cut off, or has ended in order, the other one has carried out what a
           user asked for in that moment, within the life of the Lease and 10 s

The bound holds while a replica stands by all the time, and nothing else disturbs the API server.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from ots_tunnel_operator.kube.lease import LEASE_SECONDS
from ots_tunnel_operator.metrics import OperatorMetrics
from tests.simulation.apiserver.api import Request
from tests.simulation.apiserver.client import Fate, ModelCluster
from tests.simulation.fleet.operator_process import LEASE
from tests.simulation.fleet.reports import Reports
from tests.simulation.machine.process import Process, State
from tests.simulation.replicas.replica import Replica

if TYPE_CHECKING:
    from tests.simulation.replicas.fleet import ReplicatedFleet

#: Seconds after which the work has moved.
BOUND = LEASE_SECONDS + 10.0
#: Seconds for which a replica has to stand by before it is one to rely on: it has seen the Lease.
STANDING_BY = 5.0


class Replicas:
    """Has the part of `OperatorProcess` that a fleet uses; what it says of a process is about the leader's."""

    name, lease = "operator", LEASE

    def __init__(self, fleet: ReplicatedFleet, seed: str, reports: Callable[[], Reports]) -> None:
        self._fleet = fleet
        self.all = [self._replica(fleet, f"{self.name}.{letter}", seed, reports()) for letter in "ab"]
        self.judged = 0
        """Times that the bound was judged."""
        #: Whose Lease somebody has changed by hand, and which holder it has named since.
        self._by_hand = ("", "")

    def _replica(self, fleet: ReplicatedFleet, name: str, seed: str, reports: Reports) -> Replica:
        replica = Replica(
            fleet.loop,
            fleet.story,
            f"{seed}:{name}",
            lambda: ModelCluster(
                fleet.api, fleet.watches, lambda request: self._fate(replica, request), replica.may_write
            ),
            reports,
            fleet.violate,
            api=fleet.api,
            chance=random.Random(f"lease:{seed}:{name}"),
            name=name,
        )
        return replica

    # As an operator

    @property
    def leader(self) -> Replica | None:
        """The one that works; the later one where an earlier one does not know yet that it does not."""
        leading = [replica for replica in self.all if replica.leads]
        return max(leading, key=lambda replica: replica.began, default=None)

    @property
    def process(self) -> Process | None:
        """The leader's process."""
        return self.leader.process if self.leader is not None else None

    @property
    def began(self) -> float:
        """When the leader began to lead."""
        return self.leader.began if self.leader is not None else self._fleet.loop.now

    @property
    def metrics(self) -> OperatorMetrics | None:
        """The leader's metrics."""
        return self.leader.metrics if self.leader is not None else None

    def start(self) -> None:
        """Start both; one of them will lead."""
        for replica in self.all:
            replica.start()

    def kill(self, away: float | None) -> None:
        """Kill the leader; its container is started again after `away` seconds."""
        if self.leader is not None:
            self.leader.kill(away)

    def end(self, away: float, orderly: bool) -> None:
        """End the leader, at once or in order."""
        if self.leader is not None:
            self.leader.end(away, orderly)

    def oldest_pass(self) -> float:
        """See `OperatorProcess.oldest_pass`."""
        return self.leader.oldest_pass() if self.leader is not None else 0.0

    # The oracle

    def _fate(self, replica: Replica, request: Request) -> Fate:
        if unreachable := replica.unreachable():
            return unreachable
        if request.method != "GET":
            self._judge(replica, request)
        return self._fleet.fates(request)

    def _judge(self, replica: Replica, request: Request) -> None:
        namespace, _, name = LEASE.partition("/")
        lease = self._fleet.store.peek(("Lease", namespace, name))
        holder = str(((lease or {}).get("spec") or {}).get("holderIdentity") or "")
        if replica.process is None:
            self._fleet.violate("double", f"{replica.name} writes {request.path}, and is not there")
        elif holder != replica.process.name and not self._is_unaware(replica, replica.process, holder):
            self._fleet.violate("double", f"{replica.name} writes {request.path}, the Lease names {holder!r}")

    def _is_unaware(self, replica: Replica, process: Process, holder: str) -> bool:
        """Whether a replica held the Lease until somebody changed it by hand, and has not read another holder."""
        return self._by_hand == (process.name, holder) and (not holder or replica.read_holder != holder)

    def changed_by_hand(self, holder: str) -> None:
        """Somebody has deleted the Lease, or has written another holder; its leader's work has to go on in time."""
        leader = self.leader
        assert leader is not None
        assert leader.process is not None
        self._by_hand = leader.process.name, holder
        self.watch_over()

    def stands(self) -> bool:
        """Whether one replica leads, and the other one is one to rely on."""
        leader = self.leader
        others = [replica for replica in self.all if replica is not leader and not replica.leads]
        return leader is not None and len(others) == 1 and self._is_fit(others[0])

    def watch_over(self) -> None:
        """Let a user ask for something now, and judge whether another replica carries it out in time."""
        fleet, leader = self._fleet, self.leader
        standby = next((replica for replica in self.all if replica is not leader), None)
        if leader is None or standby is None or not self._is_fit(standby):
            return
        found, process = fleet.stored(), standby.process
        if found is None:
            return
        fleet.edit({"monitoring": {"lagDegradedSeconds": 900 + found["metadata"]["generation"]}})
        fleet.loop.after(BOUND, self._judge_bound, standby, process, found["metadata"]["generation"] + 1)

    def _judge_bound(self, standby: Replica, process: Process, generation: int) -> None:
        fleet, found = self._fleet, self._fleet.stored()
        if standby.process is not process or not self._is_fit(standby) or found is None:
            return
        self.judged += 1
        seen = (found.get("status") or {}).get("observedGeneration", 0)
        if seen < generation:
            state = "leads" if standby.leads else "stands by"
            fleet.violate("failover", f"after {BOUND:.0f} s {standby.name} {state}, and has not seen the edit")

    def _is_fit(self, replica: Replica) -> bool:
        """Whether nothing has kept a replica from taking over, or the API server from answering, for a while."""
        fleet, process = self._fleet, replica.process
        since = fleet.loop.now - BOUND - STANDING_BY
        return (
            process is not None
            and process.state is State.RUNNING
            and fleet.disturbed_until < since + STANDING_BY
            and replica.cut_until < since
            and replica.frozen_until < since
            and replica.started < fleet.loop.now - STANDING_BY
        )
