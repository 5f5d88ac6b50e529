"""The order of a table's rows (docs/data-plane.md 2.6)."""

from __future__ import annotations

from ots_tunnel.model import KeyValue, Marker, PrimaryKey

#: Sorts as the keys of one table do.
Order = tuple[tuple[int, int | bytes], ...]


def key_order(primary_key: PrimaryKey) -> Order:
    """Sort key for primary keys and range bounds, in the service's order: integers by value, text by its bytes."""
    return tuple(value_order(value) for _, value in primary_key)


def value_order(value: KeyValue) -> tuple[int, int | bytes]:
    """Sort key for the values of one key column.

    Raises:
        ValueError: the value is AUTO_INCREMENT, which has no order.
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
        case Marker():  # pragma: no branch - there is no other value of a key
            raise ValueError(f"{value.name} has no place in the order of keys")
