"""Writers that remember acknowledged writes, and a sink that remembers its records."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.errors import ServiceError, TransportError
from ots_tunnel.model import Action
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.plainbuffer.codec import encode_primary_key, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch, Guard, Immediate
from tests.support.emulator.emulator_scene import TABLE

ACCOUNTS = "accounts"
COLUMNS = ("a", "b", "c")
VERSIONS = 3
#: Cell versions are chosen by the writers: this plus the number of the write.
FIRST_VERSION = 1_700_000_000_000
IGNORE = pb.Condition(row_existence=pb.IGNORE)

#: Action on a row, and the number that was written (0 for a removal).
Change = tuple[Action, int]


@dataclass
class Writer:
    """Writes to its keys in turn, one batch for all of them, each number until it is acknowledged.

    Every fifth write of a key removes the row. `doubtful` are the numbers of batches that went unanswered at least
    once: they may be in the log more than once. The last one of them is repeated before a writer stops.
    """

    keys: list[str]
    caller: ServiceCaller
    number: int = 0
    doubtful: set[int] = field(default_factory=set)
    stopping: bool = False

    async def run(self) -> None:
        while not self.stopping or self.number + 1 in self.doubtful:
            request = self._request(self.number + 1)
            try:
                response, _ = await self.caller.call(TABLE_OPERATIONS["BatchWriteRow"], request, timeout=10)
            except TransportError:
                self.doubtful.add(self.number + 1)
                await asyncio.sleep(0.01)
                continue
            outcomes = response.tables[0].rows
            assert all(outcome.is_ok for outcome in outcomes), outcomes
            self.number += 1

    def _request(self, number: int) -> pb.BatchWriteRowRequest:
        rows = [
            pb.RowInBatchWriteRowRequest(
                type=self.action(number).name,
                row_change=encode_row(
                    (("pk", key),), self.columns(number), delete=self.action(number) is Action.DELETE
                ),
                condition=IGNORE,
            )
            for key in self.keys
        ]
        return pb.BatchWriteRowRequest(tables=[pb.TableInBatchWriteRowRequest(table_name=TABLE, rows=rows)])

    def last_put(self) -> int:
        return self.number if self.number % 5 else self.number - 1

    @staticmethod
    def action(number: int) -> Action:
        return Action.DELETE if number % 5 == 0 else Action.UPDATE

    def columns(self, number: int) -> tuple[Column, ...]:
        if self.action(number) is Action.DELETE:
            return ()
        return tuple(Column(name, number, FIRST_VERSION + number) for name in COLUMNS)

    def change(self, number: int) -> Change:
        action = self.action(number)
        return action, 0 if action is Action.DELETE else number

    def expected_log(self) -> list[Change]:
        """Every acknowledged change of a key, in order."""
        return [self.change(number) for number in range(1, self.number + 1)]

    def expected_row(self) -> list[tuple[str, int, int]]:
        """Expected cells of every row: those since its last delete, with at most the table's maximum of versions."""
        numbers = range(self.number - self.number % 5 + 1, self.number + 1)[-VERSIONS:]
        return [(name, number, FIRST_VERSION + number) for name in COLUMNS for number in reversed(numbers)]


@dataclass
class Transactor:
    """Writes the same number to two rows in one transaction, each number until the commit is acknowledged."""

    caller: ServiceCaller
    number: int = 0
    stopping: bool = False

    async def run(self) -> None:
        while not self.stopping:
            try:
                await self._write(self.number + 1)
            except TransportError:
                await asyncio.sleep(0.01)
            except ServiceError as error:
                # Opened before a kill: the restarted server does not know it, and its writes are lost.
                if error.code != "OTSSessionNotExist":
                    raise
            else:
                self.number += 1

    async def _write(self, number: int) -> None:
        start = pb.StartLocalTransactionRequest(table_name=ACCOUNTS, key=encode_primary_key((("owner", "o"),)))
        transaction = (await self._call("StartLocalTransaction", start)).transaction_id
        for side in (1, 2):
            row = encode_row((("owner", "o"), ("side", side)), (Column("n", number),))
            await self._call(
                "PutRow", pb.PutRowRequest(table_name=ACCOUNTS, row=row, condition=IGNORE, transaction_id=transaction)
            )
        await self._call("CommitTransaction", pb.CommitTransactionRequest(transaction_id=transaction))

    async def _call(self, name: str, request: Any) -> Any:
        return (await self.caller.call(TABLE_OPERATIONS[name], request, timeout=10))[0]


@dataclass
class Watcher(Immediate):
    """A sink that remembers the changes of every key in the order of their first arrival."""

    changes: dict[str, dict[Change, None]] = field(default_factory=lambda: defaultdict(dict))

    async def open(self) -> None:
        return None

    async def write(self, batch: Batch, guard: Guard) -> None:
        guard.check()
        for record in batch.records:
            key, change = change_of(record)
            self.changes[key].setdefault(change)

    async def close(self) -> None:
        return None


def change_of(record: Record) -> tuple[str, Change]:
    """Key and change of a record; an incomplete row is an error."""
    numbers = {column.value for column in record.columns}
    if record.action is Action.DELETE:
        assert not numbers
        number = 0
    else:
        assert [column.name for column in record.columns] == list(COLUMNS)
        (value,) = numbers
        assert isinstance(value, int)
        number = value
    return str(record.primary_key[0][1]), (record.action, number)
