"""Calls on local transactions (docs/data-plane.md 2.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ots_emulator.api.call import Call
from ots_emulator.ledger import ELIXIR, JAVA, documented, guessed, tested
from ots_emulator.refusal import parameter_invalid
from ots_emulator.tables.keys import KeySchema
from ots_emulator.tables.sent_keys import read_primary_key
from ots_tunnel.protocol import table_pb2 as pb


def start_local_transaction(call: Call, request: pb.StartLocalTransactionRequest) -> bytes:
    """Lock a partition key."""
    table = call.row_table(request.table_name)
    partition = KeySchema(table.schema.columns[:1])
    primary_key = read_primary_key(request.key)
    if len(primary_key) > 1:
        raise parameter_invalid("StartLocalTransaction support only one primary key.")
    partition.check(primary_key)
    transaction_id = call.instance.transactions.start(
        table, partition.bound(primary_key)[0], call.now, call.settings.transaction_lifetime
    )
    return pb.StartLocalTransactionResponse(transaction_id=transaction_id).SerializeToString()


def commit_transaction(call: Call, request: pb.CommitTransactionRequest) -> bytes:
    """Execute the changes of a transaction."""
    one_time = call.settings.one_time_per_commit
    call.instance.transactions.commit(request.transaction_id, call.now, one_time=one_time)
    return b""


def abort_transaction(call: Call, request: pb.AbortTransactionRequest) -> bytes:
    """Discard a transaction."""
    call.instance.transactions.abort(request.transaction_id, call.now)
    return b""


HANDLERS: Final[Mapping[str, Callable[[Call, Any], bytes]]] = {
    "StartLocalTransaction": start_local_transaction,
    "CommitTransaction": commit_transaction,
    "AbortTransaction": abort_transaction,
}

LEDGER: Final = (
    tested(
        "StartLocalTransaction",
        "the table must have transactions",
        JAVA("LocalTxnTest.TestCreateTableLocalTxnDisabled"),
    ),
    tested(
        "StartLocalTransaction",
        "other writers of the partition key are refused until it ends; readers see the rows as they were",
        ELIXIR("test/transaction_test.exs update row with transaction_id and commit"),
    ),
    documented("StartLocalTransaction", "it ends after 60 s at most"),
    tested(
        "StartLocalTransaction, CommitTransaction, AbortTransaction",
        "the words of refusals: of two key columns, of an ended transaction, of an empty id",
        JAVA(
            "LocalTxnTest.TestStartCommitTxnWithTwoPK",
            "LocalTxnTest.TestStartTxnTwice",
            "LocalTxnTest.TestStartAbortTxn",
            "LocalTxnTest.TestCommitFailed",
            "LocalTxnTest.TestAbortFailed",
        ),
    ),
    guessed(
        "StartLocalTransaction, CommitTransaction, AbortTransaction",
        "that these are refused",
        "the tests that know the words pass without a refusal as well",
    ),
    tested(
        "GetRange",
        "a malformed transaction id is invalid; a range beyond its partition key is refused, in these words",
        ELIXIR("test/transaction_test.exs get range with transaction_id"),
    ),
    guessed(
        "CommitTransaction, AbortTransaction",
        "a malformed id is invalid, as in GetRange; an id is malformed if it is no UUID",
        "the form of the service's ids is not known",
    ),
    guessed(
        "StartLocalTransaction",
        "a table with an auto-increment key has none, in these words",
        "no source says that they exclude each other",
    ),
    guessed(
        "CommitTransaction",
        "cells without a version, and records in the stream, have the time of the commit",
        "no source compares them",
    ),
    guessed(
        "CommitTransaction",
        "a change that is refused at the commit refuses all of them, and ends the transaction",
        "no source says what happens",
    ),
    guessed(
        "PutRow, UpdateRow, DeleteRow, BatchWriteRow",
        "4 MiB in a transaction are counted as in a request: names, values and versions",
        "the limit is documented, not how it is counted",
    ),
    guessed(
        "PutRow, UpdateRow, DeleteRow, BatchWriteRow",
        "texts for another table than that of the transaction, and for more than 4 MiB in it",
        "the codes are known, the texts are not",
    ),
)
