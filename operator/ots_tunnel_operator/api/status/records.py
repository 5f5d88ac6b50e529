"""What the operator remembers of an object from look to look: its tunnel and destination, and what happened to them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ots_tunnel_operator.api.schema import ApiModel, Count, LargeCount, Text, Time
from ots_tunnel_operator.api.status.condition import MAX_CONDITION_MESSAGE
from ots_tunnel_operator.reset.record import MAX_TOKENS

#: Most entries of possibleGaps.
MAX_GAPS = 20

ResetToken = Annotated[str, Field(max_length=64)]


class TunnelStatus(ApiModel):
    """The tunnel that the object consumes; with source.stream, the stream of the table in its place."""

    id: Text | None = None
    """Id of the tunnel; with source.stream, of the stream. A stream that was switched off and on again has another."""
    endpoint: Text | None = None
    """Endpoint at which the tunnel was seen last, or was to be created."""
    lease_table: Text | None = None
    """With source.stream, the table of leases by which the workers share the shards; it outlives the object."""
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


class PossibleGapStatus(ApiModel):
    """Changes of one channel that may be missing, because they were not read within the stream's retention."""

    channel: Text
    """Id of the channel."""
    start: Annotated[Time, Field(alias="from")]
    """Time until which the channel was consumed."""
    end: Annotated[Time, Field(alias="to")]
    """Time from which on the channel had every change when the gap was found. While a gap that a worker found keeps the
    workers stopped, the stream may drop more; the next worker reports that."""
    found_by: Literal["Worker", "Operator"]
    """Worker: a worker, or the driver of a query, did not get what lies between. Operator: the consume point is older
    than what the stream keeps, and no worker has looked yet."""
    accepted: bool = False
    """Whether onPossibleGap was Continue since it was found: the workers go on behind it."""
    lasting: bool | None = None
    """With Operator, whether the retention was raised since: no worker notices the gap any more, so that it stays, and
    stops the workers, until it is accepted."""


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
    """Time at which the operator saw the number grow last, or could not ask workers at the end."""
    unknown_workers: Count | None = None
    """Workers that did not answer when everything was read to its end, and that are gone since: what they refused is
    not known. Absent where there are none."""


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


class QueryStatus(ApiModel):
    """The query of Spark that follows the tunnel."""

    application: Text | None = None
    """Name of the SparkApplication."""
    state: Text | None = None
    """State that the Spark operator reports, NEW before its first report."""
    batch_id: LargeCount | None = None
    """Number of the last batch that is written, from 0; this and the following are absent while no driver follows the
    tunnel."""
    rows_per_second: LargeCount | None = None
    """Rows per second of the last batch."""
    lag_seconds: LargeCount | None = None
    """Age in seconds of the oldest change that waits."""
    recorded_time: Time | None = None
    """Time at which the driver recorded these figures, by its clock: when one has changed, and at least every ten
    minutes. A later time alone is not written here."""


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
