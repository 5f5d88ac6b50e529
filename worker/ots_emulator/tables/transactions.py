"""Local transactions: each locks one partition key and sees its own writes before the commit.

Writes of a transaction are executed on a copy of the rows of its partition key, and once more on the table when it is
committed. Until then other writers of that partition key are refused: the locks are pessimistic.

Source: docs/data-plane.md 2.5; codes and texts as the vendor's Java tests expect them. Two texts are guesses, because
no source has them: for a row beyond the transaction's partition key, and for too much data in one transaction.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, field
from typing import Any, Final

from ots_emulator.refusal import Refusal, parameter_invalid
from ots_emulator.tables.keys import Key
from ots_emulator.tables.row_size import data_bytes
from ots_emulator.tables.table import Table
from ots_tunnel.model import Action
from ots_tunnel.protocol.plainbuffer.spans import RowSpan

#: The first element of a key.
PartitionKey = Any
#: An id as `Transactions.start` returns it.
_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: Bytes of rows one transaction may write (docs/data-plane.md 2.2).
TRANSACTION_BYTES: Final = 4_194_304


@dataclass(frozen=True, slots=True)
class PendingChange:
    """A row change that is executed on the table when its transaction is committed."""

    action: Action
    key: Key
    row: bytes
    span: RowSpan


@dataclass(slots=True, eq=False)
class Transaction:
    """One transaction; `copy` holds the rows it sees, `expires_at` is in seconds of the service's clock, `lifetime` in
    seconds from its start."""

    id: str
    table: Table
    partition_key: PartitionKey
    copy: Table
    expires_at: float
    lifetime: float
    changes: list[PendingChange] = field(default_factory=list)
    size_bytes: int = 0
    limit_bytes: int | None = TRANSACTION_BYTES
    """None is no limit: the trial of an atomic batch, which has the limit of a request."""

    @property
    def held_bytes(self) -> int:
        """Bytes that it holds: the rows of its copy, and its changes."""
        return self.copy.size_bytes + sum(len(change.row) for change in self.changes)

    def size_with(self, size_bytes: int) -> int:
        """Return the size after further rows of `size_bytes`.

        Raises:
            Refusal: OTSParameterInvalid, it exceeds the limit.
        """
        size = self.size_bytes + size_bytes
        if self.limit_bytes is not None and size > self.limit_bytes:
            raise parameter_invalid(
                "The total data size of the local transaction exceeds the limit, "
                f"limit size: {self.limit_bytes}, data size: {size}."
            )
        return size


class Scope:
    """The rows that a call reads and writes: a table, or a transaction's copy of it.

    Args:
        table: where rows are read and written.
        transaction: the transaction that `table` is a copy for; None is the table itself.
        locked: partition keys of the table that belong to transactions.
    """

    __slots__ = ("_locked", "_transaction", "table")

    def __init__(
        self,
        table: Table,
        transaction: Transaction | None = None,
        locked: frozenset[PartitionKey] = frozenset(),
    ) -> None:
        self.table = table
        self._transaction = transaction
        self._locked = locked

    def check(self, key: Key) -> None:
        """Refuse a key that the caller may not write.

        Raises:
            Refusal: OTSRowOperationConflict, or OTSDataOutOfRange inside a transaction.
        """
        transaction = self._transaction
        if transaction is not None:
            if key[:1] != (transaction.partition_key,):
                raise _out_of_range(transaction.partition_key, key[0] if key else None)
        elif self._locked and key[0] in self._locked:
            raise Refusal("OTSRowOperationConflict", "Data is being modified by the other request.")

    def check_range(self, start: Key, end: Key) -> None:
        """Refuse to scan beyond the partition key of a transaction.

        Raises:
            Refusal: OTSDataOutOfRange.
        """
        if self._transaction is None:
            return
        low, high = (start, end) if start < end else (end, start)
        first = (self._transaction.partition_key,)
        if low[:1] != first or (high[:1] != first and high != self.table.schema.after(first)):
            other = low if low[:1] != first else high
            raise _out_of_range(first[0], other[0] if other else None)

    def apply(self, action: Action, key: Key, row: bytes, span: RowSpan, now_us: int) -> None:
        """Execute a row change.

        Raises:
            Refusal: it cannot be executed, or exceeds the data limit of the transaction.
        """
        transaction = self._transaction
        if transaction is None:
            _execute(self.table, action, key, row, span, now_us)
            return
        size = transaction.size_with(data_bytes(span))
        _execute(self.table, action, key, row, span, now_us)
        transaction.size_bytes = size
        transaction.changes.append(PendingChange(action, key, row, span))

    def trial(self, partition_key: PartitionKey) -> Scope:
        """Return a scope of one partition key whose changes are tried on a copy; `take` executes them here.

        Raises:
            Refusal: the partition key belongs to another transaction.
        """
        self.check((partition_key,))
        copy = self.table.fork(partition_key)
        return Scope(copy, Transaction("", self.table, partition_key, copy, 0.0, 0.0, limit_bytes=None))

    def take(self, trial: Scope, now_us: int) -> None:
        """Execute the changes of a trial here.

        Raises:
            Refusal: together they exceed the data limit of the transaction; none is executed.
        """
        assert trial._transaction is not None
        if self._transaction is not None:
            self._transaction.size_with(trial._transaction.size_bytes)
        for change in trial._transaction.changes:
            self.apply(change.action, change.key, change.row, change.span, now_us)


class Transactions:
    """The open transactions of one instance."""

    def __init__(self) -> None:
        self._open: dict[str, Transaction] = {}
        self._expired_bytes = 0

    def __len__(self) -> int:
        return len(self._open)

    def start(self, table: Table, partition_key: PartitionKey, now: float, lifetime: float) -> str:
        """Lock a partition key and return the id of the transaction, which is aborted after `lifetime` seconds.

        Raises:
            Refusal: the table has no transactions, or the partition key is locked.
        """
        if not table.fixed.local_transactions:
            raise parameter_invalid(
                "Try to call method using explicit transaction on explicit-transaction-disabled table."
            )
        if table.schema.auto_increment is not None:
            raise parameter_invalid("Local transaction and auto increment primary key cannot be used together.")
        self.scope(table, "", now).check((partition_key,))
        copy = table.fork(partition_key)
        transaction = Transaction(str(uuid.uuid4()), table, partition_key, copy, now + lifetime, lifetime)
        self._open[transaction.id] = transaction
        return transaction.id

    def scope(self, table: Table, transaction_id: str, now: float) -> Scope:
        """Return the scope of a call on a table.

        Raises:
            Refusal: there is no such transaction, or it belongs to another table.
        """
        if not transaction_id and not self._open:
            return Scope(table)
        self.expire(now)
        if not transaction_id:
            locked = frozenset(
                transaction.partition_key for transaction in self._open.values() if transaction.table is table
            )
            return Scope(table, None, locked)
        transaction = self._transaction(transaction_id)
        if transaction.table is not table:
            raise Refusal("OTSDataOutOfRange", f"The transaction is of table {transaction.table.name}.")
        return Scope(transaction.copy, transaction)

    def commit(self, transaction_id: str, now: float, *, one_time: bool = False) -> None:
        """Execute the changes of a transaction on its table, in their order and with the time of the commit.

        The transaction ends also where they are refused. With `one_time` their records have one commit time.

        Raises:
            Refusal: there is no such transaction, or one of its changes is refused now; then none is executed.
        """
        self.expire(now)
        transaction = self._transaction(transaction_id)
        del self._open[transaction_id]
        # Cells may have expired, or versions been dropped, since they were tried: an increment may meet a value that is
        # no integer. Versions that were sent and `allow_update` were judged then, and are not judged again.
        for table in (transaction.table.fork(transaction.partition_key), transaction.table):
            with table.as_one_commit(wanted=one_time):
                for change in transaction.changes:
                    _execute(table, change.action, change.key, change.row, change.span, int(now * 1_000_000))

    def abort(self, transaction_id: str, now: float) -> None:
        """Discard a transaction and its changes.

        Raises:
            Refusal: there is no such transaction.
        """
        self.expire(now)
        del self._open[self._transaction(transaction_id).id]

    def expire(self, now: float) -> None:
        """Abort the transactions whose time is over."""
        expired = [transaction for transaction in self._open.values() if transaction.expires_at <= now]
        for transaction in expired:
            del self._open[transaction.id]
            self._expired_bytes += transaction.held_bytes

    def take_expired(self) -> int:
        """Return the bytes of the transactions whose time was over since the last call."""
        expired, self._expired_bytes = self._expired_bytes, 0
        return expired

    def forget_table(self, table: Table) -> None:
        """Abort the transactions of a table that is deleted."""
        self._open = {key: found for key, found in self._open.items() if found.table is not table}

    def clock_set_back(self, now: float) -> None:
        """Let transactions end at the latest their lifetime from now on."""
        for transaction in self._open.values():
            transaction.expires_at = min(transaction.expires_at, now + transaction.lifetime)

    def _transaction(self, transaction_id: str) -> Transaction:
        if not _ID.fullmatch(transaction_id):
            raise parameter_invalid("TransactionID is invalid.")
        transaction = self._open.get(transaction_id)
        if transaction is None:
            raise Refusal("OTSSessionNotExist", "Session not exist or may be timeout.")
        return transaction


def _execute(table: Table, action: Action, key: Key, row: bytes, span: RowSpan, now_us: int) -> None:
    if action is Action.PUT:
        table.put(key, row, span, now_us)
    elif action is Action.UPDATE:
        table.update(key, span, now_us)
    else:
        table.delete(key, span, now_us)


def _out_of_range(partition_key: PartitionKey, other: PartitionKey) -> Refusal:
    return out_of_scope("transaction", partition_key, other)


def out_of_scope(what: str, partition_key: PartitionKey, other: PartitionKey) -> Refusal:
    """Build the refusal of a row whose partition key is not that of the transaction or atomic batch."""
    return Refusal(
        "OTSDataOutOfRange",
        f"Data out of scope of {what}. {what.capitalize()} PartKey:{_printed(partition_key)}. "
        f"Data PartKey:{_printed(other)}",
    )


def _printed(partition_key: PartitionKey) -> str:
    if isinstance(partition_key, bytes):
        return partition_key.decode(errors="replace")
    return "INF" if partition_key is None else str(partition_key)
