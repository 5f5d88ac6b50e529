"""Sets of key values as intervals, and the key ranges that they make. Pure.

Theory of operation
-------------------

A cut is a place between values: right before a value, right behind it, or at an end. An interval goes from one cut to a
later one, and a set of values is a sorted list of disjoint intervals. A single value is the interval from right before
it to right behind it. Filters are such sets, and several filters of one column are their intersection.

The rows of a table are ordered by the first column of the key, then by the second, and so on. So sets of the columns
give ranges of keys while every column but the last one in use has single values only:

    k1 in {3, 7}, k2 >= 'b'      [(3, 'b'), (3, end)) and [(7, 'b'), (7, end))
    k1 >= 3, k2 = 'b'            [(3), (end)); k2 is not used, Spark filters it

A cut behind a value has the key (value, INF_MAX) where more columns follow. In the last column it is the next value:
one more for an integer, a zero byte more for text and binaries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ots_tunnel.model import KeyValue, Marker, PrimaryKey
from ots_tunnel.protocol.key_order import key_order, value_order

#: Most ranges of one query; each is at least one call. Own choice.
MAX_RANGES: Final = 1_000
#: Bytes that a text or binary of a key may have (docs/data-plane.md 2.2); one byte less leaves room for the next value.
MAX_VALUE_BYTES: Final = 1_023
_MAX_INTEGER: Final = 2**63 - 1

#: A place in the order of values: that of the value, and 0 before it or 1 behind it.
Place = tuple[tuple[int, int | bytes], int]
KeyBounds = tuple[PrimaryKey, PrimaryKey]


@dataclass(frozen=True, slots=True)
class Cut:
    """A place between the values of one key column."""

    value: KeyValue
    behind: bool = False

    @property
    def place(self) -> Place:
        """Sorts as the cuts of one column do."""
        return value_order(self.value), int(self.behind)


LOWEST, HIGHEST = Cut(Marker.INF_MIN), Cut(Marker.INF_MAX)


@dataclass(frozen=True, slots=True)
class Interval:
    """The values between two cuts."""

    low: Cut = LOWEST
    high: Cut = HIGHEST

    @property
    def is_value(self) -> bool:
        """Whether it is a single value."""
        low, high = self.low, self.high
        return low.value == high.value and (low.behind, high.behind) == (False, True)


ALL: Final = (Interval(),)
Values = Sequence[Interval]


def single(value: KeyValue) -> Interval:
    """The interval of one value."""
    return Interval(Cut(value), Cut(value, behind=True))


def sorted_singles(values: Iterable[KeyValue]) -> list[Interval]:
    """The set of some values."""
    return [single(value) for value in sorted(set(values), key=value_order)]


def intersection(one: Values, other: Values) -> list[Interval]:
    """The values in both sets."""
    both, first, second = [], 0, 0
    while first < len(one) and second < len(other):
        a, b = one[first], other[second]
        low = max(a.low, b.low, key=lambda cut: cut.place)
        high = min(a.high, b.high, key=lambda cut: cut.place)
        if low.place < high.place:
            both.append(Interval(low, high))
        if a.high.place < b.high.place:
            first += 1
        else:
            second += 1
    return both


def used_columns(names: Sequence[str], values: dict[str, Values]) -> int:
    """How many columns of the key, from the first on, the ranges express exactly."""
    count, used = 1, 0
    for name in names:
        if name not in values:
            return used
        count *= len(values[name])
        if count > MAX_RANGES:
            return used
        used += 1
        if not all(interval.is_value for interval in values[name]):
            return used
    return used


def key_ranges(names: Sequence[str], values: dict[str, Values]) -> list[KeyBounds]:
    """Ranges of keys, in order and disjoint, start inclusive and end exclusive, for the columns of `used_columns`.

    None is from a key to itself, as between 5 and 6: the service refuses it.
    """
    if any(not each for each in values.values()):
        return []
    used = [values[name] for name in names[: used_columns(names, values)]]
    if not used:
        return [(_bound(names, ()), _bound(names, (), Marker.INF_MAX))]
    return [(low, high) for low, high in _ranges(names, (), used) if low != high]


def within(ranges: Iterable[KeyBounds], start: PrimaryKey, end: PrimaryKey) -> list[KeyBounds]:
    """The parts of ranges that lie in one range."""
    parts = []
    for low, high in ranges:
        first, last = max(low, start, key=key_order), min(high, end, key=key_order)
        if key_order(first) < key_order(last):
            parts.append((first, last))
    return parts


def _ranges(names: Sequence[str], prefix: tuple[KeyValue, ...], values: Sequence[Values]) -> Iterator[KeyBounds]:
    for interval in values[0]:
        if len(values) > 1:
            yield from _ranges(names, (*prefix, interval.low.value), values[1:])
        else:
            yield _key_at(names, prefix, interval.low), _key_at(names, prefix, interval.high)


def _key_at(names: Sequence[str], prefix: tuple[KeyValue, ...], cut: Cut) -> PrimaryKey:
    if not cut.behind:
        return _bound(names, (*prefix, cut.value), Marker.INF_MAX if cut is HIGHEST else Marker.INF_MIN)
    if len(prefix) + 1 < len(names):
        return _bound(names, (*prefix, cut.value), Marker.INF_MAX)
    return _bound(names, (*prefix, _next(cut.value)))


def _next(value: Any) -> KeyValue:
    if isinstance(value, int):
        return Marker.INF_MAX if value == _MAX_INTEGER else value + 1
    following: KeyValue = value + ("\0" if isinstance(value, str) else b"\0")
    return following


def _bound(names: Sequence[str], values: tuple[KeyValue, ...], rest: Marker = Marker.INF_MIN) -> PrimaryKey:
    filled = (*values, *[rest] * (len(names) - len(values)))
    return tuple(zip(names, filled, strict=True))
