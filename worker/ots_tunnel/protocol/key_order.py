"""The order of a table's rows (docs/data-plane.md 2.6)."""

from __future__ import annotations

from ots_tunnel.model import KeyValue, Marker, PrimaryKey

#: Sorts like the keys it was made of, as far as these are of one table.
Order = tuple[tuple[int, int | bytes], ...]


def key_order(primary_key: PrimaryKey) -> Order:
    """What sorts keys, and bounds of ranges, as the service does: integers by value, text by its bytes."""
    return tuple(value_order(value) for _, value in primary_key)


def value_order(value: KeyValue) -> tuple[int, int | bytes]:
    """What sorts the values of one key column.

    Raises:
        ValueError: an AUTO_INCREMENT has no place in any order.
    """
    match value:
        case Marker.INF_MIN:
            return (0, 0)
        case Marker.INF_MAX:
            return (2, 0)
        case int() | bytes():
            return (1, value)
        case str():
            return (1, value.encode())
        case Marker():
            raise ValueError(f"{value.name} has no place in the order of keys")
