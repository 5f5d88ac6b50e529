"""From a data directory back to instances, and journals that keep them from then on."""

from __future__ import annotations

import json
import sqlite3
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator

from ots_emulator.durable import documents
from ots_emulator.durable.database import Batch, Storage
from ots_emulator.durable.datadir import DataError
from ots_emulator.durable.recorder import Recorder
from ots_emulator.instance import Instance
from ots_emulator.refusal import Refusal
from ots_emulator.tables.changelog import ChangeLog
from ots_emulator.tables.keys import Key
from ots_emulator.tables.table import Table
from ots_emulator.tunnels.tunnel import Tunnel
from ots_tunnel.errors import CodecError

#: What reading a database meets that does not hold what was written.
_DAMAGE = (sqlite3.Error, struct.error, CodecError, Refusal, LookupError, TypeError, ValueError)


def restore(storage: Storage, instances: Iterable[Instance], now_us: int) -> None:
    """Fill empty instances with what is stored of them, and keep them from now on.

    What is stored of other instances stays as it is. What was deleted and not yet swept away is noted for it.

    Args:
        now_us: log entries that are beyond the retention by then are left out.

    Raises:
        DataError: the database is damaged, or cannot be written.
    """
    try:
        reader = _Reader(storage)
        for instance in instances:
            reader.restore(instance, now_us)
        reader.sweep()
    except _DAMAGE as error:
        text = f"data directory {storage.directory}: damaged: {type(error).__name__}: {error}"
        raise DataError(" ".join(text.split())) from error


class _Reader:
    """The documents of a database by kind and owner, and how instances are made of them."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._documents: defaultdict[tuple[str, int], list[tuple[int, documents.Document]]] = defaultdict(list)
        for number, kind, owner, body in storage.documents():
            self._documents[kind, owner].append((number, json.loads(body)))

    def restore(self, instance: Instance, now_us: int) -> None:
        recorder = self._recorder(instance)
        tables = {}
        for number, document in self._documents["table", recorder.number]:
            table = self._table(recorder, number, document, instance.settings.partition_rows)
            tables[table.name] = table
        instance.adopt(recorder, tables.values())
        for number, document in self._documents["tunnel", recorder.number]:
            tunnel = self._tunnel(recorder, number, document, tables[document["table_name"]])
            instance.tunnels[tunnel.id] = tunnel
        for table in tables.values():
            if table.log is not None:
                table.log.expire(now_us)
        recorder.commit()

    def _recorder(self, instance: Instance) -> Recorder:
        for number, document in self._documents["instance", 0]:
            if document["name"] == instance.name:
                instance.partition_aims.update(document["partition_aims"])
                return Recorder(instance, self._storage, number)
        number = self._storage.new_number()
        self._storage.commit(Batch(documents=[(number, *documents.instance_body(instance.name, {}))]))
        return Recorder(instance, self._storage, number)

    def _table(self, recorder: Recorder, number: int, document: documents.Document, partition_rows: int) -> Table:
        table = documents.table_of(document, partition_rows)
        schema = table.schema
        places = {}

        def rows() -> Iterator[tuple[Key, bytes, bool]]:
            for place, image, versioned in self._storage.rows(number):
                key = documents.key_of_image(schema, image)
                places[key] = place
                yield key, image, bool(versioned)

        table.load(rows())
        partitions = {}
        for part_number, part in self._documents["partition", number]:
            partition = documents.partition_of(part, schema)
            for timestamp_us, entry in self._storage.entries(part_number, partition.base):
                partition.append(timestamp_us, entry)
            partitions[partition] = part_number
        if document["log"] is not None:
            table.log = ChangeLog.loaded(partitions, **document["log"], journal=recorder)
        recorder.adopt_table(table, number, places)
        for partition, part_number in partitions.items():
            recorder.adopt_partition(table, partition, part_number)
        return table

    def _tunnel(self, recorder: Recorder, number: int, document: documents.Document, table: Table) -> Tunnel:
        tunnel = documents.tunnel_of(document)
        recorder.adopt_tunnel(tunnel, number)
        partitions = table.log.partitions if table.log is not None else {}
        for channel_number, channel_document in self._documents["channel", number]:
            channel = documents.channel_of(channel_document, table.schema, partitions)
            tunnel.add(channel)
            recorder.adopt_member(tunnel, channel, channel_number)
        for client_number, client_document in self._documents["client", number]:
            client = documents.client_of(client_document)
            tunnel.clients[client.id] = client
            recorder.adopt_member(tunnel, client, client_number)
        return tunnel

    def sweep(self) -> None:
        """Note rows and entries that belong to nothing any more, also in instances that are not served."""
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
