"""The whole status of a TablestoreTunnel (docs/object.md)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from ots_tunnel_operator.api.autoscaling import AutoscalingStatus
from ots_tunnel_operator.api.schema import ApiModel, Count, LargeCount, Text, Time
from ots_tunnel_operator.api.status.condition import ConditionList
from ots_tunnel_operator.api.status.figures import BaseStatus, ChannelsStatus, LagStatus, ThroughputStatus, WorkerList
from ots_tunnel_operator.api.status.records import (
    MAX_GAPS,
    DestinationStatus,
    LostStatus,
    PossibleGapStatus,
    QueryStatus,
    ReadUntilStatus,
    RefusedStatus,
    ResetStatus,
    SnapshotStatus,
    TunnelStatus,
    VerdictStatus,
)

Phase = Literal["Pending", "Preparing", "BaseData", "Streaming", "Completed", "Suspended", "Failed"]

#: Longest place of files in characters: a URL of 1,024 and a host, or a folder and the description of its volume.
MAX_FILES_PLACE = 2048


class TunnelObjectStatus(ApiModel):
    """Observed state, written by the operator; unknown figures are absent."""

    observed_generation: LargeCount | None = None
    """Generation of the spec that this status describes."""
    observed_time: Time | None = None
    """Time of the observation that the figures come from. While Ready is True or False they still hold, although this
    time is not written alone; where the answer of a worker was lost, they are at most as old as this, and while Ready
    is Unknown exactly as old."""
    phase: Phase | None = None
    """Summary for human readers; programs use the conditions."""
    replicas: Count | None = None
    """Number of worker pods that exist."""
    ready_replicas: Count | None = None
    """Number of worker pods that are ready."""
    selector: Annotated[str, Field(max_length=1024)] | None = None
    """Label selector of the worker pods, for the scale subresource."""
    tunnel: TunnelStatus | None = None
    """The tunnel that the object consumes; with source.stream, the stream of the table in its place."""
    destination: DestinationStatus | None = None
    """The destination table; absent where the sink is not a table."""
    files_place: Annotated[str, Field(max_length=MAX_FILES_PLACE)] | None = None
    """Place that the workers write files to: volume and folder, or bucket and store. A spec with another one is refused
    once something may have been written there. Absent where the sink has no files."""
    channels: ChannelsStatus | None = None
    """Number of channels by type, state and worker. With source.stream, each shard of the stream counts as a channel,
    in the state that its lease tells."""
    base: BaseStatus | None = None
    """Progress of the copy of existing rows."""
    lag: LagStatus | None = None
    """Distance of the sink behind the source table."""
    throughput: ThroughputStatus | None = None
    """Rate and number of rows."""
    possible_gaps: Annotated[tuple[PossibleGapStatus, ...], Field(max_length=MAX_GAPS)] | None = None
    """Changes that may be missing, at most 20; those not accepted yet come first."""
    refused: RefusedStatus | None = None
    """Records that the sink refused for good and that were left out; absent where there are none."""
    read_until: ReadUntilStatus | None = None
    """Read mark: how far the tunnel was certainly read, for workers that start later."""
    verdict: VerdictStatus | None = None
    """A finding that lasts: tunnel gone, replaced or expired, or destination lost; absent without one."""
    reset: ResetStatus | None = None
    """The last reset that was asked for; absent without one."""
    lost: LostStatus | None = None
    """What resets have given up, so that lag.caughtUp is never true, and the object at most CompletedWithLoss; absent
    without a loss."""
    workers: WorkerList | None = None
    """Worker pods, at most 100."""
    autoscaling: AutoscalingStatus | None = None
    """Number of workers, and why it is that."""
    pod_monitor: Text | None = None
    """Name of the PodMonitor that the operator makes for the workers, or has still to remove; absent without one."""
    snapshot: SnapshotStatus | None = None
    """The snapshot by which Spark copies existing rows; absent where workers copy them."""
    spark: QueryStatus | None = None
    """The query of Spark that follows the tunnel; absent where workers do."""
    conditions: ConditionList = ()
    """Conditions of the object; the first write sets all of them."""

    def dump(self) -> dict[str, Any]:
        """Return the status as JSON for the API server: camelCase keys, without unknown values."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)
