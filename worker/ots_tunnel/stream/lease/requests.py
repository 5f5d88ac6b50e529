"""The messages of the leases' table (docs/data-plane.md 2.1, 2.4, 2.5)."""

from __future__ import annotations

from dataclasses import replace

from ots_tunnel.model import Value
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.codec import encode_primary_key, encode_row, encode_value
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.stream.lease.change import WRITES, Change, Kind
from ots_tunnel.stream.lease.lease import NO_WORKER, HalfLease, Lease
from ots_tunnel.stream.lease.row import (
    COUNTER,
    CREATED_IF_MISSING,
    KEY_NAMES,
    OWNER,
    STEALER,
    TAKES_RELEASED,
    attribute,
    encode_lease,
    lease_key,
)
from ots_tunnel.stream.shards import ShardId

#: Values that no lease has: an attribute that is missing or equal to it is missing.
_NO_COUNTER = -1
_NO_TEXT = "\0"


def create_table_request(table: str) -> pb.CreateTableRequest:
    """The table as the Java library creates it: rows never expire, one version, no reserved throughput."""
    return pb.CreateTableRequest(
        table_meta=pb.TableMeta(
            table_name=table, primary_key=[pb.PrimaryKeySchema(name=name, type=pb.STRING) for name in KEY_NAMES]
        ),
        reserved_throughput=pb.ReservedThroughput(capacity_unit=pb.CapacityUnit(read=0, write=0)),
        table_options=pb.TableOptions(time_to_live=-1, max_versions=1),
    )


def get_request(table: str, stream_id: str, shard_id: ShardId) -> pb.GetRowRequest:
    """Read one lease."""
    key = encode_primary_key(lease_key(stream_id, shard_id))
    return pb.GetRowRequest(table_name=table, primary_key=key, max_versions=1)


def create_request(table: str, lease: Lease, over: HalfLease | None = None) -> pb.PutRowRequest:
    """Write a new lease, unless there is one.

    The Java library writes it in any case, and so can reset a lease that another worker has created and taken. The row
    says that it was not written so (`Lease.created_if_missing`).

    Args:
        over: the half row that the lease replaces; a row that has been completed meanwhile is left alone.
    """
    condition = pb.Condition(row_existence=pb.EXPECT_NOT_EXIST)
    if over is not None:
        name = over.missing[0]
        is_missing = equal(name, _NO_COUNTER if name == COUNTER else _NO_TEXT, or_missing=True)
        condition = pb.Condition(row_existence=pb.EXPECT_EXIST, column_condition=is_missing.SerializeToString())
    row = encode_lease(replace(lease, created_if_missing=True))
    return pb.PutRowRequest(table_name=table, row=row, condition=condition, return_content=_nothing())


def change_request(table: str, change: Change) -> pb.UpdateRowRequest:
    """Make a change: byte for byte as the Java library does where it has the change, besides the condition.

    The library asks for the counter alone, except for a steal (`lease.change`), and its takes write no TakesReleased.
    """
    before, after = change.before, change.after
    columns = [Column(name, attribute(after, name)) for name in WRITES[change.kind]]
    if change.takes_released:
        columns.append(Column(TAKES_RELEASED, after.owner))
    if change.kind is Kind.STEAL:
        needed = _all(equal(OWNER, before.owner), equal(STEALER, NO_WORKER, or_missing=True))
    else:
        needed = _as_seen(before)
        if change.asks_how_the_row_came:
            needed = _all(equal(COUNTER, before.counter), equal(OWNER, before.owner), equal(CREATED_IF_MISSING, True))
    return pb.UpdateRowRequest(
        table_name=table,
        row_change=encode_row(lease_key(before.stream_id, before.shard_id), columns),
        condition=pb.Condition(row_existence=pb.IGNORE, column_condition=needed.SerializeToString()),
        return_content=_nothing(),
    )


def delete_request(table: str, lease: Lease) -> pb.DeleteRowRequest:
    """Delete a lease as it was seen; the Java library deletes it in any case."""
    return pb.DeleteRowRequest(
        table_name=table,
        primary_key=encode_row(lease_key(lease.stream_id, lease.shard_id), delete=True),
        condition=pb.Condition(row_existence=pb.IGNORE, column_condition=_as_seen(lease).SerializeToString()),
        return_content=_nothing(),
    )


def equal(name: str, value: Value, *, or_missing: bool = False) -> pb.Filter:
    """The condition that a column has a value, or, if asked for, that it is not there."""
    single = pb.SingleColumnValueFilter(
        comparator=pb.CT_EQUAL,
        column_name=name,
        column_value=encode_value(value),
        filter_if_missing=not or_missing,
        latest_version_only=True,
    )
    return pb.Filter(type=pb.FT_SINGLE_COLUMN_VALUE, filter=single.SerializeToString())


def _as_seen(lease: Lease) -> pb.Filter:
    return _all(equal(COUNTER, lease.counter), equal(OWNER, lease.owner))


def _all(*filters: pb.Filter) -> pb.Filter:
    both = pb.CompositeColumnValueFilter(combinator=pb.LO_AND, sub_filters=filters)
    return pb.Filter(type=pb.FT_COMPOSITE_COLUMN_VALUE, filter=both.SerializeToString())


def _nothing() -> pb.ReturnContent:
    return pb.ReturnContent(return_type=pb.RT_NONE)
