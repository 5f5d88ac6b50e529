"""Restoring instances from a data directory, each with the journal that stores its further changes."""

from __future__ import annotations

import json
import sqlite3
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Final

from ots_emulator.durable import DataError, documents
from ots_emulator.durable.checked import check_image, checked_entries
from ots_emulator.durable.database import Batch, Storage
from ots_emulator.durable.disk_journal import DiskJournal
from ots_emulator.durable.stored_tunnels import Member
from ots_emulator.instance import Instance
from ots_emulator.refusal import Refusal
from ots_emulator.tables.changelog import ChangeLog
from ots_emulator.tables.keys import Key
from ots_emulator.tables.table import Table
from ots_emulator.tunnels.tunnel import Tunnel
from ots_tunnel.errors import CodecError
from ots_tunnel.model import FINISHED

#: Owner of the documents of instances.
_NO_OWNER: Final = 0
#: Errors of reading a database that does not hold what was written.
_DAMAGE = (sqlite3.Error, struct.error, CodecError, Refusal, LookupError, TypeError, ValueError)


def restore(storage: Storage, instances: Iterable[Instance], now_us: int) -> None:
    """Load empty instances from the database and store their further changes.

    Documents of other instances stay unchanged. Deleted rows and entries that are still stored are removed later.

    Args:
        now_us: the service's time; log entries beyond the retention are not loaded.

    Raises:
        DataError: the database is damaged, or cannot be written.
    """
    try:
        reader = _Reader(storage)
        for instance in instances:
            reader.restore(instance, now_us)
        reader.sweep()
    except _DAMAGE as error:
        if isinstance(error.__cause__, DataError):
            # The journal refuses its caller where the directory cannot be written.
            raise error.__cause__ from error
        text = f"data directory {storage.directory}: damaged: {type(error).__name__}: {error}"
        raise DataError(" ".join(text.split())) from error


class _Reader:
    """The documents of a database by kind and owner, and the instances built from them."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._documents: defaultdict[tuple[str, int], list[tuple[int, documents.Document]]] = defaultdict(list)
        for number, kind, owner, body in storage.documents():
            self._documents[kind, owner].append((number, json.loads(body)))

    def restore(self, instance: Instance, now_us: int) -> None:
        journal = self._journal(instance)
        instance.journal = journal
        for number, document in self._documents["table", journal.number]:
            table = self._table(instance, journal, number, document)
            instance.tables[table.name] = table
        for number, document in self._documents["tunnel", journal.number]:
            tunnel = self._tunnel(journal, number, document, instance.tables[document["table_name"]])
            # The shift of a clock is not stored, so what happened may lie in the future.
            tunnel.clock_set_back(now_us / 1_000_000, instance.settings.init_delay)
            instance.tunnels[tunnel.id] = tunnel
        for table in instance.tables.values():
            if table.log is not None:
                table.log.expire(now_us)
        journal.commit()

    def _journal(self, instance: Instance) -> DiskJournal:
        for number, document in self._documents["instance", _NO_OWNER]:
            if document["name"] == instance.name:
                instance.partition_aims.update(document["partition_aims"])
                return DiskJournal(instance, self._storage, number)
        number = self._storage.new_number()
        self._storage.commit(Batch(documents=[(number, *documents.instance_body(instance.name, {}))]))
        return DiskJournal(instance, self._storage, number)

    def _table(self, instance: Instance, journal: DiskJournal, number: int, document: documents.Document) -> Table:
        table = documents.table_of(document, instance.settings.partition_rows, journal, instance.follow_children)
        places = self._load_rows(table, number)
        partitions = {}
        for partition_number, stored in self._documents["partition", number]:
            partition = documents.partition_of(stored, table.schema)
            # Closed here also where something is damaged: the database is closed before the error has gone.
            with closing(self._storage.entries(partition_number, partition.base)) as entries:
                for timestamp_us, entry in checked_entries(entries, partition.base):
                    partition.append(timestamp_us, entry)
            partitions[partition] = partition_number
        if document["log"] is not None:
            table.log = ChangeLog.loaded(partitions, **document["log"], listener=journal)
        journal.adopt_table(table, number, places, partitions)
        return table

    def _load_rows(self, table: Table, number: int) -> dict[Key, int]:
        """Fill a table and return the places of its rows."""
        places = {}

        def rows() -> Iterator[tuple[Key, bytes, bool]]:
            with closing(self._storage.rows(number)) as stored:
                for place, image, versioned in stored:
                    check_image(image)
                    key = documents.key_of_image(table.schema, image)
                    places[key] = place
                    yield key, image, bool(versioned)

        table.load(rows())
        return places

    def _tunnel(self, journal: DiskJournal, number: int, document: documents.Document, table: Table) -> Tunnel:
        tunnel = documents.tunnel_of(document)
        partitions = table.log.partitions if table.log is not None else {}
        members: dict[Member, int] = {}
        for channel_number, channel_document in self._documents["channel", number]:
            channel = documents.channel_of(channel_document, table.schema, partitions)
            tunnel.add(channel)
            members[channel] = channel_number
            # a channel that has ended is at its end time, which earlier releases did not compare with the clock
            if table.log is not None and channel.token != FINISHED:
                table.log.promise(channel.consume_point_ns // 1000)
        for client_number, client_document in self._documents["client", number]:
            client = documents.client_of(client_document)
            tunnel.clients[client.id] = client
            members[client] = client_number
        journal.adopt_tunnel(tunnel, number, members)
        return tunnel

    def sweep(self) -> None:
        """Schedule the removal of rows and entries without an owner, also of instances that are not served."""
        tables = {number for (kind, _), found in self._documents.items() if kind == "table" for number, _ in found}
        for table in self._storage.tables_with_rows():
            if table not in tables:
                self._storage.forget_rows(table)
        bases = {
            number: document["base"]
            for (kind, _), found in self._documents.items()
            if kind == "partition"
            for number, document in found
        }
        for partition, first in self._storage.partitions_with_entries():
            if partition not in bases:
                self._storage.forget_entries(partition)
            elif first < bases[partition]:
                self._storage.forget_entries(partition, first, bases[partition] - 1)
