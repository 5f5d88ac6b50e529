"""Rows of Arrow batches as records of a write. Pure; runs on executors.

A put replaces the row; its cells that are NULL are not there. An update leaves columns that are NULL as they are. A
delete needs the key alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from ots_tunnel.model import Action, PrimaryKey
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.json_record import json_value
from ots_tunnel.sinks.key_text import primary_key_text
from ots_tunnel.spark.reader.option_values import END_OF_VERSIONS
from ots_tunnel.spark.writer.layout import Layout

if TYPE_CHECKING:
    import pyarrow as pa

ACTIONS: Final = {"put": Action.PUT, "update": Action.UPDATE, "delete": Action.DELETE}

#: Called with a code, a text and the values of a row that is no change of a table; what comes back is that the row is
#: left out.
OnBadRow = Callable[[str, str, Mapping[str, Any]], None]


def records_of(batch: pa.RecordBatch, layout: Layout, on_bad_row: OnBadRow) -> Iterator[Record]:
    """One record for each row, in their order.

    Args:
        on_bad_row: called for a row with NULL in its key, another action than `ACTIONS`, or a version that no cell can
            have; may raise.
    """
    values = {name: batch.column(name).to_pylist() for name in batch.schema.names}
    nothing = [None] * batch.num_rows
    actions = values[layout.action] if layout.action else ["put"] * batch.num_rows
    versions = values[layout.version] if layout.version else nothing
    cells = [(name, values[name]) for name in layout.cells]
    for place in range(batch.num_rows):
        key = tuple((name, values[name][place]) for name in layout.key)
        problem = _problem(key, actions[place], versions[place])
        if problem is not None:
            on_bad_row(*problem, {name: column[place] for name, column in values.items()})
            continue
        action, version = ACTIONS[actions[place].lower()], versions[place]
        if action is Action.DELETE:
            yield Record(action, encode_row(key, (), delete=True))
            continue
        found = ((name, column[place]) for name, column in cells)
        columns = [Column(name, value, version) for name, value in found if value is not None]
        yield Record(action, encode_row(key, columns))


def bad_row_form(values: Mapping[str, Any], layout: Layout) -> dict[str, Any]:
    """A row that is no change of a table, in the JSON form of a record: what it has, whether allowed or not."""
    version = values[layout.version] if layout.version else None
    columns = [
        {"name": name, "op": "PUT", "value": json_value(values[name])}
        | ({} if version is None else {"version": version})
        for name in layout.cells
        if values[name] is not None
    ]
    return {
        "action": values[layout.action] if layout.action else Action.PUT.name,
        "key": {name: json_value(values[name]) for name in layout.key},
        "columns": columns,
    }


def _problem(key: tuple[tuple[str, Any], ...], action: Any, version: int | None) -> tuple[str, str] | None:
    """Code and text of what is wrong with a row; None where nothing is."""
    empty = [name for name, value in key if value is None]
    if empty:
        present: PrimaryKey = tuple((name, value) for name, value in key if value is not None)
        where = f" in the row {primary_key_text(present)}" if present else ""
        return "NullKey", f"column {empty[0]!r}: found NULL{where}, allowed are values: it is a column of the key"
    if not isinstance(action, str) or action.lower() not in ACTIONS:
        found = "NULL" if action is None else repr(action[:40])
        return "WrongAction", f"action {found} of the row {primary_key_text(key)}: allowed are put, update and delete"
    if version is not None and not 0 <= version < END_OF_VERSIONS:
        return (
            "WrongVersion",
            f"version {version} of the row {primary_key_text(key)}: allowed are milliseconds since 1970",
        )
    return None
