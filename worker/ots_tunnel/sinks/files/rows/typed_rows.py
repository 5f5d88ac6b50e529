"""Changes as typed rows of Arrow: a column for each attribute that the document declares (docs/sinks.md).

action, channel, sequence, key      as in the change log (`arrow_rows`)
(one for each declared column)      the value that the record put; null where it put none
deleted   list of string            attributes of which the record deleted all versions
others    map of string to value    values of attributes without a column; not with unknownColumns: Error
version   int64                     version of the values, milliseconds
versions  map of string to int64    versions of those values that have another one
cells     as in the change log      cells that no other column tells (`typed_cells`); usually empty
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import pyarrow as pa

from ots_tunnel.errors import CodecError
from ots_tunnel.model import ChannelId, PrimaryKey, Value
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.files.rows.arrow_rows import CELL, VALUE, VALUE_TYPES, ArrowRows, schema_of, value_array
from ots_tunnel.sinks.files.rows.declared import UNKNOWN_TEXT, Declared, as_declared, misfit_text
from ots_tunnel.sinks.files.rows.typed_cells import told, versions_of

NAMES = pa.list_(pa.string())
OTHERS = pa.map_(pa.string(), VALUE)
VERSIONS = pa.map_(pa.string(), pa.int64())
ARROW_TYPES: Mapping[str, pa.DataType] = dict(VALUE_TYPES.values())


def typed_schema(primary_key: PrimaryKey, declared: Declared) -> pa.Schema:
    """The schema of a table's typed changes, from any of its keys.

    Raises:
        CodecError: a key holds a value that a stored key cannot have.
    """
    change_log = schema_of(primary_key)
    head = [change_log.field(name) for name in ("action", "channel", "sequence", "key")]
    attributes = [pa.field(name, ARROW_TYPES[kind]) for name, kind in declared.types.items()]
    others = [pa.field("others", OTHERS)] if declared.keeps_unknown else []
    versions = [pa.field("version", pa.int64()), pa.field("versions", VERSIONS)]
    cells = pa.field("cells", pa.list_(CELL))
    return pa.schema([*head, *attributes, pa.field("deleted", NAMES), *others, *versions, cells])


@dataclass(slots=True)
class _Lists:
    """Entries of all rows, one after the other, and how many each row has."""

    names: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    def add(self, entries: Sequence[tuple[str, Any]]) -> None:
        """Append the entries of a row."""
        self.names.extend(name for name, _ in entries)
        self.values.extend(value for _, value in entries)
        self.counts.append(len(entries))

    @property
    def offsets(self) -> pa.Array:
        """Where each row's entries begin, and where the last one's end."""
        return pa.array(accumulate(self.counts, initial=0), pa.int32())


@dataclass(slots=True)
class TypedRows:
    """Rows of a group, column by column; `size` is the size of their records, bytes."""

    declared: Declared
    #: What the change log has as well: its cells are those that are left over.
    heads: ArrowRows = field(default_factory=ArrowRows)
    attributes: list[Mapping[str, Value]] = field(default_factory=list)
    deleted: _Lists = field(default_factory=_Lists)
    others: _Lists = field(default_factory=_Lists)
    version: list[int | None] = field(default_factory=list)
    versions: _Lists = field(default_factory=_Lists)

    @property
    def size(self) -> int:
        """Bytes of the records."""
        return self.heads.size

    def __bool__(self) -> bool:
        """Whether there is a row."""
        return bool(self.attributes)

    def add(self, record: Record, channel_id: ChannelId) -> None:
        """Append a record.

        Raises:
            CodecError: the record is malformed, or has a value that does not fit, which `refusals` lets no file have.
        """
        cells = record.decode_columns()
        unknown = None if self.declared.keeps_unknown else self.declared.unknown(cells)
        if unknown is not None:
            raise CodecError(f"column {unknown!r}: {UNKNOWN_TEXT}")
        deleted, values, rest = told(cells)
        version, versions = versions_of(values)
        attributes: dict[str, Value] = {}
        others: list[tuple[str, Value]] = []
        for name, cell in values.items():
            assert cell.value is not None
            kind = self.declared.types.get(name)
            if kind is None:
                others.append((name, cell.value))
                continue
            value = as_declared(kind, cell.value)
            if value is None:
                raise CodecError(f"column {name!r}: {misfit_text(kind, cell.value)}")
            attributes[name] = value
        self.heads.add_row(record, channel_id, rest)
        self.attributes.append(attributes)
        self.deleted.add([(name, None) for name in deleted])
        self.others.add(others)
        self.version.append(version)
        self.versions.add(versions)

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        """Return all rows as arrays.

        Args:
            schema: made by `typed_schema`, or `coded`.

        Raises:
            CodecError: a key has other columns than the schema.
        """
        arrays = self.heads.arrays(schema)
        for name, kind in self.declared.types.items():
            arrays[name] = pa.array([row.get(name) for row in self.attributes], ARROW_TYPES[kind])
        arrays["deleted"] = pa.ListArray.from_arrays(self.deleted.offsets, pa.array(self.deleted.names, pa.string()))
        arrays["others"] = _map_array(OTHERS, self.others, value_array(self.others.values))
        arrays["version"] = pa.array(self.version, pa.int64())
        arrays["versions"] = _map_array(VERSIONS, self.versions, pa.array(self.versions.values, pa.int64()))
        return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)


def _map_array(kind: pa.MapType, entries: _Lists, values: pa.Array) -> pa.Array:
    return pa.MapArray.from_arrays(entries.offsets, pa.array(entries.names, pa.string()), values, kind)
