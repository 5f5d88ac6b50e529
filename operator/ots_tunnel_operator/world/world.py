"""Immutable record of everything one pass observed of one object.

The pure parts (assess, plan, report) read a `World`; only `observe` builds one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ots_tunnel.model import Credentials
from ots_tunnel_operator import names
from ots_tunnel_operator.autoscale.history import History
from ots_tunnel_operator.world.absence import UNREAD, Failure, Missing, Unread
from ots_tunnel_operator.world.pod import Pod, SparkPod, SparkRole
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.service import Peek, Table, Tunnel


@dataclass(frozen=True, slots=True)
class Competitor:
    """Another object on the same tunnel, or on the way of a copy back to its source."""

    name: str
    namespace: str
    created: float
    uid: str
    way_back: tuple[str, ...] = ()
    """Namespace/name of the elder objects that would lead a copy back to its source; empty: it has the same tunnel."""
    later: bool = False
    """Whether it stops nothing now, because the object itself copies nothing: that one would wait once it goes on."""


@dataclass(frozen=True, slots=True)
class Settling:
    """Whether workers and channels have come to rest since they moved last; seconds of the operator's clock."""

    moves: str = ""
    """What moves, in words; empty at rest."""
    calm_seconds: float = 0.0
    """For how long looks at the tunnel have found nothing that moves."""
    stuck_seconds: float = 0.0
    """For how long something has moved while no pod came or went."""


@dataclass(frozen=True, slots=True)
class RolloutTurn:
    """What the other objects of this operator do about new workers."""

    rolling: int = 0
    """Objects whose workers are being replaced."""
    ahead: int = 0
    """Objects that wait to replace theirs and come before this one."""


@dataclass(frozen=True, slots=True)
class World:
    """What one pass observed."""

    resource: Resource
    now: float
    elder: Competitor | None = None
    """The elder object that this one waits for, on the same tunnel or on its copy's way back; None without one."""
    later_elder: Competitor | None = None
    """The one on its copy's way back that it would wait for once it goes on; None without one, or where it waits."""
    source_credentials: Credentials | Failure | Unread = UNREAD
    sink_credentials: Credentials | Failure | Unread = UNREAD
    worker_secrets: tuple[Failure, ...] = ()
    """What is missing of the Secrets that only workers use."""
    source: Table | Missing | Failure | Unread = UNREAD
    destination: Table | Missing | Failure | Unread = UNREAD
    tunnel: Tunnel | Missing | Failure | Unread = UNREAD
    children: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    """Children of the object by (kind, name); one of its name that belongs to something else is not among them."""
    pods: tuple[Pod, ...] = ()
    spark_pods: tuple[SparkPod, ...] = ()
    """Pods of a copy by Spark."""
    query_pods: tuple[SparkPod, ...] = ()
    """Pods of a query by Spark."""
    none_runs_since: Mapping[SparkRole, float] = field(default_factory=dict)
    """Roles of which no pod of Spark runs: role -> time of the first of the looks in a row that found none."""
    stopped_until: Mapping[str, float] = field(default_factory=dict)
    """SparkApplications: name -> time of the last look that found it, or the object, suspended."""
    orphaned_since: Mapping[str, float] = field(default_factory=dict)
    """Living pods of Spark whose SparkApplication is gone: name -> time of the first of the looks in a row."""
    pod_monitor: Mapping[str, Any] | Missing | Failure | Unread = UNREAD
    """The workers' PodMonitor; read only where the object asks for one or has had one."""
    silent_since: Mapping[str, float] = field(default_factory=dict)
    """Ready pods that did not answer: name -> time of the first of the asks in a row."""
    unmoved_since: Mapping[str, float] = field(default_factory=dict)
    """Channels that have not ended: id -> time since which nothing has moved on them."""
    foreign_since: Mapping[str, float] = field(default_factory=dict)
    """Clients that own channels and are no workers of this object: client id -> time of the first sighting."""
    consumed_until: Mapping[str, float] = field(default_factory=dict)
    """Until when workers have reported channels as consumed, also earlier ones: channel id -> Unix seconds."""
    peeks: Mapping[str, Peek] = field(default_factory=dict)
    """The last look at each channel without a client: channel id -> look."""
    peek_failure: str = ""
    """Why the last such look has failed; empty where it has not."""
    settling: Settling = Settling()
    rollout_turn: RolloutTurn = RolloutTurn()

    scaling: History | None = None
    """What the autoscaler remembers of earlier looks; None in the first one of a process."""

    @property
    def deployment(self) -> Mapping[str, Any] | None:
        """The workers' Deployment; None without one."""
        return self.child("Deployment", names.deployment_name(self.resource.name))

    def child(self, kind: str, name: str) -> Mapping[str, Any] | None:
        """One child; None where it does not exist."""
        return self.children.get((kind, name))
