"""Preconditions of a comparison, and notes about table options that cause differences. Pure.

Source: docs/architecture.md 4.3, 4.4 and 4.5.
"""

from __future__ import annotations

from ots_tunnel.client.table_calls import TableDescription
from ots_tunnel.endpoint import table_identity
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import KeyColumn
from ots_tunnel.verify.state_document import TablePlace


def refuse_same_table(source: TablePlace, destination: TablePlace) -> None:
    """Refuse to compare a table with itself, which is always equal.

    Raises:
        ConfigError: both places are the same table.
    """
    one, other = (table_identity(place.endpoint, place.instance, place.table) for place in (source, destination))
    if one == other:
        raise ConfigError(
            f"table: {destination.table!r} in instance {destination.instance!r} is the source itself, "
            "allowed is another table"
        )


def refuse_other_keys(source: TableDescription, destination: TableDescription) -> None:
    """Refuse tables whose rows cannot be matched by key; auto-increment does not matter.

    Raises:
        ConfigError: names, types or order of the key columns differ.
    """
    one, other = _keys(source.primary_key), _keys(destination.primary_key)
    if one != other:
        raise ConfigError(
            f"primary key: found {other} in table {destination.name!r}, needed {one}, as in table {source.name!r}"
        )


def _keys(columns: tuple[KeyColumn, ...]) -> str:
    return ", ".join(f"{column.name} {column.type.name}" for column in columns)


def warnings_of(source: TableDescription, destination: TableDescription) -> tuple[str, ...]:
    """Table options that make a complete copy differ, or that hide differences; one sentence each."""
    found = []
    if destination.max_versions < source.max_versions:
        found.append(
            f"max versions: {destination.max_versions} in the destination, {source.max_versions} in the source: "
            "missing versions count as differences"
        )
    if destination.max_versions > source.max_versions:
        found.append(
            f"max versions: {destination.max_versions} in the destination, {source.max_versions} in the source: "
            f"only the newest {source.max_versions} of each column are compared"
        )
    if source.time_to_live != destination.time_to_live:
        found.append(
            f"time to live seconds: {destination.time_to_live} in the destination, {source.time_to_live} in the "
            "source: cells older than the shorter one are left out"
        )
    return tuple(found)
