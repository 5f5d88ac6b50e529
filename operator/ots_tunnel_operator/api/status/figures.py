"""What is measured: channels, lag, rows, workers. Figures that are not known are absent."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ots_tunnel_operator.api.schema import ApiModel, Count, LargeCount, Text, Time, list_map

#: Most channels listed in lag.slowest.
MAX_SLOWEST = 10
#: Most pods listed in workers.
MAX_WORKERS = 100


class ChannelsStatus(ApiModel):
    """Number of channels by type, state and worker. With source.stream, each shard of the stream counts as a channel,
    in the state that its lease tells."""

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
    """Lag of the slowest channel in seconds, by the service's clock."""
    consumed_up_to: Time | None = None
    """Consume point: every change up to this time has reached the sink."""
    caught_up: bool | None = None
    """Whether the workers report that every channel is read to the end of its log and confirmed; never true while
    status.lost or status.possibleGaps say that changes are missing or may be."""
    retention_used_percent: Annotated[int, Field(ge=0, le=1000)] | None = None
    """Used part of the stream's retention time in percent; beyond 100 changes are lost."""
    slowest: Annotated[tuple[SlowChannel, ...], Field(max_length=MAX_SLOWEST)] | None = None
    """Channels with the largest lag, at most 10."""
    by_checkpoint: Count | None = None
    """With source.stream, shards that no worker reports, and whose lag is that of the record at the checkpoint of their
    lease; a worker may have read further since."""
    not_looked_at: Count | None = None
    """With source.stream, shards whose lag is not known, neither by a worker nor by their checkpoint: a lag of all
    shards is then not known either."""
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
    refused_since: Time | None = None
    """Start of the process that has counted them; absent where a worker of an earlier release does not tell."""


WorkerList = Annotated[tuple[WorkerStatus, ...], Field(max_length=MAX_WORKERS, json_schema_extra=list_map("name"))]
