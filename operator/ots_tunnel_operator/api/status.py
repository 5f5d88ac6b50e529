"""The status of a TablestoreTunnel (docs/object.md).

Unknown is absent, never 0: every figure that may be unknown is None and is left out when written.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from ots_tunnel_operator.api.schema import ApiModel, Count, LargeCount, Time, list_map

Phase = Literal["Pending", "Preparing", "BaseData", "Streaming", "Completed", "Suspended", "Failed"]
ConditionType = Literal[
    "Ready",
    "Progressing",
    "Degraded",
    "Stalled",
    "CredentialsValid",
    "TunnelReady",
    "SinkReady",
    "WorkersAvailable",
    "Rebalancing",
    "Suspended",
    "Completed",
]
ConditionStatus = Literal["True", "False", "Unknown"]

#: Slowest channels listed in the status.
MAX_SLOWEST = 10
#: Workers listed in the status.
MAX_WORKERS = 100
#: Longest message of a condition; the API server refuses the whole status beyond it.
MAX_MESSAGE = 4096

Text = Annotated[str, Field(max_length=512)]


class Condition(ApiModel):
    """One aspect of the object, as `kubectl wait` understands it."""

    type: ConditionType
    """Aspect."""
    status: ConditionStatus
    """Whether it holds."""
    reason: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z][A-Za-z0-9]*$")]
    """Why, as one word for programs."""
    message: Annotated[str, Field(max_length=MAX_MESSAGE)] = ""
    """Why, for people: field, value and what to do."""
    observed_generation: LargeCount | None = None
    """Generation of the object this was decided for."""
    last_transition_time: Time
    """When `status` changed last."""


class TunnelStatus(ApiModel):
    """The tunnel the object uses."""

    id: Text | None = None
    """Tunnel id."""
    type: Literal["BaseData", "Stream", "BaseAndStream"] | None = None
    """Type of the tunnel on the service; Stream where base data is read by Spark."""
    stage: Text | None = None
    """Stage the service reports: InitBaseDataAndStreamShard, ProcessBaseData or ProcessStream."""
    create_intent_time: Time | None = None
    """When the operator decided to create the tunnel; written before the call."""
    created_by_operator: bool | None = None
    """Whether this operator created it for this object; only then deletionPolicy Delete deletes it."""
    created_time: Time | None = None
    """When the service created it."""
    expired: bool | None = None
    """Whether the service gave it up because the log it needs is gone."""
    stream_retention_seconds: LargeCount | None = None
    """How long the source table keeps its stream."""


class DestinationStatus(ApiModel):
    """The destination table, where the sink is one."""

    create_intent_time: Time | None = None
    """When the operator decided to create the table; written before the call."""
    created_by_operator: bool | None = None
    """Whether this operator created it for this object."""
    ensured_time: Time | None = None
    """When the table was found or made compatible."""


class ChannelsStatus(ApiModel):
    """How many channels there are and who has them."""

    total: Count | None = None
    """All channels of the tunnel."""
    base: Count | None = None
    """Channels of base data."""
    stream: Count | None = None
    """Channels of changes."""
    open: Count | None = None
    """Channels being read."""
    closing: Count | None = None
    """Channels on their way from one worker to another."""
    terminated: Count | None = None
    """Channels read to their end."""
    unowned: Count | None = None
    """Channels that could be read and that no worker has."""
    min_per_worker: Count | None = None
    """Channels of the worker that has fewest."""
    max_per_worker: Count | None = None
    """Channels of the worker that has most."""


class BaseStatus(ApiModel):
    """Progress of the rows that existed at the start."""

    percent: Annotated[int, Field(ge=0, le=100)] | None = None
    """Share that is done."""
    rows: LargeCount | None = None
    """Rows copied."""
    done: Count | None = None
    """Channels, or splits of a snapshot, that are done."""
    total: Count | None = None
    """Channels, or splits of a snapshot, in all."""
    eta_seconds: LargeCount | None = None
    """Time left at the present rate."""


class SlowChannel(ApiModel):
    """A channel that is far behind."""

    id: Text
    """Channel id."""
    type: Literal["BaseData", "Stream"]
    """What it delivers."""
    worker: Text | None = None
    """Pod that reads it."""
    seconds: LargeCount | None = None
    """How far behind it is."""


class LagStatus(ApiModel):
    """How far behind the source the sink is."""

    seconds: LargeCount | None = None
    """Lag of the slowest channel."""
    consumed_up_to: Time | None = None
    """Every change up to this time has reached the sink."""
    caught_up: bool | None = None
    """Whether every channel was read to the log's end and confirmed; said by the workers."""
    retention_used_percent: Annotated[int, Field(ge=0, le=1000)] | None = None
    """Lag as a share of the stream's retention; at 100 changes are lost."""
    slowest: Annotated[tuple[SlowChannel, ...], Field(max_length=MAX_SLOWEST)] | None = None
    """Slowest channels, at most 10."""
    observed_time: Time | None = None
    """When this was seen."""


class ThroughputStatus(ApiModel):
    """How fast rows move."""

    rows_per_second: LargeCount | None = None
    """Rows per second of all workers."""
    rows_total: LargeCount | None = None
    """Rows since the first channel was opened, as the service counts."""


class WorkerStatus(ApiModel):
    """One worker pod."""

    name: Text
    """Pod name."""
    client_id: Text | None = None
    """Id the service gave it."""
    channels: Count | None = None
    """Channels it has."""
    lag_seconds: LargeCount | None = None
    """Lag of its slowest channel."""
    busy_percent: Annotated[int, Field(ge=0, le=100)] | None = None
    """Share of time it is not waiting for records."""
    ready: bool = False
    """Whether the pod is ready."""


class SnapshotStatus(ApiModel):
    """The snapshot of existing rows by Spark."""

    application: Text | None = None
    """Name of the SparkApplication."""
    state: Text | None = None
    """Its state, as the Spark operator says; Completed once recorded as done."""
    tunnel_id: Text | None = None
    """Tunnel the snapshot was taken for."""
    started_time: Time | None = None
    """When the application was created."""
    finished_time: Time | None = None
    """When every split was recorded as done."""
    consistent: bool | None = None
    """Whether every channel has been read past the snapshot's end, so that the copy is that of one moment."""


WorkerList = Annotated[tuple[WorkerStatus, ...], Field(max_length=MAX_WORKERS, json_schema_extra=list_map("name"))]
ConditionList = Annotated[tuple[Condition, ...], Field(max_length=32, json_schema_extra=list_map("type"))]


class TunnelObjectStatus(ApiModel):
    """What the operator observed; every figure that is not known is absent."""

    observed_generation: LargeCount | None = None
    """Generation of the spec this status is about."""
    phase: Phase | None = None
    """Summary for people; programs use the conditions."""
    replicas: Count | None = None
    """Worker pods that exist."""
    ready_replicas: Count | None = None
    """Worker pods that are ready."""
    selector: Annotated[str, Field(max_length=1024)] | None = None
    """Label selector of the worker pods, for the scale subresource."""
    tunnel: TunnelStatus | None = None
    """The tunnel."""
    destination: DestinationStatus | None = None
    """The destination table."""
    channels: ChannelsStatus | None = None
    """Channels."""
    base: BaseStatus | None = None
    """Rows that existed at the start."""
    lag: LagStatus | None = None
    """Distance to the source."""
    throughput: ThroughputStatus | None = None
    """Speed."""
    workers: WorkerList | None = None
    """Worker pods, at most 100."""
    snapshot: SnapshotStatus | None = None
    """Snapshot by Spark."""
    conditions: ConditionList = ()
    """All conditions, from the first write on."""

    def dump(self) -> dict[str, Any]:
        """The status as it is written: camelCase, unknown left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)
