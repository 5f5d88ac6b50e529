"""Conditions on key columns as sets of key values: of the option `where`, and of Spark's filters. Pure.

A condition is understood when its column is a key and its values have the key's own type. Comparisons with NULL are
never true, and a key is never NULL. Filters of Spark that are not understood are left to it, as are those of columns
that the ranges of `key_ranges` cannot express. They are told apart by the names of their classes, since PySpark has
them from 4.1 on only; conditions of `where` have the same names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ots_tunnel.errors import ConfigError
from ots_tunnel.model import KeyColumn, KeyType, KeyValue
from ots_tunnel.spark.reader.key_ranges import (
    ALL,
    MAX_RANGES,
    MAX_VALUE_BYTES,
    Cut,
    Interval,
    KeyBounds,
    Values,
    intersection,
    key_ranges,
    sorted_singles,
    used_columns,
)

_TYPES: dict[KeyType, type] = {KeyType.INTEGER: int, KeyType.STRING: str, KeyType.BINARY: bytes}


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition: `operator` is the name of a filter of PySpark, `value` is a tuple for `In`."""

    name: str
    operator: str
    value: Any = None


def selected(conditions: Iterable[Condition], key: Sequence[KeyColumn]) -> list[KeyBounds]:
    """The ranges of keys for which every condition holds.

    Raises:
        ConfigError: a column is no key, a value has another type, or ranges cannot express it; names the column.
    """
    types = {column.name: column.type for column in key}
    sets: dict[str, Values] = {}
    for each in conditions:
        if each.name not in types:
            raise ConfigError(f"option 'where': found column {each.name!r}, allowed are the keys {', '.join(types)}")
        values = values_of(each, types[each.name])
        if values is None:
            kind = types[each.name].name
            raise ConfigError(f"option 'where': column {each.name!r}: found a value that is no {kind} of a key")
        sets[each.name] = intersection(sets.get(each.name, ALL), values)
    used = list(types)[: used_columns(list(types), sets)]
    late = [name for name, values in sets.items() if name not in used and list(values) != list(ALL)]
    if late:
        raise ConfigError(
            f"option 'where': column {late[0]!r}: allowed are single values of every key before it, at most "
            f"{MAX_RANGES} combinations"
        )
    return key_ranges(list(types), sets)


def push(filters: Iterable[Any], key: Sequence[KeyColumn], schema: Sequence[str]) -> tuple[list[Any], list[KeyBounds]]:
    """The filters that are left to Spark, in their order, and the ranges of keys that express the others.

    Args:
        filters: all of them hold for a row that the query wants.
        schema: names of the query's columns.
    """
    filters = list(filters)
    names = [column.name for column in key]
    types = {column.name: column.type for column in key if column.name in schema}
    understood = {index: each for index, one in enumerate(filters) if (each := _understood(one, types)) is not None}
    sets: dict[str, Values] = {}
    for name, values in understood.values():
        sets[name] = intersection(sets.get(name, ALL), values)
    ranges = key_ranges(names, sets)
    # no range at all expresses every filter; what says nothing, such as IS NOT NULL, is expressed everywhere
    used = names[: used_columns(names, sets)] if ranges else names
    pushed = {index for index, (name, values) in understood.items() if name in used or values == ALL}
    return [one for index, one in enumerate(filters) if index not in pushed], ranges


def values_of(condition: Condition, kind: KeyType) -> Values | None:
    """The values of a key column for which a condition is true; None if it is not understood."""
    value = condition.value
    match condition.operator:
        case "IsNull":
            return ()
        case "IsNotNull":
            return ALL
        case "In":
            values = [_key_value(one, kind) for one in value if one is not None]
            return None if None in values else sorted_singles(one for one in values if one is not None)
        case "EqualTo" | "EqualNullSafe" | "GreaterThan" | "GreaterThanOrEqual" | "LessThan" | "LessThanOrEqual":
            if value is None:
                return ()
            found = _key_value(value, kind)
            return None if found is None else [_compared(condition.operator, found)]
        case "StringStartsWith":
            found = _key_value(value, kind) if kind is KeyType.STRING else None
            return None if found is None else _starting_with(str(found))
        case _:
            return None


def _understood(one: Any, types: Mapping[str, KeyType]) -> tuple[str, Values] | None:
    path: tuple[str, ...] = getattr(one, "attribute", ())
    if len(path) != 1 or path[0] not in types:
        return None
    condition = Condition(path[0], type(one).__name__, getattr(one, "value", None))
    values = values_of(condition, types[path[0]])
    return None if values is None else (path[0], values)


def _compared(operator: str, value: KeyValue) -> Interval:
    match operator:
        case "GreaterThan":
            return Interval(low=Cut(value, behind=True))
        case "GreaterThanOrEqual":
            return Interval(low=Cut(value))
        case "LessThan":
            return Interval(high=Cut(value))
        case "LessThanOrEqual":
            return Interval(high=Cut(value, behind=True))
        case _:
            return Interval(Cut(value), Cut(value, behind=True))


def _starting_with(prefix: str) -> Values | None:
    """From the prefix on, up to its last character made one higher; None for a last character that has no next one."""
    if not prefix:
        return ALL
    following = ord(prefix[-1]) + 1
    # text ends at U+10FFFF and leaves out the surrogates
    if following > 0x10FFFF or 0xD800 <= following <= 0xDFFF:
        return None
    return [Interval(Cut(prefix), Cut(prefix[:-1] + chr(following)))]


def _key_value(value: Any, kind: KeyType) -> KeyValue | None:
    """The value if it has the type of the key and fits into a bound."""
    found: Any = bytes(value) if isinstance(value, bytearray) else value
    fits = type(found) is _TYPES[kind]
    if not fits:
        return None
    if isinstance(found, int):
        return found if -(2**63) <= found < 2**63 else None
    key_value: KeyValue = found
    size = len(found.encode()) if isinstance(found, str) else len(found)
    return key_value if size <= MAX_VALUE_BYTES else None
