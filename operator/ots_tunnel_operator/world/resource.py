"""What identifies an object, and the object as the API server has it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ots_tunnel.endpoint import table_identity
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.api.spec import TunnelSpec
from ots_tunnel_operator.api.tunnel import StreamWindow, TunnelKind
from ots_tunnel_operator.reset.facts import Found
from ots_tunnel_operator.reset.record import running
from ots_tunnel_operator.reset.way_out import Way


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
        wanted = self.spec.source.window or StreamWindow()
        if not self.is_without_base:
            return wanted
        recorded = self.recorded_tunnel
        start = {"startFrom": recorded["startFrom"], "startTime": recorded.get("startTime")}
        return StreamWindow.model_validate({"endTime": wanted.end_time} | start)

    def start_over(self, found: Found = Found.RECORDED) -> str:
        """What to type to start over, for messages; `found` is the tunnel that has the name."""
        source, recorded = self.spec.source, self.recorded_tunnel
        if source.stream is not None:
            begin = ", whose workers begin at startFrom"
            if source.stream.start_from == "Latest":
                begin = " and with startFrom Earliest, because Latest would leave out what was not delivered by then"
            return (
                f"to start over, delete this object by `kubectl delete ott {self.name} -n {self.namespace}` and apply "
                f"it again with another spec.source.stream.leaseTable{begin}"
            )
        if self.spec.uses_query:
            return (
                f"to start over, delete this object by `kubectl delete ott {self.name} -n {self.namespace}` and apply "
                f"it again with another spec.source.tunnel.name and another spec.sink.files.url"
            )
        needs_none = self.spec.wire_type is None
        # a reset under way has made its tunnel's predecessor go
        is_forgotten = running(self.status) is not None and not recorded.get("id")
        way = Way(
            namespace=self.namespace,
            name=self.name,
            kind=source.kind,
            table=source.table,
            tunnel=source.read_through,
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
    def has_made_destination(self) -> bool:
        """Whether the sink's table was created for this object."""
        return self._is_of_destination("ensuredTime") and self.recorded_destination.get("createdByOperator") is True

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
