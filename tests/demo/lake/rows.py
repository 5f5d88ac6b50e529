"""The rows of a mirror, as they are compared. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.demo.lake.comparison import Row

#: Columns that a mirror has besides attributes: values that no column tells, and the version of each value.
OTHERS, VERSIONS = "_others", "_versions"


def mirrored_row(found: dict[str, Any], key: Sequence[str]) -> Row:
    """Return the key, and value and version of each attribute, of a row of the table.

    Args:
        found: columns of the row.
        key: names of the key's columns.
    """
    row = dict(found)
    others, versions = row.pop(OTHERS), row.pop(VERSIONS)
    values_of_key = tuple(row.pop(name) for name in key)
    values = {name: value for name, value in row.items() if value is not None}
    values |= {name: next(one for one in value.values() if one is not None) for name, value in others.items()}
    return values_of_key, {name: (_plain(value), versions[name]) for name, value in values.items()}


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value
