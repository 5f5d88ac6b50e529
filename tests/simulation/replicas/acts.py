"""What happens to a fleet with two replicas: the leader ends in every way there is, beside what a fleet knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from tests.simulation.fleet.acts import KINDS, Act, Kind

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet
    from tests.simulation.replicas.replica import Replica

#: Seconds until the kubelet starts the container again.
AWAY = (10.0, 160.0)
#: Seconds for which a process stands still: shorter and longer than the life of a Lease.
STILL = (2.0, 90.0)


def _leader(fleet: Fleet) -> Replica | None:
    """The leader, whose end has to be noticed in time."""
    from tests.simulation.replicas.replicas import Replicas

    replicas = fleet.operator
    assert isinstance(replicas, Replicas)
    replicas.watch_over()
    return replicas.leader


def _kill(fleet: Fleet, act: Act) -> None:
    if leader := _leader(fleet):
        leader.kill(act.seconds)


def _end(fleet: Fleet, act: Act) -> None:
    if leader := _leader(fleet):
        leader.end(act.seconds, True)


def _freeze(fleet: Fleet, act: Act) -> None:
    """SIGSTOP, or for odd targets the whole machine is suspended."""
    leader = _leader(fleet)
    if leader is None or leader.process is None:
        return
    process = leader.process
    leader.frozen_until = fleet.loop.now + act.seconds
    process.suspend() if act.target % 2 else process.pause()
    fleet.loop.after(act.seconds, fleet.resume, process)


def _cut(fleet: Fleet, act: Act) -> None:
    """The leader does not reach the API server any more."""
    if leader := _leader(fleet):
        leader.cut_until = fleet.loop.now + act.seconds
        fleet.disturb(fleet.loop.now)
        fleet.watches.break_all()


def _kill_standby(fleet: Fleet, act: Act) -> None:
    from tests.simulation.replicas.replicas import Replicas

    replicas = fleet.operator
    assert isinstance(replicas, Replicas)
    standby = next((replica for replica in replicas.all if replica is not replicas.leader), None)
    if standby is not None:
        standby.kill(act.seconds)


#: Of a fleet's own: nothing that takes the API server from both.
_SHARED: Final = (
    *("scale", "edit workers", "kill a worker", "delete a pod", "watches break", "API reads are stale"),
    *("API is slow", "API answers get lost", "versions are compacted", "somebody edits the Deployment"),
)
OWN: Final[Mapping[str, Kind]] = {
    "kill the leader": Kind(_kill, 4, AWAY),
    "end the leader in order": Kind(_end, 2, AWAY),
    "freeze the leader": Kind(_freeze, 4, STILL),
    "cut the leader off": Kind(_cut, 3, STILL),
    "kill the standby": Kind(_kill_standby, 1, AWAY),
}
REPLICA_KINDS: Final[Mapping[str, Kind]] = {**OWN, **{name: KINDS[name] for name in _SHARED}}
