"""Immutable record of everything one pass observed of one object.

Absent is not unknown: `Missing` means that a thing does not exist, `Failure` that it could not be read, `Unread` that
this pass did not ask. The pure parts (assess, plan, report) read a `World`; only `observe` builds one.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ots_tunnel.endpoint import table_identity
from ots_tunnel.model import ChannelId, Checkpoint, Credentials, TunnelDescription
from ots_tunnel.tables import TableSchema
from ots_tunnel_operator import names
from ots_tunnel_operator.api.object import TablestoreTunnel, TunnelSpec
from ots_tunnel_operator.api.source import StreamWindow, TunnelKind
from ots_tunnel_operator.autoscale.history import History
from ots_tunnel_operator.reasons import Problem
from ots_tunnel_operator.reset.facts import Found
from ots_tunnel_operator.reset.record import running
from ots_tunnel_operator.reset.way_out import Way

#: Phases of a pod whose processes have all ended; every other phase, Unknown included, counts as alive.
ENDED_PHASES = frozenset({"Succeeded", "Failed"})


class Named(Protocol):
    """What identifies an object to the API server."""

    @property
    def namespace(self) -> str:
        """Namespace of the object."""

    @property
    def name(self) -> str:
        """Name of the object."""

    @property
    def uid(self) -> str:
        """Uid of the object."""


@dataclass(frozen=True, slots=True)
class Reference:
    """An object of which only the name is certain."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Resource:
    """The object as the API server has it; times are seconds since 1970."""

    object: TablestoreTunnel
    status: Mapping[str, Any]
    """As stored, camelCase; `{}` before the first write."""
    rendered: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)
    """What was rendered from this generation, by what it depends on beside it; shared by the passes over it."""

    @property
    def spec(self) -> TunnelSpec:
        """The spec."""
        return self.object.spec

    @property
    def name(self) -> str:
        """Name of the object."""
        return self.object.name

    @property
    def namespace(self) -> str:
        """Namespace of the object."""
        return self.object.namespace

    @property
    def uid(self) -> str:
        """Uid of the object."""
        return self.object.uid

    @property
    def generation(self) -> int:
        """Generation of the spec."""
        return self.object.metadata.generation

    @property
    def created(self) -> float:
        """Time of creation; 0 where the API server gives none."""
        created = self.object.metadata.creation_timestamp
        return created.timestamp() if created else 0.0

    @property
    def deleted(self) -> float | None:
        """Time of the deletion request; None while there is none."""
        deleted = self.object.metadata.deletion_timestamp
        return deleted.timestamp() if deleted else None

    @property
    def recorded_tunnel(self) -> Mapping[str, Any]:
        """status.tunnel."""
        return self.status.get("tunnel") or {}

    @property
    def recorded_destination(self) -> Mapping[str, Any]:
        """status.destination."""
        return self.status.get("destination") or {}

    @property
    def recorded_snapshot(self) -> Mapping[str, Any]:
        """status.snapshot."""
        return self.status.get("snapshot") or {}

    @property
    def is_without_base(self) -> bool:
        """Whether a reset has given this object a tunnel for changes alone: existing rows had been copied before."""
        return bool(self.recorded_tunnel.get("startFrom"))

    @property
    def wire_type(self) -> TunnelKind | None:
        """Type of the tunnel on the service: the spec's, or that of the last reset; None where no tunnel is needed."""
        return "Stream" if self.is_without_base else self.spec.wire_type

    @property
    def uses_spark(self) -> bool:
        """Whether existing rows are copied by a SparkApplication for the recorded tunnel."""
        return self.spec.uses_spark and not self.is_without_base

    @property
    def wants_pod_monitor(self) -> bool:
        """Whether the object asks for a PodMonitor of its workers."""
        return bool(self.spec.monitoring.pod_monitor) and self.spec.uses_workers

    @property
    def stream(self) -> StreamWindow:
        """The part of the stream that the tunnel delivers: the spec's, with the start of the last reset."""
        wanted = self.spec.source.tunnel.stream or StreamWindow()
        if not self.is_without_base:
            return wanted
        recorded = self.recorded_tunnel
        start = {"startFrom": recorded["startFrom"], "startTime": recorded.get("startTime")}
        return StreamWindow.model_validate({"endTime": wanted.end_time} | start)

    def start_over(self, found: Found = Found.RECORDED) -> str:
        """What to type to start over, for messages; `found` is the tunnel that has the name."""
        source, recorded = self.spec.source, self.recorded_tunnel
        needs_none = self.spec.wire_type is None
        # a reset under way has made its tunnel's predecessor go
        is_forgotten = running(self.status) is not None and not recorded.get("id")
        way = Way(
            namespace=self.namespace,
            name=self.name,
            kind=source.tunnel.type,
            table=source.table,
            tunnel=source.tunnel.name,
            is_used=bool(self.recorded_snapshot if needs_none else recorded.get("id") or is_forgotten),
            is_ours=recorded.get("createdByOperator") is True,
        )
        return way.words(Found.GONE if needs_none or is_forgotten else found)

    @property
    def is_destination_recorded(self) -> bool:
        """Whether status.destination says that the sink's table was found or created where the spec has it now.

        A record without a place, of an earlier release, and one of another endpoint say nothing about this table.
        """
        return self.spec.sink.tablestore is None or self._is_of_destination("ensuredTime")

    @property
    def is_destination_intended(self) -> bool:
        """Whether status.destination says that the sink's table was to be created where the spec has it now."""
        return self._is_of_destination("createIntentTime")

    @property
    def destination_created(self) -> str | None:
        """When the service created the recorded table, where the record is about the sink's table; None is unknown."""
        return str(self.recorded_destination["createdTime"]) if self._is_of_destination("createdTime") else None

    def _is_of_destination(self, time: str) -> bool:
        """Whether status.destination has this time and names the sink's table, by whichever host of its instance."""
        sink, record = self.spec.sink.tablestore, self.recorded_destination
        if sink is None or not record.get(time) or not record.get("endpoint"):
            return False
        found = table_identity(str(record["endpoint"]), str(record.get("instance")), str(record.get("table")))
        return found == table_identity(sink.endpoint, sink.instance, sink.table)

    @property
    def undecided(self) -> bool:
        """Whether the destination or the tunnel still has to be created or adopted."""
        needs_tunnel = self.wire_type is not None and not self.recorded_tunnel.get("id")
        return needs_tunnel or not self.is_destination_recorded


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that could not be read; the problem names the cause and what to do."""

    problem: Problem


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that certainly does not exist."""


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that this pass did not read: a prerequisite failed, or it does not matter now."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table that exists; `empty` is None where this was not checked."""

    schema: TableSchema
    empty: bool | None = None
    stream_retention_seconds: int | None = None
    stream_start: float | None = None
    """Time at which the stream was enabled last, by the service's clock, Unix seconds; None is unknown."""
    created: float | None = None
    """Time at which the table was created, by the service's clock, Unix seconds; None is unknown."""


@dataclass(frozen=True, slots=True)
class Tunnel:
    """A tunnel that exists; `checkpoints` are read only while it matters whether it has moved."""

    description: TunnelDescription
    checkpoints: Mapping[ChannelId, Checkpoint] | None = None
    same_since: float | None = None
    """Time of the first of the looks in a row that found the same channels with the same states and owners, by the
    operator's clock; None is unknown."""


@dataclass(frozen=True, slots=True)
class Peek:
    """The last look at a channel without a client."""

    time: float
    """Seconds since 1970, by the operator's clock."""
    waits: bool
    """Whether it had something to read."""
    empty: float | None = None
    """Until when everything was read, by the last look that found nothing: seconds since 1970, by the service's clock
    as consume points are; None is unknown."""

    def moved(self, seconds: float) -> Peek:
        """With the time of the look changed, after the operator's clock was set."""
        return Peek(self.time + seconds, self.waits, self.empty)


@dataclass(frozen=True, slots=True)
class WorkerChannel:
    """One channel in a worker's report, as far as decisions need it; times are seconds since 1970."""

    channel_id: str
    state: str
    rows: int
    caught_up: bool
    consumed_up_to: float | None
    lag_seconds: int | None
    finished: bool
    end_reached: bool
    """Whether everything up to the end time is confirmed, and nothing more is read."""
    error: str | None


@dataclass(frozen=True, slots=True)
class ReportedGap:
    """Changes of a channel that a worker misses, between two times in Unix seconds."""

    channel_id: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class RefusedCount:
    """Records that a sink refused for good and that were left out, and how many different keys they have."""

    records: int = 0
    keys: int = 0


@dataclass(frozen=True, slots=True)
class SinkContact:
    """What a worker knows of its sink."""

    has_answered: bool
    """Whether it was found ready, or has confirmed a write."""
    failing_seconds: float | None = None
    """For how long the write that has failed longest is tried again, by the worker's clock; None where none fails."""
    error: str = ""
    """The last failure of that write."""


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """The /channels document of one worker, as far as decisions need it."""

    client_id: str
    rows_per_second: float | None
    """None in the worker's first second."""
    busy_percent: int | None
    """None in the worker's first second."""
    error: str | None
    completed: bool
    channels: tuple[WorkerChannel, ...]
    gaps: tuple[ReportedGap, ...] = ()
    tunnel_id: str = ""
    """Id of the tunnel that the worker consumes; empty is unknown."""
    refused: RefusedCount | None = None
    """Since the start of the worker's process; None where an earlier release does not tell."""
    sink: SinkContact | None = None
    """None where the sink, or an earlier release, does not tell."""


@dataclass(frozen=True, slots=True)
class KeptReport:
    """The last report of a worker that did not answer this time."""

    report: WorkerReport
    time: float
    """Time of the look that brought it, by the operator's clock, Unix seconds."""


@dataclass(frozen=True, slots=True)
class ContainerEnd:
    """How a worker's container ended last."""

    code: int
    reason: str = "Error"
    """The kubelet's word: Error, OOMKilled, StartError and others."""
    message: str = ""
    """Its termination message, without what differs from one end to the next; empty where it wrote none."""


@dataclass(frozen=True, slots=True)
class Container:
    """The worker's container as the status of its pod has it."""

    image: str = ""
    """Image of the container that waits; of the worker's where none does."""
    memory_limit: str = ""
    """Memory limit of the worker's container, such as 640Mi; empty without one."""
    waiting: str = ""
    """The kubelet's word for what a container of the pod waits for, such as ImagePullBackOff; empty while none does."""
    cause: str = ""
    """The kubelet's text about that, without what differs from one try to the next."""
    started: float | None = None
    """Since when the worker runs, Unix seconds; None while it does not, or where that is unknown."""
    end: ContainerEnd | None = None
    """Its last end; None while it has not ended yet."""


@dataclass(frozen=True, slots=True)
class Mounting:
    """A pod whose node has it, and has begun none of its containers: its volumes or its network are not there."""

    since: float
    """When the node got it, Unix seconds."""
    needs: tuple[str, ...]
    """What its volumes need, such as ConfigMap 'authorities', in the order of the volumes."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A worker pod; `report` is None where the worker did not answer."""

    name: str
    phase: str
    ready: bool
    deleting: bool
    ip: str
    restarts: int
    message: str
    """Why it does not run: waiting reason or termination message; empty while it runs."""
    report: WorkerReport | None = None
    created: float = 0.0
    """Time of its creation, seconds since 1970; 0 where the API server gives none."""
    gaps: tuple[ReportedGap, ...] = ()
    """What its worker ended with, where that was a possible gap."""
    kept: KeptReport | None = None
    """The last report of a ready worker that did not answer for a moment; it is shown and proves nothing."""
    deletion_cost: str = ""
    """Its annotation pod-deletion-cost; empty without one."""
    container: Container = Container()
    template: str = ""
    """What names the template that the pod was made from; empty where nothing tells."""
    unscheduled: str = ""
    """The scheduler's words about why no node takes it; empty where one has."""
    removed: str = ""
    """Why its node has ended or refused it, in the node's words; empty otherwise."""
    removed_time: float | None = None
    """When that was, Unix seconds; None where that is unknown."""
    mounting: Mounting | None = None
    """What it needs before its containers can be made; None once that is there, or while no node has it."""

    @property
    def is_alive(self) -> bool:
        """Whether a process of it may exist."""
        return self.phase not in ENDED_PHASES


@dataclass(frozen=True, slots=True)
class SparkPod:
    """A pod of a Spark application; `terminated`: every container has a terminated status."""

    name: str
    phase: str
    terminated: bool
    ended: float | None = None
    """End of its last container, seconds since 1970; None while one runs, or where the end of one is not known."""
    is_executor: bool = False
    """Whether it only carries out what a driver starts."""
    message: str = ""
    """Why it does not run, as `Pod.message`."""

    @property
    def is_alive(self) -> bool:
        """Whether it may still write."""
        return self.phase not in ENDED_PHASES


@dataclass(frozen=True, slots=True)
class Competitor:
    """Another object on the same tunnel."""

    name: str
    namespace: str
    created: float
    uid: str


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
    """The eldest other object on the same tunnel; None where this object is the eldest."""
    source_credentials: Credentials | Failure | Unread = Unread()
    sink_credentials: Credentials | Failure | Unread = Unread()
    worker_secrets: tuple[Failure, ...] = ()
    """What is missing of the Secrets that only workers use."""
    source: Table | Missing | Failure | Unread = Unread()
    destination: Table | Missing | Failure | Unread = Unread()
    tunnel: Tunnel | Missing | Failure | Unread = Unread()
    children: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    """Children of the object by (kind, name); one of its name that belongs to something else is not among them."""
    pods: tuple[Pod, ...] = ()
    spark_pods: tuple[SparkPod, ...] = ()
    pod_monitor: Mapping[str, Any] | Missing | Failure | Unread = Unread()
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
