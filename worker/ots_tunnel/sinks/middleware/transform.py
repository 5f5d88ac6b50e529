"""A filter of records, which also leaves out or renames their columns; pure.

Cells pass through as bytes; only a renamed one is encoded again (docs/architecture.md rule 13).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from ots_tunnel.config import ColumnsConfig, DeliveryConfig, FilterConfig
from ots_tunnel.errors import SinkRejected
from ots_tunnel.model import Action, PrimaryKey, key_type_name
from ots_tunnel.protocol.plainbuffer.building import join_row, rename_cell
from ots_tunnel.protocol.plainbuffer.spans import CellSpan, scan_whole_row
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.middleware.key_range import KeyBounds


@dataclass(slots=True)
class Omitted:
    """Counts of what a transform has left out."""

    records: int = 0
    """Records that the filter rejects, and updates without a remaining cell."""
    cells: int = 0
    """Cells of excluded columns."""


@dataclass(frozen=True, slots=True)
class Transform:
    """Settings of a transform; names are UTF-8.

    Args:
        include: columns that are kept; None means all.
        exclude: columns that are left out.
        rename: name at the source to name at the sink.
        actions: kinds of change that pass.
        key_prefixes: key column to the text that its value has to begin with.
        key_bounds: range of keys that pass; None means all.
        taken: names that renamed columns get, and that no column may have which keeps its name.
    """

    include: frozenset[bytes] | None = None
    exclude: frozenset[bytes] = frozenset()
    rename: Mapping[bytes, bytes] = field(default_factory=dict)
    actions: frozenset[Action] = frozenset(Action)
    key_prefixes: Mapping[str, str] = field(default_factory=dict)
    key_bounds: KeyBounds | None = None
    taken: Mapping[bytes, bytes] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        taken = {new: name for name, new in self.rename.items() if new not in self.rename}
        object.__setattr__(self, "taken", taken)
        if self.key_bounds == KeyBounds():  # every key lies inside: none has to be read
            object.__setattr__(self, "key_bounds", None)

    @classmethod
    def of(cls, delivery: DeliveryConfig) -> Self | None:
        """The transform of a document; None where it changes nothing."""
        columns, filtered = delivery.columns or ColumnsConfig(), delivery.filter or FilterConfig()
        transform = cls(
            frozenset(name.encode() for name in columns.include) or None,
            frozenset(name.encode() for name in columns.exclude),
            {name.encode(): new.encode() for name, new in columns.rename.items()},
            frozenset(Action[name] for name in filtered.actions),
            dict(filtered.key_prefix),
            None if filtered.key_range is None else KeyBounds.of(filtered.key_range),
        )
        return None if transform == cls() else transform

    def apply(self, records: Iterable[Record], omitted: Omitted) -> list[Record]:
        """Return the records that pass, in their order, with the columns they keep.

        Raises:
            CodecError: a record is malformed.
            SinkRejected: a filter does not fit the table's key, or two columns would become one.
        """
        passed = []
        for record in records:
            changed = self._with_columns(record, omitted) if self._passes(record) else None
            if changed is None:
                omitted.records += 1
            else:
                passed.append(changed)
        return self.with_origins(passed)

    def with_origins(self, records: list[Record]) -> list[Record]:
        """The records, whose previous values are of the columns that reach the sink, by their names there.

        Raises:
            CodecError: the row of previous values is malformed.
        """
        if not self.changes_columns:
            return records
        return [record if record.origin is None else self._with_origin(record, record.origin) for record in records]

    def _passes(self, record: Record) -> bool:
        if record.action not in self.actions:
            return False
        if self.key_bounds is not None and not self.key_bounds.holds(record.primary_key):
            return False
        if not self.key_prefixes:
            return True
        return _begins(record.primary_key, self.key_prefixes)

    def _with_columns(self, record: Record, omitted: Omitted) -> Record | None:
        if record.action is Action.DELETE or not self.changes_columns:
            return record
        span = scan_whole_row(record.body)  # what is joined gets checksums anew, and nothing that is behind a row
        kept = [cell for cell in span.cells if self.keeps(cell.name)]
        omitted.cells += len(span.cells) - len(kept)
        if record.action is Action.UPDATE and span.cells and not kept:
            return None
        self._check_names(kept)
        if len(kept) == len(span.cells) and not any(cell.name in self.rename for cell in kept):
            return record
        cells = [self._renamed(cell) for cell in kept]
        body = join_row(span.key, span.key_checksums, cells, delete=span.delete_marker, sequence=span.sequence)
        return Record(record.action, body, record.origin)

    def _check_names(self, kept: Iterable[CellSpan]) -> None:
        """Refuse a column that has the new name of another one: one would overwrite the other.

        Both need not be in this record: updates of one column each, or rows with one of them, would mix them as well.
        """
        found = next((cell.name for cell in kept if cell.name in self.taken), None)
        if found is not None:
            name, new = self.taken[found].decode(), found.decode()
            raise SinkRejected(
                "ColumnName",
                f"delivery.columns.rename: a record has {new!r}, which is what {name!r} becomes: exclude or rename one "
                "of them",
            )

    def _with_origin(self, record: Record, origin: bytes) -> Record:
        span = scan_whole_row(origin)
        cells = [self._renamed(cell) for cell in span.cells if self.keeps(cell.name)]
        kept = join_row(span.key, span.key_checksums, cells, delete=span.delete_marker, sequence=span.sequence)
        return Record(record.action, record.body, kept)

    @property
    def changes_columns(self) -> bool:
        """Whether columns are left out or renamed."""
        return bool(self.include or self.exclude or self.rename)

    def keeps(self, name: bytes) -> bool:
        """Whether a column reaches the sink."""
        return name not in self.exclude and (self.include is None or name in self.include)

    def _renamed(self, cell: CellSpan) -> tuple[bytes, int]:
        name = self.rename.get(cell.name)
        return (cell.raw, cell.checksum) if name is None else rename_cell(cell, name)


def _begins(primary_key: PrimaryKey, prefixes: Mapping[str, str]) -> bool:
    key = dict(primary_key)
    for name in prefixes:
        # Every row of the table has the same key columns: with a wrong name or type no record would ever pass.
        if name not in key:
            raise SinkRejected(
                "KeyPrefix",
                f"delivery.filter.keyPrefix: found {name!r}, allowed are the key's columns {', '.join(key)}",
            )
        if not isinstance(key[name], str):
            kind = key_type_name(key[name])
            raise SinkRejected(
                "KeyPrefix", f"delivery.filter.keyPrefix: key column {name!r} is of type {kind}, allowed is STRING"
            )
    return all(str(key[name]).startswith(prefix) for name, prefix in prefixes.items())
