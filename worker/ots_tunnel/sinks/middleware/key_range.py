"""A range of keys as a filter; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from ots_tunnel.config import BytesValue, KeyRangeConfig
from ots_tunnel.errors import SinkRejected
from ots_tunnel.model import KeyValue, PrimaryKey, key_type_name
from ots_tunnel.protocol.key_order import Order, key_order, value_order

Bound = tuple[KeyValue, ...]


@dataclass(frozen=True, slots=True)
class KeyBounds:
    """Rows from `begin` up to, but without, `end`; each bound holds values of the first key columns, or none."""

    begin: Bound = ()
    end: Bound = ()

    @classmethod
    def of(cls, config: KeyRangeConfig) -> Self:
        """The bounds that a document gives."""
        return cls(_plain(config.begin), _plain(config.end))

    def holds(self, primary_key: PrimaryKey) -> bool:
        """Whether a row lies inside the bounds.

        Raises:
            SinkRejected: a bound has another type than its key column, or more values than the key has columns.
        """
        if self.begin:
            begin = _order(self.begin, primary_key, "begin")
            if _first(primary_key, begin) < begin:
                return False
        if self.end:
            end = _order(self.end, primary_key, "end")
            return _first(primary_key, end) < end
        return True


def _plain(bound: Sequence[int | str | BytesValue]) -> Bound:
    return tuple(value.value if isinstance(value, BytesValue) else value for value in bound)


def _first(primary_key: PrimaryKey, bound: Order) -> Order:
    """The key as far as the bound goes: where both are equal, what lies behind places the key at or above the bound."""
    return key_order(primary_key[: len(bound)])


def _order(bound: Bound, primary_key: PrimaryKey, name: str) -> Order:
    where = f"delivery.filter.keyRange.{name}"
    if len(bound) > len(primary_key):
        raise SinkRejected("KeyRange", f"{where}: found {len(bound)} values, the key has {len(primary_key)} columns")
    for value, (column, stored) in zip(bound, primary_key, strict=False):
        if type(value) is not type(stored):
            found, needed = key_type_name(value), key_type_name(stored)
            raise SinkRejected("KeyRange", f"{where}: key column {column!r} is of type {needed}, found {found}")
    return tuple(map(value_order, bound))
