"""The table stream: shards, iterators and records of a table's change log (docs/data-plane.md 2.8).

A shard is a partition. An iterator is a shard id and a position, valid while the position is retained. Records are
the same bytes that tunnels deliver, because both messages have the same fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ots_emulator.api.call import Call
from ots_emulator.api.rows.capacity import capacity_units, consumed
from ots_emulator.ledger import JAVA, documented, guessed, tested
from ots_emulator.refusal import Refusal, parameter_invalid
from ots_emulator.tables.changelog import ChangeLog
from ots_emulator.tables.partition import Partition
from ots_emulator.tables.table import Table
from ots_tunnel.protocol import table_pb2 as pb

#: Defaults of the two limits (docs/data-plane.md 2.8).
SHARDS: Final = 100
RECORDS: Final = 1000
#: 18 digits: more records than any shard has.
_POSITION: Final = re.compile(r"[0-9]{1,18}")
#: Longer names make stream ids that the service cannot read (docs/data-plane.md 2.2).
TABLE_NAME_BYTES: Final = 238


def list_stream(call: Call, request: pb.ListStreamRequest) -> bytes:
    """List the streams of a table, or of the whole instance if no table is named."""
    tables = [call.instance.table(request.table_name)] if request.table_name else call.instance.tables.values()
    streams = [
        pb.Stream(stream_id=table.log.stream_id, table_name=table.name, creation_time=table.log.enabled_us)
        for table in tables
        if table.log is not None
    ]
    return pb.ListStreamResponse(streams=streams).SerializeToString()


def describe_stream(call: Call, request: pb.DescribeStreamRequest) -> bytes:
    """List shards of a stream with their parents in the order of their creation, up to the limit."""
    table, log = _stream(call, request.stream_id)
    log.expire(call.now_us)
    shards = list(log.partitions.values())
    first = 0
    if request.inclusive_start_shard_id:
        first = shards.index(_shard(log, request.inclusive_start_shard_id))
    limit = request.shard_limit if request.HasField("shard_limit") else SHARDS
    if limit <= 0:
        raise parameter_invalid(f"shard_limit must be greater than 0, found: {limit}.")
    following = shards[first + limit] if first + limit < len(shards) else None
    return pb.DescribeStreamResponse(
        stream_id=log.stream_id,
        expiration_time=log.retention_hours,
        table_name=table.name,
        creation_time=log.enabled_us,
        stream_status=pb.STREAM_ACTIVE,
        shards=[_shard_message(shard) for shard in shards[first : first + limit]],
        next_shard_id=None if following is None else following.id,
    ).SerializeToString()


def get_shard_iterator(call: Call, request: pb.GetShardIteratorRequest) -> bytes:
    """Return the iterator of a shard's oldest retained record, or of the first at or after a time."""
    _, log = _stream(call, request.stream_id)
    log.expire(call.now_us)
    shard = _shard(log, request.shard_id)
    position = log.first_position(shard, call.now_us)
    if request.HasField("timestamp"):
        position = max(position, shard.position_at(request.timestamp))
    return pb.GetShardIteratorResponse(shard_iterator=f"{shard.id}:{position}").SerializeToString()


def get_stream_record(call: Call, request: pb.GetStreamRecordRequest) -> bytes:
    """Return records from an iterator on, and the next iterator; a closed shard that is read has none."""
    shard_id, _, text = request.shard_iterator.rpartition(":")
    if not shard_id or not _POSITION.fullmatch(text):
        raise _invalid_iterator(request.shard_iterator)
    table, log, shard = _shard_of_iterator(call, shard_id)
    if int(text) > shard.end:
        raise _invalid_iterator(request.shard_iterator)
    if request.table_name and request.table_name != table.name:
        raise parameter_invalid(f"The shard iterator belongs to table '{table.name}', found: '{request.table_name}'.")
    if len(table.name.encode()) > TABLE_NAME_BYTES:
        raise parameter_invalid(f"Invalid stream id: '{log.stream_id}'.")
    limit = request.limit if request.HasField("limit") else RECORDS
    if limit <= 0:
        raise parameter_invalid(f"The limit must be greater than 0, found: {limit}.")
    position = int(text)
    if position < log.first_position(shard, call.now_us):
        raise Refusal("OTSTrimmedDataAccess", "Requested stream data is already trimmed or does not exist.")
    rows = min(limit, call.settings.range_rows)
    page = log.read(shard, position, rows=rows, size=call.settings.range_bytes, end_us=None)
    drained = page.next_position >= shard.end
    is_ended = drained and shard.closed_us is not None
    size = sum(map(len, page.entries))
    tail = pb.GetStreamRecordResponse(
        next_shard_iterator=None if is_ended else f"{shard.id}:{page.next_position}",
        consumed=consumed(capacity_units(size), 0),
        # The service looks no further than its last record, so that records may follow every page that has some.
        may_more_record=bool(page.entries) and not is_ended,
    )
    return b"".join(page.entries) + tail.SerializeToString()


def _invalid_iterator(text: str) -> Refusal:
    return parameter_invalid(f"Invalid shard iterator: '{text}'.")


def _stream(call: Call, stream_id: str) -> tuple[Table, ChangeLog]:
    for table in call.instance.tables.values():
        if table.log is not None and table.log.stream_id == stream_id:
            return table, table.log
    raise Refusal("OTSObjectNotExist", "Requested stream does not exist.")


def _shard(log: ChangeLog, shard_id: str) -> Partition:
    shard = log.partitions.get(shard_id)
    if shard is None:
        raise Refusal("OTSObjectNotExist", "Requested shard does not exist.")
    return shard


def _shard_of_iterator(call: Call, shard_id: str) -> tuple[Table, ChangeLog, Partition]:
    for table in call.instance.tables.values():
        if table.log is None or shard_id not in table.log.partitions:
            continue
        table.log.expire(call.now_us)
        shard = table.log.partitions.get(shard_id)
        if shard is not None:
            return table, table.log, shard
    raise Refusal("OTSTrimmedDataAccess", "Requested stream data is already trimmed or does not exist.")


def _shard_message(shard: Partition) -> pb.StreamShard:
    parent, sibling = (*shard.parents, None, None)[:2]
    return pb.StreamShard(shard_id=shard.id, parent_id=parent, parent_sibling_id=sibling)


HANDLERS: Final[Mapping[str, Callable[[Call, Any], bytes]]] = {
    "ListStream": list_stream,
    "DescribeStream": describe_stream,
    "GetShardIterator": get_shard_iterator,
    "GetStreamRecord": get_stream_record,
}

LEDGER: Final = (
    documented("ListStream", "at most one stream for each table"),
    documented("DescribeStream", "shards with their parents, as many as are asked for"),
    guessed("DescribeStream", "a hundred shards without a limit", "no source names a limit"),
    documented("GetShardIterator", "the oldest record, or the first at or after a time"),
    guessed("GetShardIterator", "the answer is final at once", "the service may give a token to ask again"),
    documented(
        "GetStreamRecord",
        "an equal iterator means caught up, none means closed and read to the end",
        "the code of the Java Stream Client 1.0.0",
    ),
    tested(
        "GetStreamRecord",
        "more records may come after the page with the last one",
        JAVA("APITest.testStreamWithMayMoreRecord"),
    ),
    guessed("GetStreamRecord", "1,000 records without a limit", "the Java Stream Client asks for so many"),
    guessed(
        "GetStreamRecord",
        "an increment is a put of its result; expiry leaves no record",
        "no source shows such records",
    ),
    tested(
        "GetStreamRecord, ReadRecords",
        "the first put has no former values, an update has those of the origin columns",
        JAVA("TestTunnelConsumer.testConsumeOriginColumn"),
    ),
    documented(
        "GetStreamRecord, ReadRecords",
        "records of a shard come in the order of their times and row indexes",
        "the SDKs' code",
    ),
    guessed(
        "GetStreamRecord, ReadRecords",
        "every record has a time of its own and the row index 0; with `one_time_per_commit` those of an atomic batch "
        "or a transaction have one time",
        "no recording has several records of one commit",
    ),
    guessed(
        "GetStreamRecord, ReadRecords",
        "former values come with the key, for every change of a row",
        "all readers take it, one refuses an empty key",
    ),
    documented("GetStreamRecord", "records beyond the retention are trimmed"),
    guessed("GetStreamRecord", "exactly on time", "the service removes them when it comes to it"),
    guessed(
        "GetStreamRecord",
        "a malformed iterator, or one behind the last record, is OTSParameterInvalid, in these words",
        "no source has such a call",
    ),
    guessed("GetShardIterator", "an iterator is a shard and a position", "real ones are opaque"),
)
