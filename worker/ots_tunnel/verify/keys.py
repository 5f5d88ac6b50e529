"""Keys of rows: their order, and the range that holds a single one; pure (docs/data-plane.md 2.6)."""

from __future__ import annotations

from ots_tunnel.client.table_calls import KeyRange
from ots_tunnel.errors import CodecError
from ots_tunnel.model import KeyValue, Marker, PrimaryKey
from ots_tunnel.protocol.plainbuffer.codec import decode_key_cells

#: Bytes a text or binary key column may hold (docs/data-plane.md 2.4); a bound cannot be longer either.
LONGEST_KEY_VALUE = 1024

_INTEGER_MAX = (1 << 63) - 1


def order(key: bytes) -> tuple[int | bytes, ...]:
    """What sorts key cells as the service does: integers by value, strings and binaries by bytes."""
    return tuple(_sortable(value) for _, value in decode_key_cells(key))


def _sortable(value: KeyValue) -> int | bytes:
    match value:
        case int():
            return value
        case str():
            return value.encode()
        case bytes():
            return value
        case Marker():
            raise CodecError(f"a stored key holds {value.name}")


def span(first: PrimaryKey, last: PrimaryKey) -> KeyRange:
    """The range from one stored key to another, both inside it.

    It may hold more where a bound right behind `last` cannot be written.
    """
    name, value = last[-1]
    return KeyRange(first, (*last[:-1], (name, _following(value))))


def _following(value: KeyValue) -> KeyValue:
    """The least value above a stored one; INF_MAX where that cannot be written."""
    match value:
        case int() if value < _INTEGER_MAX:
            return value + 1
        case str() if len(value.encode()) < LONGEST_KEY_VALUE:
            return value + "\0"
        case bytes() if len(value) < LONGEST_KEY_VALUE:
            return value + b"\0"
        case _:
            return Marker.INF_MAX
