"""The tables of one instance as the database holds them: places of rows, partitions and their trimmed entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ots_emulator.durable.database import Batch, Storage, place_of
from ots_emulator.durable.dirty import Dirty
from ots_emulator.durable.stored_documents import StoredDocuments
from ots_emulator.tables.keys import Key
from ots_emulator.tables.partition import Partition
from ots_emulator.tables.table import Table


@dataclass(slots=True)
class RowPlaces:
    """Places of the rows of a table; a new row is appended."""

    taken: dict[Key, int]
    next: int

    def take(self, key: Key) -> int:
        """Return the place of a row."""
        place = self.taken.get(key)
        if place is None:
            place = self.taken[key] = self.next
            self.next += 1
        return place


class StoredTables:
    """Compares tables with their stored form.

    Args:
        storage: sweeps deleted rows and entries away.
        documents: the documents of the instance.
        owner: number of the instance's document.
    """

    def __init__(self, storage: Storage, documents: StoredDocuments, owner: int) -> None:
        self._storage = storage
        self._documents = documents
        self._owner = owner
        self._places: dict[Table, RowPlaces] = {}
        #: Stored partitions of each table, with the first stored position of each.
        self._partitions: dict[Table, dict[Partition, int]] = {}

    def adopt(self, table: Table, number: int, places: dict[Key, int], partitions: Mapping[Partition, int]) -> None:
        """Take over a table that was read: its number, the places of its rows, the numbers of its partitions."""
        self._documents.adopt(table, number)
        self._places[table] = RowPlaces(places, max(places.values(), default=place_of(number, 0) - 1) + 1)
        for partition, partition_number in partitions.items():
            self._documents.adopt(partition, partition_number)
        self._partitions[table] = {partition: partition.base for partition in partitions}

    def add_changes(self, tables: Mapping[str, Table], dirty: Dirty, batch: Batch) -> None:
        """Write the tables, partitions, rows and entries that differ from what is stored."""
        dirty.tables.update(dirty.rows)
        if dirty.tables or dirty.logs or len(self._partitions) != len(tables):
            self._add_tables(tables, dirty, batch)
        self._add_rows(tables, dirty, batch)
        self._add_entries(dirty, batch)

    def _add_tables(self, tables: Mapping[str, Table], dirty: Dirty, batch: Batch) -> None:
        for gone in self._partitions.keys() - set(tables.values()):
            self._remove_partitions(self._partitions.pop(gone), batch)
            self._storage.forget_rows(self._documents.remove(gone, batch))
            del self._places[gone]
        for table in tables.values():
            if table.name in dirty.tables or table not in self._partitions or _log_changed(table, dirty):
                self._add_table(table, dirty, batch)

    def _add_table(self, table: Table, dirty: Dirty, batch: Batch) -> None:
        documents, schema = self._documents, table.schema
        # Entries show how far the log's time has come; where they are removed, the table's document has to.
        is_written = documents.save(table, self._owner, schema, batch, force=_log_changed(table, dirty))
        if not (is_written or dirty.everything):
            return
        number = documents.number(table)
        if table not in self._places:
            self._places[table] = RowPlaces({}, place_of(number, 0))
        stored = self._partitions.get(table, {})
        current = () if table.log is None else tuple(table.log.partitions.values())
        self._remove_partitions(stored.keys() - set(current), batch)
        for partition in current:
            documents.save(partition, number, schema, batch)
            base = stored.get(partition, 0)
            if partition.base > base:
                self._storage.forget_entries(documents.number(partition), base, partition.base - 1)
        self._partitions[table] = {partition: partition.base for partition in current}

    def _remove_partitions(self, partitions: Iterable[Partition], batch: Batch) -> None:
        for partition in partitions:
            self._storage.forget_entries(self._documents.remove(partition, batch))

    def _add_rows(self, tables: Mapping[str, Table], dirty: Dirty, batch: Batch) -> None:
        for name, rows in dirty.rows.items():
            table = tables.get(name)
            if table is None:
                continue
            places = self._places[table]
            for key, (image, versioned) in rows.items():
                if image is not None:
                    batch.rows.append((places.take(key), image, versioned))
                elif key in places.taken:
                    batch.gone_rows.append((places.taken.pop(key),))

    def _add_entries(self, dirty: Dirty, batch: Batch) -> None:
        for partition, entries in dirty.entries.items():
            if partition in self._documents:
                place = place_of(self._documents.number(partition), partition.end - len(entries))
                batch.entries += [(place + index, *entry) for index, entry in enumerate(entries)]


def _log_changed(table: Table, dirty: Dirty) -> bool:
    return table.log is not None and table.log.stream_id in dirty.logs
