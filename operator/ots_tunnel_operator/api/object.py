"""The spec of a TablestoreTunnel and the object around it (docs/object.md): the single source of the CRD.

The models contain only fields that the operator implements: the API server refuses any other field instead of storing
it without effect. Each CEL rule stands on the model that it restricts; a rule between two fields names both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from ots_tunnel_operator.api.autoscaling import (
    Autoscaling,
    AutoscalingStatus,
    LastDecision,
    Mode,
    ScaleDown,
    ScaleUp,
)
from ots_tunnel_operator.api.delivery import Delivery, Retry
from ots_tunnel_operator.api.engine import DriverResources, Engine, ExecutorResources, Spark, Workers
from ots_tunnel_operator.api.files import FilesSink, FileStore
from ots_tunnel_operator.api.identity import TunnelIdentity, name_of_leases
from ots_tunnel_operator.api.schema import ApiModel, Time, immutable, rule, rules
from ots_tunnel_operator.api.sink import Sink, StdoutSink, TablestoreSink, listed, sink_kind
from ots_tunnel_operator.api.source import Credentials, SecretReference, Source, StreamWindow, Tunnel, TunnelKind
from ots_tunnel_operator.api.status import (
    BaseStatus,
    ChannelsStatus,
    Condition,
    ConditionStatus,
    ConditionType,
    DestinationStatus,
    LagStatus,
    Phase,
    PossibleGapStatus,
    SlowChannel,
    SnapshotStatus,
    ThroughputStatus,
    TunnelObjectStatus,
    TunnelStatus,
    WorkerStatus,
)
from ots_tunnel_operator.names import MAX_NAME

__all__ = [
    "Autoscaling",
    "AutoscalingStatus",
    "BaseStatus",
    "ChannelsStatus",
    "Condition",
    "ConditionStatus",
    "ConditionType",
    "Credentials",
    "Delivery",
    "DestinationStatus",
    "DriverResources",
    "Engine",
    "ExecutorResources",
    "FileStore",
    "FilesSink",
    "LagStatus",
    "LastDecision",
    "Monitoring",
    "ObjectMeta",
    "Phase",
    "PossibleGapStatus",
    "Retry",
    "ScaleDown",
    "ScaleUp",
    "SecretReference",
    "Sink",
    "SlowChannel",
    "SnapshotStatus",
    "Source",
    "Spark",
    "StdoutSink",
    "StreamWindow",
    "TablestoreSink",
    "TablestoreTunnel",
    "ThroughputStatus",
    "Tunnel",
    "TunnelKind",
    "TunnelObjectStatus",
    "TunnelSpec",
    "TunnelStatus",
    "WorkerStatus",
    "Workers",
]

#: CEL over the spec: whether workers (below: Spark) carry any part of the object.
_WORKERS_USED = (
    "(!has(self.source.tunnel) || self.source.tunnel.type != 'Stream' && self.engine.baseData == 'Workers' || "
    "self.source.tunnel.type != 'BaseData' && self.engine.stream == 'Workers')"
)
_ENGINE_FOUND = (
    "'it is baseData ' + oldSelf.baseData + ', stream ' + oldSelf.stream + "
    "'; found baseData ' + self.baseData + ', stream ' + self.stream"
)
_SPARK_USED = "(has(self.source.tunnel) && self.source.tunnel.type != 'Stream' && self.engine.baseData == 'Spark')"
#: Whether a query of Spark follows changes.
_BY_QUERY = "self.engine.stream == 'Spark'"


#: Sinks that can refuse one record and take the next, as `ots_tunnel.config.sinks` has them; a test compares both.
#: So can `files` where it has columns.
REFUSING_SINKS = ("tablestore", "kafka", "http")


class Monitoring(ApiModel):
    """Thresholds of the Degraded condition, and the PodMonitor of the workers."""

    pod_monitor: bool | None = None
    """Let the operator make a PodMonitor for the workers of this object, so that Prometheus scrapes them; absent means
    false. Leave it out where one for all objects does (`metrics.podMonitor` of the chart): one Prometheus that follows
    both scrapes twice, and warns of samples that it has already."""
    lag_degraded_seconds: Annotated[int, Field(ge=1, le=604_800)] = 900
    """Lag in seconds above which the object is Degraded."""
    retention_warning_percent: Annotated[int, Field(ge=1, le=100)] = 50
    """Percentage of the stream's retention time from which on the object is Degraded. It is compared with the age of
    the oldest change not consumed yet; while existing rows are copied, with the age forecast for the end of the copy.
    Beyond 100 changes are lost."""


class TunnelSpec(ApiModel):
    """Desired state: the table to read, the sink, and the engines that copy."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                f"!has(self.workers) || {_WORKERS_USED}",
                "workers has no meaning where no engine in use (engine.baseData, engine.stream) is Workers: "
                "leave it out",
                field=".workers",
            ),
            rule(
                f"!has(self.autoscaling) || self.autoscaling.mode == 'Disabled' || {_WORKERS_USED}",
                "autoscaling.mode other than Disabled has no meaning where no engine in use (engine.baseData, "
                "engine.stream) is Workers: leave it out",
                field=".autoscaling.mode",
                found="'found ' + self.autoscaling.mode",
            ),
            rule(
                f"!has(self.monitoring.podMonitor) || !self.monitoring.podMonitor || {_WORKERS_USED}",
                "monitoring.podMonitor has no meaning where no engine in use (engine.baseData, engine.stream) is "
                "Workers: leave it out",
                field=".monitoring.podMonitor",
            ),
            rule(
                f"!has(self.spark) || {_SPARK_USED} || {_BY_QUERY}",
                "spark has no meaning where no engine in use (engine.baseData, engine.stream) is Spark: leave it out",
                field=".spark",
            ),
            rule(
                f"!({_BY_QUERY}) || has(self.source.tunnel) && self.source.tunnel.type == 'Stream'",
                "engine.stream Spark is only for source.tunnel of type Stream: follow changes with Workers here, or "
                "copy existing rows by an object of its own",
                field=".engine.stream",
                found="(has(self.source.tunnel) ? 'found type ' + self.source.tunnel.type : 'found source.stream')",
            ),
            rule(
                f"!({_BY_QUERY}) || has(self.sink.files)",
                "sink.files is the only sink that engine.stream Spark writes",
                field=".sink",
                found=f"'found ' + {sink_kind('self.sink')}",
            ),
            rule(
                f"!({_BY_QUERY}) || !has(self.sink.files) || self.sink.files.url.startsWith('file:')",
                "files.url must be file:///path with engine.stream Spark, a folder on a volume that "
                "spark.driver.podTemplate and spark.executor.podTemplate mount",
                field=".sink.files.url",
                found="'found ' + self.sink.files.url",
            ),
            rule(
                f"{_BY_QUERY} || !has(self.sink.files) || self.sink.files.format != 'Delta'",
                "files.format Delta is only for engine.stream Spark: take Parquet, or let Spark follow the tunnel",
                field=".sink.files.format",
                found="'found engine.stream ' + self.engine.stream",
            ),
            rule(
                f"!({_BY_QUERY}) || !has(self.sink.files) || "
                "(!has(self.sink.files.unknownColumns) || self.sink.files.unknownColumns == 'Map' || "
                "self.sink.files.format == 'Delta') && "
                "self.sink.files.maxFileBytes == 134217728 && self.sink.files.maxFileSeconds == 60",
                "files.unknownColumns Error without files.format Delta, files.maxFileBytes and files.maxFileSeconds "
                "are not for engine.stream Spark, whose files follow from spark.triggerIntervalSeconds: leave them out",
                field=".sink.files",
            ),
            rule(
                f"!({_BY_QUERY}) || !has(self.sink.files) || self.sink.files.format != 'JsonLines' || "
                "self.sink.files.compression != 'zstd'",
                "files.compression zstd is only for files.format Parquet and Delta with engine.stream Spark",
                field=".sink.files.compression",
                found="'found format ' + self.sink.files.format",
            ),
            rule(
                f"!({_BY_QUERY}) || !has(self.sink.files) || !has(self.sink.files.columns) || "
                "!has(oldSelf.sink.files) || !has(oldSelf.sink.files.columns) || "
                "self.sink.files.columns == oldSelf.sink.files.columns",
                "sink.files.columns cannot be changed with engine.stream Spark: create another object instead",
                field=".sink.files.columns",
            ),
            rule(
                f"!({_BY_QUERY}) || !has(self.source.tunnel) || !has(self.source.tunnel.stream) || "
                "!has(self.source.tunnel.stream.endTime)",
                "tunnel.stream.endTime is not for engine.stream Spark, whose query has no end: leave it out",
                field=".source.tunnel.stream.endTime",
            ),
            rule(
                f"!({_BY_QUERY}) || !has(self.source.rateLimit) && !has(self.delivery.rateLimit) && "
                "!has(self.delivery.columns) && !has(self.delivery.filter) && "
                "self.delivery.onPermanentError == 'Fail' && self.delivery.batchMaxRows == 200 && "
                "self.delivery.batchMaxBytes == 4000000 && self.delivery.retry.backoffSeconds == 1 && "
                "self.delivery.retry.backoffMaxSeconds == 60",
                "delivery and source.rateLimit are not for engine.stream Spark, which delivers every change as it is: "
                "leave them out",
                field=".delivery",
            ),
            rule(
                f"!({_BY_QUERY}) || self.replicas == 1",
                "replicas is the number of workers, and engine.stream Spark has none: leave it out; suspend stops the "
                "query, and spark.executor.instances is its size",
                field=".replicas",
            ),
            rule(
                f"({_BY_QUERY}) == (has(self.spark) && has(self.spark.checkpoint))",
                "spark.checkpoint is needed with engine.stream Spark and only with it",
                field=".spark.checkpoint",
            ),
            rule(
                f"{_BY_QUERY} || !has(self.spark) || !has(self.spark.triggerIntervalSeconds)",
                "spark.triggerIntervalSeconds is only for engine.stream Spark",
                field=".spark.triggerIntervalSeconds",
            ),
            rule(
                f"has(self.sink.tablestore) || !{_SPARK_USED}",
                "sink.tablestore is the only sink that engine.baseData Spark writes",
                field=".sink",
                found=f"'found ' + {sink_kind('self.sink')}",
            ),
            rule(
                f"!{_SPARK_USED} || !has(self.delivery.columns) && !has(self.delivery.filter) && "
                "self.delivery.onPermanentError == 'Fail'",
                "delivery.columns, delivery.filter and delivery.onPermanentError are not for engine.baseData Spark, "
                "which copies whole rows: leave them out",
                field=".delivery",
            ),
            rule(
                f"!{_SPARK_USED} || "
                "!(has(self.source.rateLimit) && self.source.rateLimit.rowsPerSecondPerWorker > 0) && "
                "!(has(self.delivery.rateLimit) && self.delivery.rateLimit.rowsPerSecondPerWorker > 0)",
                "source.rateLimit and delivery.rateLimit do not limit engine.baseData Spark: leave them out, and limit "
                "spark.executor instead",
                field=".source.rateLimit",
            ),
            rule(
                "self.delivery.onPermanentError == 'Fail' || "
                + " || ".join(f"has(self.sink.{name})" for name in (*REFUSING_SINKS, "files.columns")),
                f"delivery.onPermanentError other than Fail is only for the sinks {listed(REFUSING_SINKS)}, and for "
                "files with files.columns, which can refuse a single record",
                field=".delivery.onPermanentError",
                found=f"'found ' + self.delivery.onPermanentError + ' with sink ' + {sink_kind('self.sink')}",
            ),
            rule(
                "!has(self.sink.tablestore) || self.sink.tablestore.endpoint != self.source.endpoint || "
                "self.sink.tablestore.instance != self.source.instance || "
                "self.sink.tablestore.table != self.source.table",
                "sink.tablestore.table must not be source.table of the same instance: "
                "copying a table into itself never ends",
                field=".sink.tablestore.table",
            ),
            rule(
                "self.deletionPolicy != 'Delete' || !has(self.source.tunnel) || "
                "self.source.tunnel.managementPolicy == 'CreateIfMissing'",
                "deletionPolicy Delete needs tunnel.managementPolicy CreateIfMissing: "
                "only tunnels that the object created are deleted",
                field=".deletionPolicy",
            ),
            rule(
                "self.deletionPolicy != 'Delete' || !has(self.source.stream)",
                "deletionPolicy must be Retain with source.stream: the operator deletes no table of leases, which "
                "other workers may use",
                field=".deletionPolicy",
                found="'found ' + self.deletionPolicy",
            ),
            rule(
                "!has(self.source.stream) || self.engine.baseData == 'Workers'",
                "engine.baseData must be Workers with source.stream, which has changes alone: use source.tunnel of "
                "type BaseAndStream to copy existing rows",
                field=".engine.baseData",
                found="'found ' + self.engine.baseData",
            ),
            rule(
                "!has(self.source.stream) || !has(self.sink.tablestore) || "
                "self.sink.tablestore.endpoint != self.source.endpoint || "
                "self.sink.tablestore.instance != self.source.instance || "
                "self.sink.tablestore.table != self.source.stream.leaseTable",
                "sink.tablestore.table must not be source.stream.leaseTable of the same instance: "
                "nothing else may use a table of leases",
                field=".sink.tablestore.table",
            ),
        )
    )

    source: Source
    """Table to read, and the tunnel or the stream by which it is read."""
    engine: Annotated[Engine, Field(json_schema_extra=immutable("engine", _ENGINE_FOUND))] = Engine()
    """Engines that copy existing rows and follow changes; immutable."""
    sink: Sink
    """Destination of the records."""
    delivery: Delivery = Delivery()
    """Size of the writes to the sink, what reaches it, and the treatment of failed writes."""
    replicas: Annotated[int, Field(ge=0, le=1000)] = 1
    """Number of worker pods; `kubectl scale` sets it. 0 stops every worker and keeps the checkpoints. With
    autoscaling.mode Auto any other number has no effect."""
    autoscaling: Autoscaling | None = None
    """Number of worker pods by lag and by the time that they spend in the sink. Absent means mode Disabled."""
    workers: Workers | None = None
    """Settings of the worker pods; allowed only where an engine in use is Workers. Absent means the defaults."""
    spark: Spark | None = None
    """Settings of the SparkApplication; allowed only where an engine in use is Spark. Absent means the defaults."""
    monitoring: Monitoring = Monitoring()
    """Thresholds of the Degraded condition."""
    suspend: bool = False
    """Whether to stop consuming. Checkpoints are kept, lag is still reported, and false resumes."""
    deletion_policy: Literal["Retain", "Delete"] = "Retain"
    """Treatment of the tunnel when the object is deleted. Retain: the tunnel and its checkpoints stay, and an object
    applied again resumes. Delete: the tunnel is deleted if the operator created it for this object."""

    @property
    def uses_spark(self) -> bool:
        """Whether existing rows are copied by a SparkApplication."""
        return self.source.kind != "Stream" and self.engine.base_data == "Spark"

    @property
    def uses_query(self) -> bool:
        """Whether changes are followed by a query of Spark, a SparkApplication of its own."""
        return self.source.tunnel is not None and self.source.kind == "Stream" and self.engine.stream == "Spark"

    @property
    def lag_limit_seconds(self) -> int:
        """Lag in seconds above which the object is Degraded: what a sink holds is late by design."""
        return self.monitoring.lag_degraded_seconds + self.held_seconds

    @property
    def held_seconds(self) -> int:
        """Seconds for which workers hold records before the sink stores them; a query of Spark writes each batch."""
        return 0 if self.uses_query else self.sink.holds_seconds

    @property
    def uses_workers(self) -> bool:
        """Whether worker pods copy existing rows or follow changes."""
        if self.uses_query:
            return False
        return self.source.kind != "BaseData" or self.engine.base_data == "Workers"

    @property
    def worker_settings(self) -> Workers:
        """The workers block, or its defaults."""
        return self.workers or Workers()

    @property
    def scaling_mode(self) -> Mode:
        """autoscaling.mode; Disabled without the block."""
        return self.autoscaling.mode if self.autoscaling is not None else "Disabled"

    @property
    def spark_settings(self) -> Spark:
        """The spark block, or its defaults."""
        return self.spark or Spark()

    @property
    def wire_type(self) -> TunnelKind | None:
        """Type of the tunnel on the service (docs/architecture.md 3.3); None where no tunnel is needed.

        A stream that is read without a tunnel takes the place of one of type Stream, its shards that of channels.
        """
        match self.source.kind, self.uses_spark:
            case "BaseAndStream", True:
                return "Stream"
            case "BaseData", True:
                return None
            case kind, _:
                return kind

    @property
    def identity(self) -> TunnelIdentity | None:
        """The tunnel that this object consumes; None where no tunnel is needed."""
        if self.wire_type is None:
            return None
        source = self.source
        name = source.read_through if source.stream is None else name_of_leases(source.stream.lease_table)
        return TunnelIdentity.at(source.endpoint, source.instance, source.table, name)


class ObjectMeta(ApiModel):
    """The part of an object's metadata that the operator reads."""

    name: str
    namespace: str
    uid: str = ""
    generation: int = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    annotations: dict[str, str] = Field(default_factory=dict)


class TablestoreTunnel(ApiModel):
    """Copies a Tablestore table to a sink, and the changes of the table after it, through one tunnel."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                f"self.metadata.name.size() <= {MAX_NAME}",
                f"metadata.name must not be longer than {MAX_NAME} characters: names of pods are made from it",
            ),
            rule(
                "!has(self.spec.source.tunnel) || self.spec.engine.stream != 'Spark' && "
                "(self.spec.source.tunnel.type == 'Stream' || self.spec.engine.baseData != 'Spark') || "
                "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
                "metadata.name must begin with a letter and hold only small letters, digits and dashes "
                "where an engine in use (engine.baseData, engine.stream) is Spark: the Spark operator refuses other "
                "names",
            ),
        )
    )

    metadata: ObjectMeta
    spec: TunnelSpec
    """Desired state: the table to read, the sink, and the engines that copy."""
    status: TunnelObjectStatus = TunnelObjectStatus()
    """Observed state, written by the operator."""

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> TablestoreTunnel:
        """Read an object from the API server's JSON.

        Raises:
            pydantic.ValidationError: the object does not match the models of this operator version.
        """
        return cls.model_validate({**body, "metadata": dict(body["metadata"]), "status": body.get("status") or {}})

    @property
    def name(self) -> str:
        """Name of the object."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """Namespace of the object and of all its children."""
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        """Unique id of the object; an object that is deleted and applied again has a new one."""
        return self.metadata.uid
