"""The journal of an instance with a data directory: collects what a call changes, and commits it when the call ends.

Rows and entries are collected as they are told. Of tables, tunnels, channels and clients that somebody looked at, the
facts are compared with what is stored, and only what differs is written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ots_emulator.durable import documents
from ots_emulator.durable.database import Batch, Storage, place_of
from ots_emulator.durable.datadir import DataError
from ots_emulator.durable.documents import Kept
from ots_emulator.instance import Instance
from ots_emulator.refusal import Refusal
from ots_emulator.tables.changelog import ChangeLog, Partition
from ots_emulator.tables.keys import Key, KeySchema
from ots_emulator.tables.table import Table
from ots_emulator.tunnels.channel import Client, TunnelChannel
from ots_emulator.tunnels.tunnel import Tunnel


@dataclass(slots=True)
class Places:
    """Where the rows of a table are stored; a new one goes behind the last."""

    taken: dict[Key, int]
    next: int

    def take(self, key: Key) -> int:
        """Return the place of a row."""
        place = self.taken.get(key)
        if place is None:
            place = self.taken[key] = self.next
            self.next += 1
        return place


class Recorder:
    """Keeps one instance in a data directory.

    Args:
        instance: what is kept; `number` is that of its document.
        storage: where to.
    """

    def __init__(self, instance: Instance, storage: Storage, number: int) -> None:
        self._instance = instance
        self._storage = storage
        self.number = number
        #: What has a document, with its number and the facts that are in it.
        self._kept: dict[Kept, tuple[int, tuple[Any, ...]]] = {}
        #: What belongs to a table or tunnel, and goes with it.
        self._partitions: dict[Table, dict[Partition, int]] = {}
        self._places: dict[Table, Places] = {}
        self._members: dict[Tunnel, set[TunnelChannel | Client]] = {}
        self._aims = dict(instance.partition_aims)
        self._rows: dict[tuple[Table, Key], tuple[bytes | None, bool]] = {}
        self._entries: defaultdict[Partition, list[tuple[int, bytes]]] = defaultdict(list)
        self._logs: set[ChangeLog] = set()
        self._tables: set[Table] = set()
        self._tunnels: set[Tunnel] = set()
        self._channels: set[tuple[Tunnel, TunnelChannel]] = set()
        #: Whether partitions are compared even where nothing was heard of their log.
        self._thorough = False

    def __repr__(self) -> str:
        return f"Recorder({self._instance.name}, {len(self._kept)} documents)"

    # What it hears

    def row(self, table: Table, key: Key, image: bytes | None, *, versioned: bool = False) -> None:
        """Note a stored or removed row; the last one of a call counts."""
        self._rows[table, key] = image, versioned

    def entry(self, partition: Partition, timestamp_us: int, entry: bytes) -> None:
        """Note an entry."""
        self._entries[partition].append((timestamp_us, entry))

    def partitions(self, log: ChangeLog) -> None:
        """Note a log whose partitions changed."""
        self._logs.add(log)

    def table(self, table: Table) -> None:
        """Note a table to compare."""
        self._tables.add(table)

    def tunnel(self, tunnel: Tunnel) -> None:
        """Note a tunnel to compare."""
        self._tunnels.add(tunnel)

    def channel(self, tunnel: Tunnel, channel: TunnelChannel) -> None:
        """Note a channel to compare."""
        self._channels.add((tunnel, channel))

    def everything(self) -> None:
        """Note every table, log and tunnel."""
        self._thorough = True
        self._tables.update(self._instance.tables.values())
        self._tunnels.update(self._instance.tunnels.values())

    # What was there before it

    def adopt_table(self, table: Table, number: int, places: dict[Key, int]) -> None:
        """Take over a table that was read, and where its rows are; only what changes will be written."""
        self._kept[table] = number, documents.facts_of(table)
        self._places[table] = Places(places, max(places.values(), default=place_of(number, 0) - 1) + 1)
        self._partitions[table] = {}

    def adopt_partition(self, table: Table, partition: Partition, number: int) -> None:
        """Take over a partition that was read."""
        self._kept[partition] = number, documents.facts_of(partition)
        self._partitions[table][partition] = partition.base

    def adopt_tunnel(self, tunnel: Tunnel, number: int) -> None:
        """Take over a tunnel that was read."""
        self._kept[tunnel] = number, documents.facts_of(tunnel)
        self._members[tunnel] = set()

    def adopt_member(self, tunnel: Tunnel, member: TunnelChannel | Client, number: int) -> None:
        """Take over a channel or client that was read."""
        self._kept[member] = number, documents.facts_of(member)
        self._members[tunnel].add(member)

    # Committing

    def check(self) -> None:
        """Refuse a call that could not be kept.

        Raises:
            Refusal: OTSInternalServerError, an earlier commit failed.
        """
        if self._storage.failure is not None:
            raise _failed()

    def commit(self) -> None:
        """Keep what changed since the last commit, whole or not at all.

        Raises:
            Refusal: OTSInternalServerError, it could not be kept.
        """
        try:
            batch = self.changes()
            if batch or not self._storage.is_swept:
                self._storage.commit(batch)
        except DataError as error:
            raise _failed() from error
        except Exception as error:
            # What was compared counts as written, so a mistake here must not pass for a commit later.
            self._storage.fail(f"changes of instance {self._instance.name} cannot be put together: {error!r}")
            raise

    def changes(self) -> Batch:
        """Return what changed since the last time; from now on it counts as kept."""
        batch = Batch()
        instance = self._instance
        if self._aims != instance.partition_aims:
            self._aims = dict(instance.partition_aims)
            batch.documents.append((self.number, *documents.instance_body(instance.name, self._aims)))
        tables, tunnels = instance.tables.values(), instance.tunnels.values()
        self._tables.update(table for table, _ in self._rows)
        if self._tables or self._logs or len(self._partitions) != len(tables):
            self._compare_tables(batch)
        if self._tunnels or len(self._members) != len(tunnels):
            self._compare_tunnels(batch)
        for tunnel, channel in self._channels:
            if tunnel in self._members:
                self._compare_channel(tunnel, channel, batch)
        self._add_rows(batch)
        self._add_entries(batch)
        for marks in (self._tables, self._logs, self._tunnels, self._channels, self._rows, self._entries):
            marks.clear()
        self._thorough = False
        return batch

    def _add_rows(self, batch: Batch) -> None:
        for (table, key), (image, versioned) in self._rows.items():
            places = self._places.get(table)
            if places is None:
                continue
            if image is not None:
                batch.rows.append((places.take(key), image, versioned))
            elif key in places.taken:
                batch.gone_rows.append((places.taken.pop(key),))

    def _add_entries(self, batch: Batch) -> None:
        for partition, entries in self._entries.items():
            if partition in self._kept:
                place = place_of(self._kept[partition][0], partition.end - len(entries))
                batch.entries += [(place + index, *entry) for index, entry in enumerate(entries)]

    def _keep(self, kept: Kept, owner: int, schema: KeySchema, batch: Batch, *, force: bool = False) -> bool:
        number, stored = self._kept.get(kept) or (None, None)
        facts = documents.facts_of(kept)
        if facts == stored and not force:
            return False
        if number is None:
            number = self._storage.new_number()
        self._kept[kept] = number, facts
        batch.documents.append((number, *documents.kind_and_body(kept, schema, owner)))
        return True

    def _forget(self, kept: Kept, batch: Batch) -> int:
        number, _ = self._kept.pop(kept)
        batch.gone.append((number,))
        return number

    # Tables

    def _compare_tables(self, batch: Batch) -> None:
        current = self._instance.tables.values()
        for gone in self._partitions.keys() - set(current):
            self._forget_partitions(self._partitions.pop(gone), batch)
            self._storage.forget_rows(self._forget(gone, batch))
            del self._places[gone]
        for table in current:
            if table in self._tables or table not in self._partitions or table.log in self._logs:
                self._compare_table(table, batch)

    def _compare_table(self, table: Table, batch: Batch) -> None:
        log = table.log
        is_new = table not in self._places
        known = self._partitions.setdefault(table, {})
        # Entries tell how far the log's time has come; where they are forgotten, the table's document must.
        is_changed = self._keep(table, self.number, table.schema, batch, force=log in self._logs)
        if not (is_changed or self._thorough):
            return
        if is_new:
            self._places[table] = Places({}, place_of(self._kept[table][0], 0))
        current = () if log is None else tuple(log.partitions.values())
        self._forget_partitions(known.keys() - set(current), batch)
        for partition in current:
            self._keep(partition, self._kept[table][0], table.schema, batch)
            base = known.get(partition, 0)
            if partition.base > base:
                self._storage.forget_entries(self._kept[partition][0], base, partition.base - 1)
        self._partitions[table] = {partition: partition.base for partition in current}

    def _forget_partitions(self, partitions: Iterable[Partition], batch: Batch) -> None:
        for partition in partitions:
            self._storage.forget_entries(self._forget(partition, batch))

    # Tunnels

    def _compare_tunnels(self, batch: Batch) -> None:
        current = self._instance.tunnels.values()
        for gone in self._members.keys() - set(current):
            for member in self._members.pop(gone):
                self._forget(member, batch)
            self._forget(gone, batch)
        for tunnel in current:
            if tunnel in self._tunnels or tunnel not in self._members:
                self._compare_tunnel(tunnel, batch)

    def _compare_tunnel(self, tunnel: Tunnel, batch: Batch) -> None:
        schema = self._instance.tables[tunnel.table_name].schema
        self._keep(tunnel, self.number, schema, batch)
        number = self._kept[tunnel][0]
        members: list[TunnelChannel | Client] = [*tunnel.channels.values(), *tunnel.clients.values()]
        for gone in self._members.get(tunnel, set()).difference(members):
            self._forget(gone, batch)
        for member in members:
            self._keep(member, number, schema, batch)
        self._members[tunnel] = set(members)

    def _compare_channel(self, tunnel: Tunnel, channel: TunnelChannel, batch: Batch) -> None:
        schema = self._instance.tables[tunnel.table_name].schema
        self._keep(tunnel, self.number, schema, batch)
        if channel in self._members[tunnel]:
            self._keep(channel, self._kept[tunnel][0], schema, batch)


def _failed() -> Refusal:
    return Refusal("OTSInternalServerError", "Internal server error.")
