"""The spec of a TablestoreTunnel (docs/object.md): its blocks, and what follows from several of them.

The models contain only fields that the operator implements: the API server refuses any other field instead of storing
it without effect.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from ots_tunnel_operator.api.autoscaling import Autoscaling, Mode
from ots_tunnel_operator.api.delivery import Delivery
from ots_tunnel_operator.api.engine import Engine, Spark, Workers
from ots_tunnel_operator.api.identity import TunnelIdentity, name_of_leases
from ots_tunnel_operator.api.monitoring import Monitoring
from ots_tunnel_operator.api.schema import ApiModel, immutable, rules
from ots_tunnel_operator.api.sink import Sink
from ots_tunnel_operator.api.source import Source
from ots_tunnel_operator.api.spec_rules import SPEC_RULES
from ots_tunnel_operator.api.tunnel import TunnelKind

_ENGINE_FOUND = (
    "'it is baseData ' + oldSelf.baseData + ', stream ' + oldSelf.stream + "
    "'; found baseData ' + self.baseData + ', stream ' + self.stream"
)


class TunnelSpec(ApiModel):
    """Desired state: the table to read, the sink, and the engines that copy."""

    model_config = ConfigDict(json_schema_extra=rules(*SPEC_RULES))

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
        """Whether existing rows are copied by a SparkApplication of its own."""
        return self.source.kind != "Stream" and self.engine.base_data == "Spark" and not self.uses_query

    @property
    def uses_query(self) -> bool:
        """Whether changes, and with type BaseAndStream existing rows, come by a query of Spark, a SparkApplication."""
        return self.source.tunnel is not None and self.source.kind != "BaseData" and self.engine.stream == "Spark"

    @property
    def is_mirror(self) -> bool:
        """Whether the sink holds the present rows, of which a query copies those that exist without the tunnel."""
        return self.sink.files is not None and self.sink.files.mode == "Mirror"

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
        match self.source.kind, self.uses_spark or (self.uses_query and self.is_mirror):
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
