"""The schema of a query beside the table: keys by their exact names and types. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from difflib import get_close_matches

from ots_tunnel.client.table_calls import TableDescription
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import KeyType

#: Names and types, each type one of `ddl.TYPES`.
Columns = Sequence[tuple[str, str]]

KEY_TYPES = {KeyType.INTEGER: "bigint", KeyType.STRING: "string", KeyType.BINARY: "binary"}
#: Types of defined columns by the service's names.
DEFINED_TYPES = {"INTEGER": "bigint", "DOUBLE": "double", "BOOLEAN": "boolean", "STRING": "string", "BLOB": "binary"}
#: From here on two names count as alike (difflib's ratio); own choice: one letter of five more, less or another.
_ALIKE = 0.8


def key_columns(table: TableDescription) -> tuple[tuple[str, str], ...]:
    """The key in the table's order."""
    return tuple((column.name, KEY_TYPES[column.type]) for column in table.primary_key)


def check_keys(columns: Columns, table: TableDescription) -> None:
    """Refuse a key in another type or in other letters than the table's: each of its values would be NULL.

    Beside the key itself, the same name in other letters is an attribute of the table.

    Raises:
        ConfigError: names the column and the table's keys.
    """
    keys = dict(key_columns(table))
    absent = keys.keys() - {name for name, _ in columns}
    folded = {name.casefold(): name for name in keys if name in absent}
    for name, kind in columns:
        if name in keys:
            # also BIGINT as DOUBLE, which rounds beyond 2^53: two keys would become one
            if kind != keys[name]:
                raise ConfigError(f"column {name!r}: found type {kind}, {keys_of(table)}")
        elif name.casefold() in folded:
            raise ConfigError(
                f"column {name!r}: the key is named {folded[name.casefold()]!r}, {keys_of(table)}; "
                "an attribute of that name needs a schema with the key beside it"
            )


def check_misspelt(columns: Columns, table: TableDescription, seen: Callable[[], Collection[str]]) -> None:
    """Refuse a name that is almost that of a key which the schema does not have, if no sampled row has such a column.

    Args:
        seen: names of the columns of some rows; called only if there is such a name.

    Raises:
        ConfigError: names the column and the table's keys.
    """
    names = {name for name, _ in columns}
    known = names & {*dict(key_columns(table)), *dict(table.defined_columns)}
    absent = [name for name, _ in key_columns(table) if name not in names]
    for name in sorted(names - known):
        alike = get_close_matches(name, absent, n=1, cutoff=_ALIKE)
        if alike and name not in seen():
            raise ConfigError(
                f"column {name!r}: no sampled row has it, and it is almost the key {alike[0]!r}: "
                f"correct it, or name the key as well; {keys_of(table)}"
            )


def keys_of(table: TableDescription) -> str:
    """The table's key for a message."""
    keys = ", ".join(f"{name} {kind.upper()}" for name, kind in key_columns(table))
    return f"table {table.name!r} has the keys {keys}"
