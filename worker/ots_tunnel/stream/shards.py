"""Values of the Stream API (docs/data-plane.md 2.8)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NewType

from ots_tunnel.protocol.record import Record

ShardId = NewType("ShardId", str)
#: Opaque position in a shard; valid as long as the stream keeps what follows it. It is stored as it came.
ShardIterator = NewType("ShardIterator", str)


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """The stream of a table; a stream that is switched off and on again has another id."""

    stream_id: str
    table: str
    created_us: int


@dataclass(frozen=True, slots=True)
class Shard:
    """A partition of a table for some time: after a split it has one parent, after a merge two, at first none."""

    shard_id: ShardId
    parents: frozenset[ShardId] = frozenset()


@dataclass(frozen=True, slots=True)
class StreamShards:
    """Every shard that a stream keeps, in the service's order.

    Args:
        retention: seconds for which the stream keeps a record.
        service_time: the service's clock at the answer, Unix seconds; None if unknown.
    """

    shards: tuple[Shard, ...]
    retention: float
    service_time: float | None


@dataclass(frozen=True, slots=True)
class ShardPage:
    """Records of one shard in commit order.

    Args:
        next_iterator: where the next read starts; None where the shard is closed and read to its end.
        may_more: whether the service announces more records; None if it does not say.
        size_bytes: of the whole answer.
        service_time: the service's clock at the answer, Unix seconds; None if unknown.
    """

    records: list[Record] = field(repr=False)
    next_iterator: ShardIterator | None = field(repr=False)
    may_more: bool | None
    size_bytes: int
    service_time: float | None

    @property
    def is_last(self) -> bool:
        """Whether the shard has no record after this page, and never will have."""
        return self.next_iterator is None
