"""The row of a lease, byte for byte as the vendor's Java library writes it, and two attributes more.

    StreamId          key        text      stream of the table that is read
    StatusType        key        text      LeaseKey; rows of other types are no leases
    StatusValue       key        text      shard
    LeaseCounter      attribute  integer   from 0
    LeaseOwner        attribute  text      empty without an owner
    LeaseStealer      attribute  text      empty without one
    Checkpoint        attribute  text      TRIM_HORIZON, SHARD_END or an iterator
    ParentShardIds    attribute  text      each parent and a line feed; the order means nothing
    CreatedIfMissing  attribute  boolean   true in the rows that this package creates
    TakesReleased     attribute  text      the owner, if it is a worker of this package

The first five attributes are always there. The library does not know the other two and leaves them where they are:
one of its workers that takes a lease is not the worker that TakesReleased names. When it writes a row as a whole,
which it does whether there is one or not, both are gone. No cell has a version of its own: tools take that of the
counter as the time at which the owner lived. Source: the library's code, and rows that it wrote
(tests/unit/stream/test_lease_rows.py).
"""

from __future__ import annotations

from typing import Final

from ots_tunnel.errors import CodecError
from ots_tunnel.model import KeyValue, Marker, PrimaryKey, Value
from ots_tunnel.protocol.plainbuffer.codec import DecodedRow, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.stream.lease.lease import HalfLease, Lease, Position, WorkerId
from ots_tunnel.stream.shards import ShardId

STREAM_ID: Final = "StreamId"
STATUS_TYPE: Final = "StatusType"
STATUS_VALUE: Final = "StatusValue"
KEY_NAMES: Final = (STREAM_ID, STATUS_TYPE, STATUS_VALUE)
LEASE_KEY: Final = "LeaseKey"
#: Types of the rows beside the leases, which only this package writes (`calls.former_streams`, `calls.start_mark`).
FOLLOWED: Final = "OtsTunnelFollowed"
START: Final = "OtsTunnelStart"

COUNTER: Final = "LeaseCounter"
OWNER: Final = "LeaseOwner"
STEALER: Final = "LeaseStealer"
CHECKPOINT: Final = "Checkpoint"
PARENTS: Final = "ParentShardIds"
CREATED_IF_MISSING: Final = "CreatedIfMissing"
TAKES_RELEASED: Final = "TakesReleased"
#: In the order in which the library writes them.
ATTRIBUTES: Final = (COUNTER, OWNER, STEALER, CHECKPOINT, PARENTS)
_PARENT_END = "\n"
#: Every change adds 1, and an integer of the table has 64 bits.
LARGEST_COUNTER: Final = 2**63 - 1


def lease_key(stream_id: str, shard_id: ShardId) -> PrimaryKey:
    """Key of a lease's row."""
    return _key(stream_id, shard_id)


def lease_range(stream_id: str) -> tuple[PrimaryKey, PrimaryKey]:
    """Bounds of the rows of a stream's leases: inclusive, exclusive."""
    return _key(stream_id, Marker.INF_MIN), _key(stream_id, Marker.INF_MAX)


def attribute(lease: Lease, name: str) -> Value:
    """Value of one of ATTRIBUTES.

    Raises:
        CodecError: the id of a parent holds a line feed.
    """
    match name:
        case "LeaseCounter":
            return lease.counter
        case "LeaseOwner":
            return lease.owner
        case "LeaseStealer":
            return lease.stealer
        case "Checkpoint":
            return lease.checkpoint
        case _:
            return _join_parents(lease)


def encode_lease(lease: Lease) -> bytes:
    """The whole row.

    Raises:
        CodecError: the id of a parent holds a line feed.
    """
    columns = [Column(name, attribute(lease, name)) for name in ATTRIBUTES]
    if lease.created_if_missing:
        columns.append(Column(CREATED_IF_MISSING, True))
    if lease.takes_released:
        columns.append(Column(TAKES_RELEASED, lease.owner))
    return encode_row(lease_key(lease.stream_id, lease.shard_id), columns)


def decode_lease(row: DecodedRow) -> Lease | HalfLease:
    """The lease of a row; attributes of other names are ignored.

    Raises:
        CodecError: the key is not that of a lease, or an attribute has another type.
    """
    stream_id, shard_id = _decode_key(row.primary_key)
    values: dict[str, Value | None] = {}
    written: dict[str, int | None] = {}
    for column in row.columns:
        values.setdefault(column.name, column.value)  # the newest version comes first
        written.setdefault(column.name, column.timestamp_ms)
    missing = tuple(name for name in ATTRIBUTES if values.get(name) is None)
    if missing:
        return HalfLease(stream_id, shard_id, missing)
    counter = values[COUNTER]
    # A boolean is an int in Python, not in the table.
    if not isinstance(counter, int) or isinstance(counter, bool):
        raise _wrong_type(shard_id, COUNTER, counter, "an integer")
    if not 0 <= counter < LARGEST_COUNTER:
        raise CodecError(f"{COUNTER} of shard {shard_id!r}: found {counter}, allowed is 0 to {LARGEST_COUNTER - 1}")
    owner, stealer, checkpoint, parents = (_text(shard_id, name, values[name]) for name in ATTRIBUTES[1:])
    of_shard = frozenset(map(ShardId, filter(None, parents.split(_PARENT_END))))
    if shard_id in of_shard:
        raise CodecError(f"{PARENTS} of shard {shard_id!r}: found the shard itself, none is its own ancestor")
    return Lease(
        stream_id,
        shard_id,
        counter,
        WorkerId(owner),
        WorkerId(stealer),
        Position(checkpoint),
        of_shard,
        written[PARENTS],  # once, with the row
        written[OWNER],
        values.get(CREATED_IF_MISSING) is True,
        bool(owner) and values.get(TAKES_RELEASED) == owner,
    )


def _key(stream_id: str, value: KeyValue) -> PrimaryKey:
    return (STREAM_ID, stream_id), (STATUS_TYPE, LEASE_KEY), (STATUS_VALUE, value)


def _decode_key(key: PrimaryKey) -> tuple[str, ShardId]:
    if tuple(name for name, _ in key) == KEY_NAMES:
        stream_id, kind, shard_id = (value for _, value in key)
        if isinstance(stream_id, str) and kind == LEASE_KEY and isinstance(shard_id, str):
            return stream_id, ShardId(shard_id)
    names = ", ".join(f"{name} of type {type(value).__name__}" for name, value in key)
    raise CodecError(f"key of a lease: found {names}, allowed are {', '.join(KEY_NAMES)} of type str and {LEASE_KEY}")


def _join_parents(lease: Lease) -> str:
    for parent in lease.parents:
        if _PARENT_END in parent:
            raise CodecError(f"{PARENTS} of shard {lease.shard_id!r}: found {parent!r}, no line feed is allowed in it")
    return "".join(f"{parent}{_PARENT_END}" for parent in sorted(lease.parents))


def _text(shard_id: ShardId, name: str, value: object) -> str:
    if not isinstance(value, str):
        raise _wrong_type(shard_id, name, value, "text")
    return value


def _wrong_type(shard_id: ShardId, name: str, value: object, allowed: str) -> CodecError:
    return CodecError(f"{name} of shard {shard_id!r}: found {type(value).__name__}, allowed is {allowed}")
