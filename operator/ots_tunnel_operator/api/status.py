"""The status of a TablestoreTunnel (docs/object.md).

An unknown figure is absent, never 0: it is None in the model and is left out when the status is written.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from ots_tunnel_operator.api.autoscaling import AutoscalingStatus
from ots_tunnel_operator.api.schema import ApiModel, Count, LargeCount, Time, list_map
from ots_tunnel_operator.reset.record import MAX_TOKENS

Phase = Literal["Pending", "Preparing", "BaseData", "Streaming", "Completed", "Suspended", "Failed"]
#: All types, in the order of the status (docs/architecture.md 6.3).
ConditionType = Literal[
    "Ready",
    "Progressing",
    "Degraded",
    "Stalled",
    "CredentialsValid",
    "SinkReady",
    "TunnelReady",
    "WorkersAvailable",
    "Rebalancing",
    "ScalingActive",
    "ScalingLimited",
    "Suspended",
    "Completed",
]
ConditionStatus = Literal["True", "False", "Unknown"]

#: Most channels listed in lag.slowest.
MAX_SLOWEST = 10
#: Most entries of possibleGaps.
MAX_GAPS = 20
#: Most pods listed in workers.
MAX_WORKERS = 100
#: Longest message of a condition in characters; with a longer one the API server refuses the whole status.
MAX_CONDITION_MESSAGE = 4096

Text = Annotated[str, Field(max_length=512)]
ResetToken = Annotated[str, Field(max_length=64)]


class Condition(ApiModel):
    """One aspect of the object, in the standard form that `kubectl wait` evaluates."""

    type: ConditionType
    """Name of the aspect."""
    status: ConditionStatus
    """Whether the condition holds; Unknown while the operator cannot tell."""
    reason: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z][A-Za-z0-9]*$")]
    """Cause as one word, for programs."""
    message: Annotated[str, Field(max_length=MAX_CONDITION_MESSAGE)] = ""
    """Cause in plain words: the field, its value and what to do."""
    observed_generation: LargeCount | None = None
    """Generation of the object that the condition describes."""
    last_transition_time: Time
    """Time of the last change of `status`."""


class TunnelStatus(ApiModel):
    """The tunnel that the object consumes."""

    id: Text | None = None
    """Id of the tunnel."""
    endpoint: Text | None = None
    """Endpoint at which the tunnel was seen last, or was to be created."""
    type: Literal["BaseData", "Stream", "BaseAndStream"] | None = None
    """Type of the tunnel on the service; Stream where Spark copies the existing rows of a BaseAndStream object."""
    stage: Text | None = None
    """Stage of the tunnel on the service: InitBaseDataAndStreamShard, ProcessBaseData or ProcessStream."""
    create_intent_time: Time | None = None
    """Time of the decision to create the tunnel; written before the call that creates it."""
    created_by_operator: bool | None = None
    """Whether the operator created the tunnel for this object; deletionPolicy Delete deletes no other tunnel."""
    created_time: Time | None = None
    """Time at which the service created the tunnel."""
    expired: bool | None = None
    """Whether the service has expired the tunnel because the part of the stream it needs is gone."""
    stream_retention_seconds: LargeCount | None = None
    """Seconds for which the source table keeps its stream."""
    start_from: Literal["Latest", "Earliest", "Timestamp"] | None = None
    """Begin of a tunnel for changes alone that a reset has given the object in place of the spec's; absent where the
    tunnel is as the spec has it."""
    start_time: Time | None = None
    """Time of the first change of such a tunnel, with startFrom Timestamp."""
    last_stage: Text | None = None
    """Last known stage of a tunnel that is gone or has expired."""
    consumed_up_to: Time | None = None
    """Time before which every change of a tunnel that is gone or has expired has certainly reached the sink."""


class DestinationStatus(ApiModel):
    """The destination table; absent where the sink is not a table."""

    endpoint: Text | None = None
    """Endpoint at which the table was found or created."""
    instance: Text | None = None
    """Instance of the table that this record is about."""
    table: Text | None = None
    """Name of the table that this record is about."""
    create_intent_time: Time | None = None
    """Time of the decision to create the table; written before the call that creates it."""
    created_by_operator: bool | None = None
    """Whether the operator created the table for this object."""
    ensured_time: Time | None = None
    """Time at which the table was found compatible or was created."""
    created_time: Time | None = None
    """Time at which the service created the table; one with another time is another table."""


class ChannelsStatus(ApiModel):
    """Number of channels by type, state and worker."""

    total: Count | None = None
    """Channels of the tunnel."""
    base: Count | None = None
    """Channels that deliver existing rows."""
    stream: Count | None = None
    """Channels that deliver changes."""
    open: Count | None = None
    """Channels that a worker reads."""
    closing: Count | None = None
    """Channels that are being moved from one worker to another."""
    terminated: Count | None = None
    """Channels that have been read to their end."""
    unowned: Count | None = None
    """Channels that are ready to be read but are assigned to no worker."""
    min_per_worker: Count | None = None
    """Channels of the worker with the fewest; absent while a ready worker does not answer."""
    max_per_worker: Count | None = None
    """Channels of the worker with the most; absent while a ready worker does not answer."""


class BaseStatus(ApiModel):
    """Progress of the copy of existing rows."""

    percent: Annotated[int, Field(ge=0, le=100)] | None = None
    """Finished channels (Spark: splits) as a percentage of all; 100 only when every one is finished."""
    rows: LargeCount | None = None
    """Rows copied so far."""
    done: Count | None = None
    """Channels, or splits of a snapshot, that are finished."""
    total: Count | None = None
    """Number of channels, or of splits of a snapshot."""
    eta_seconds: LargeCount | None = None
    """Estimated seconds until every existing row is copied, at the mean rate so far. Absent before the first channel or
    split is finished, and while nothing copies."""


class SlowChannel(ApiModel):
    """One of the channels with the largest lag."""

    id: Text
    """Id of the channel."""
    type: Literal["BaseData", "Stream"]
    """Records that the channel delivers: existing rows or changes."""
    worker: Text | None = None
    """Pod that reads the channel."""
    seconds: LargeCount | None = None
    """Lag of the channel in seconds."""


class LagStatus(ApiModel):
    """Distance of the sink behind the source table."""

    seconds: LargeCount | None = None
    """Lag of the slowest channel in seconds."""
    consumed_up_to: Time | None = None
    """Consume point: every change up to this time has reached the sink."""
    caught_up: bool | None = None
    """Whether the workers report that every channel is read to the end of its log and confirmed; never true while
    status.lost says that changes are missing."""
    retention_used_percent: Annotated[int, Field(ge=0, le=1000)] | None = None
    """Used part of the stream's retention time in percent; beyond 100 changes are lost."""
    slowest: Annotated[tuple[SlowChannel, ...], Field(max_length=MAX_SLOWEST)] | None = None
    """Channels with the largest lag, at most 10."""
    observed_time: Time | None = None
    """Time of the observation."""


class ThroughputStatus(ApiModel):
    """Rate and number of rows."""

    rows_per_second: LargeCount | None = None
    """Rows per second, summed over all workers."""
    limit_rows_per_second: LargeCount | None = None
    """Most rows per second of all workers that are ready: their number times the lower one of source.rateLimit and
    delivery.rateLimit. The latter does not count behind a delivery.filter. Absent without a limit or a worker."""
    rows_total: LargeCount | None = None
    """Rows that the service has counted for all channels of the tunnel."""


class PossibleGapStatus(ApiModel):
    """Changes of one channel that may be missing, because they were not read within the stream's retention."""

    channel: Text
    """Id of the channel."""
    start: Annotated[Time, Field(alias="from")]
    """Time until which the channel was consumed."""
    end: Annotated[Time, Field(alias="to")]
    """Time from which on the channel has every change."""
    found_by: Literal["Worker", "Operator"]
    """Worker: a worker did not get what lies between. Operator: the consume point is older than what the stream keeps,
    and no worker has looked yet."""
    accepted: bool = False
    """Whether onPossibleGap was Continue since it was found: the workers go on behind it."""


class ReadUntilStatus(ApiModel):
    """Read mark: how far the tunnel was certainly read, for workers that start later."""

    tunnel_id: Text
    """Id of the tunnel; for another one the mark says nothing."""
    time: Time
    """At this time, by the service's clock, every stream channel had been read to its end and confirmed. It moves only
    where the tunnel's consume points stand still, once in a tenth of the stream's retention."""


class VerdictStatus(ApiModel):
    """A finding that stops the workers and stays until a look refutes it, whatever the conditions tell meanwhile."""

    reason: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z][A-Za-z0-9]*$")]
    """Finding as one word, a reason of the conditions."""
    message: Annotated[str, Field(max_length=MAX_CONDITION_MESSAGE)] = ""
    """Finding in plain words: the field, its value and what to do."""
    attempt: Text | None = None
    """The attempt that a worker's finding is about. It stands until a change of the spec, another tunnel or a restart
    of the workers makes the next one. Absent where the operator's own looks decide."""


class RefusedStatus(ApiModel):
    """Records that the sink refused for good and that delivery.onPermanentError left out: rows may be there in part."""

    records: LargeCount
    """Records, as the workers have counted them. One that was delivered again, after the end of a worker, is counted
    again; what a worker counted in the seconds before its end is missing."""
    keys: LargeCount
    """Different keys of these records, summed over the processes of the workers, each of which counts up to 10,000."""
    last_time: Time
    """Time at which the operator saw the number grow last."""


class ResetStatus(ApiModel):
    """The last reset that was asked for by the annotation `ots-tunnel.dev/reset`."""

    token: ResetToken | None = None
    """Token of the request, which is not acted on again."""
    form: Literal["NewTunnel", "Rewind", "NewBase"] | None = None
    """What it begins with: changes from then on, changes again from an earlier time, or existing rows again."""
    start_time: Time | None = None
    """With Rewind, the time of the first change; absent is the oldest that the stream keeps."""
    existing_tunnel: Literal["Keep", "Delete", "Adopt"] | None = None
    """What becomes of a tunnel that has the name."""
    state: Literal["Running", "Done", "Refused"] | None = None
    """How far it is."""
    requested_time: Time | None = None
    """Time at which the operator began it, or refused it."""
    finished_time: Time | None = None
    """Time at which it was done or refused."""
    former_tunnel_id: Text | None = None
    """Id of the tunnel that is replaced."""
    delivered_until: Time | None = None
    """Time before which every change had reached the sink when it began; absent is unknown."""
    tunnel_id: Text | None = None
    """Id of the tunnel that replaces it."""
    message: Annotated[str, Field(max_length=MAX_CONDITION_MESSAGE)] = ""
    """What it does, writes and loses, or why it was refused."""
    earlier_tokens: Annotated[tuple[ResetToken, ...], Field(max_length=MAX_TOKENS)] | None = None
    """Tokens of the requests before, at most 32; none of them is acted on again."""


class LostStatus(ApiModel):
    """What resets have given up: it never reaches the sink. A reset that brings it back ends it."""

    what: Literal["Changes", "Deletions"] | None = None
    """Changes of rows, or deletions alone: rows that no longer exist in the source stay in the destination."""
    start: Annotated[Time | None, Field(alias="from")] = None
    """What was committed after this time is lost; absent is unknown."""
    end: Annotated[Time | None, Field(alias="to")] = None
    """What was committed from this time on is delivered; absent until the new tunnel exists."""


class WorkerStatus(ApiModel):
    """One worker pod."""

    name: Text
    """Name of the pod."""
    client_id: Text | None = None
    """Client id that the service gave the worker."""
    channels: Count | None = None
    """Channels that the worker holds."""
    lag_seconds: LargeCount | None = None
    """Lag of the worker's slowest channel in seconds."""
    busy_percent: Annotated[int, Field(ge=0, le=100)] | None = None
    """Percentage of time in which the worker writes to the sink, rounded to tens."""
    ready: bool = False
    """Whether the pod is ready."""
    refused_records: LargeCount | None = None
    """Records that the sink refused since the start of the worker's process, as far as status.refused has them; absent
    where there are none."""
    refused_keys: LargeCount | None = None
    """Different keys of these records."""


class SnapshotStatus(ApiModel):
    """The snapshot by which Spark copies existing rows."""

    application: Text | None = None
    """Name of the SparkApplication."""
    state: Text | None = None
    """State that the Spark operator reports, NEW before its first report; Completed once the snapshot is recorded as
    done. Absent while there is no SparkApplication."""
    tunnel_id: Text | None = None
    """Id of the tunnel that the snapshot belongs to."""
    started_time: Time | None = None
    """Time of the decision to create the application; written before the call that creates it."""
    finished_time: Time | None = None
    """Time at which every split was recorded as done and no write of the snapshot was possible any more."""
    consistent: bool | None = None
    """Whether every channel has been read past the snapshot's end. Until then the sink may mix rows of different
    moments."""
    omitted_cells: LargeCount | None = None
    """Cells of finished splits that were left out, because they are past the destination's time to live."""


WorkerList = Annotated[tuple[WorkerStatus, ...], Field(max_length=MAX_WORKERS, json_schema_extra=list_map("name"))]
ConditionList = Annotated[tuple[Condition, ...], Field(max_length=32, json_schema_extra=list_map("type"))]


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
    """The tunnel that the object consumes."""
    destination: DestinationStatus | None = None
    """The destination table; absent where the sink is not a table."""
    channels: ChannelsStatus | None = None
    """Number of channels by type, state and worker."""
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
    """What resets have given up, so that lag.caughtUp is never true; absent without a loss."""
    workers: WorkerList | None = None
    """Worker pods, at most 100."""
    autoscaling: AutoscalingStatus | None = None
    """Number of workers, and why it is that."""
    pod_monitor: Text | None = None
    """Name of the PodMonitor that the operator makes for the workers, or has still to remove; absent without one."""
    snapshot: SnapshotStatus | None = None
    """The snapshot by which Spark copies existing rows; absent where workers copy them."""
    conditions: ConditionList = ()
    """Conditions of the object; the first write sets all of them."""

    def dump(self) -> dict[str, Any]:
        """Return the status as JSON for the API server: camelCase keys, without unknown values."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)
