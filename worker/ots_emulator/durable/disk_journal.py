"""The journal of an instance with a data directory: it marks the objects a call touches and stores the difference.

Theory of operation
-------------------
Parts. `Dirty` holds the marks of one call. `StoredTables` and `StoredTunnels` hold what the database has of the
instance and turn marks into a `Batch`; `StoredDocuments` remembers number and facts of every document. `Storage`
writes a batch in one transaction.

Order of one call:

1. The call looks up tables, tunnels and channels; `Instance` marks each of them as touched.
2. The call changes them. Rows and log entries are reported one by one with their content, because there are many.
3. `commit` compares the touched ones with the facts that are stored, collects what differs, and writes it. The answer
   is sent only after that.

A fact is everything about an object that can change (`documents.facts_of`). Comparing facts costs a few attribute
reads per touched object, and no code that changes a channel or client can miss to report it.

Cases:

- A refused call is committed as well: it may have found that clients timed out.
- A deleted table or tunnel is noticed by its absence, and its documents are deleted with it. Its rows and entries are
  deleted later, in pieces (`Storage.forget_rows`).
- A trimmed log rewrites the table's document, because its last commit time can no longer be read from the entries.
- A failed write stops the instance: memory is ahead of the disk, so `check_writable` refuses all further calls.

Example: PutRow on table ``t`` with a change log. Marks: table ``t`` (looked up), row ``k``, one entry of partition
``p``. The table's facts are unchanged, so the batch holds one row and one entry, and SQLite writes two records.
"""

from __future__ import annotations

from collections.abc import Mapping

from ots_emulator.durable import DataError, documents
from ots_emulator.durable.database import Batch, Storage
from ots_emulator.durable.dirty import Dirty
from ots_emulator.durable.stored_documents import StoredDocuments
from ots_emulator.durable.stored_tables import StoredTables
from ots_emulator.durable.stored_tunnels import Member, StoredTunnels
from ots_emulator.instance import Instance
from ots_emulator.refusal import Refusal
from ots_emulator.tables.keys import Key
from ots_emulator.tables.partition import Partition
from ots_emulator.tables.table import Table
from ots_emulator.tunnels.channel import TunnelChannel
from ots_emulator.tunnels.tunnel import Tunnel


class DiskJournal:
    """Stores one instance in a data directory.

    Args:
        instance: the stored instance.
        storage: the data directory.
        number: number of the instance's document.
    """

    def __init__(self, instance: Instance, storage: Storage, number: int) -> None:
        self._instance = instance
        self._storage = storage
        self.number = number
        self._aims = dict(instance.partition_aims)
        self._documents = StoredDocuments(storage)
        self._tables = StoredTables(storage, self._documents, number)
        self._tunnels = StoredTunnels(self._documents, number)
        self._dirty = Dirty()

    def __repr__(self) -> str:
        return f"DiskJournal({self._instance.name}, {len(self._documents)} documents)"

    # Marking

    def row_changed(self, table: str, key: Key, image: bytes | None, versioned: bool) -> None:
        """Mark a stored or removed row."""
        self._dirty.rows[table][key] = image, versioned

    def entry_appended(self, partition: Partition, timestamp_us: int, entry: bytes) -> None:
        """Mark a log entry."""
        self._dirty.entries[partition].append((timestamp_us, entry))

    def partitions_changed(self, stream_id: str) -> None:
        """Mark a log whose partitions changed."""
        self._dirty.logs.add(stream_id)

    def table_touched(self, table: str) -> None:
        """Mark a table to compare."""
        self._dirty.tables.add(table)

    def tunnel_touched(self, tunnel: Tunnel) -> None:
        """Mark a tunnel to compare, with its channels and clients."""
        self._dirty.tunnels.add(tunnel)

    def channel_touched(self, tunnel: Tunnel, channel: TunnelChannel) -> None:
        """Mark a channel to compare."""
        self._dirty.channels.add((tunnel, channel))

    def everything_touched(self) -> None:
        """Mark every table, log and tunnel."""
        self._dirty.everything = True
        self._dirty.tables.update(self._instance.tables)
        self._dirty.tunnels.update(self._instance.tunnels.values())

    # Restoring

    def adopt_table(
        self, table: Table, number: int, places: dict[Key, int], partitions: Mapping[Partition, int]
    ) -> None:
        """Take over a table that was read: its number, the places of its rows, the numbers of its partitions."""
        self._tables.adopt(table, number, places, partitions)

    def adopt_tunnel(self, tunnel: Tunnel, number: int, members: Mapping[Member, int]) -> None:
        """Take over a tunnel that was read: its number, and those of its channels and clients."""
        self._tunnels.adopt(tunnel, number, members)

    # Committing

    def check_writable(self) -> None:
        """Refuse a call whose changes could not be stored.

        Raises:
            Refusal: OTSInternalServerError, an earlier commit failed.
        """
        if self._storage.failure is not None:
            raise _not_stored()

    def commit(self) -> None:
        """Store all changes since the last commit, completely or not at all.

        Raises:
            Refusal: OTSInternalServerError, the changes could not be stored.
        """
        try:
            batch = self.changes()
            if batch or not self._storage.is_swept:
                self._storage.commit(batch)
        except DataError as error:
            raise _not_stored() from error
        except Exception as error:
            # What was compared counts as stored, so no later commit may succeed after an error here.
            self._storage.fail(f"changes of instance {self._instance.name} cannot be put together: {error!r}")
            raise

    def changes(self) -> Batch:
        """Return all changes since the last time; from then on they count as stored."""
        batch = Batch()
        instance = self._instance
        if self._aims != instance.partition_aims:
            self._aims = dict(instance.partition_aims)
            batch.documents.append((self.number, *documents.instance_body(instance.name, self._aims)))
        self._tables.add_changes(instance.tables, self._dirty, batch)
        self._tunnels.add_changes(instance, self._dirty, batch)
        self._dirty.clear()
        return batch


def _not_stored() -> Refusal:
    return Refusal("OTSInternalServerError", "Internal server error.")
