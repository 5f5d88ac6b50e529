"""Writes of single rows: PutRow, UpdateRow, DeleteRow (docs/data-plane.md 2.3, 2.5).

Theory of operation
-------------------
A write passes three stages, for one row as for each row of a batch:

1. `read_write` takes the row apart and checks what needs no table: format, checksums, names, values, cell operations.
   A mistake here refuses the whole request, also for one row of a batch (`RequestRefusal`).
2. `with_key` compares the key with the table and fills the placeholder of an auto-increment column. A key that does
   not fit refuses the row; a cell with the name of a key column refuses the request.
3. `execute` checks the transaction, the cell versions and the condition, and stores the row.

Calls never overlap: the application executes one call at a time, without a pause between the stages, so the condition
still holds when the row is stored.

The cost of a write is one capacity unit per 4 KiB of the row, plus one read unit if it has a condition. The versions
of its cells count only where the table keeps several, or keeps them for a limited time.

Example: PutRow of ``k=1, v="a"`` with EXPECT_NOT_EXIST on an empty table. Stage 1 finds one cell without a version.
Stage 2 gives the key ``(1,)``. Stage 3 finds no row, stamps the cell with the server's time and stores it; the change
log gets one PUT entry. The answer says 1 read unit and 1 write unit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ots_emulator.api.batch_write import batch_write_row
from ots_emulator.api.call import Call
from ots_emulator.api.rows.capacity import version_bytes
from ots_emulator.api.rows.row_write import execute, read_write, with_key
from ots_emulator.api.rows.write_cost import check_size, write_cost
from ots_emulator.ledger import (
    DEW,
    DOTNET,
    ECTO,
    ELIXIR,
    ERRORS,
    GO,
    JAVA,
    PHP,
    PYTHON,
    RUST,
    documented,
    guessed,
    live,
    tested,
)
from ots_emulator.refusal import check_table_name
from ots_tunnel.model import Action
from ots_tunnel.protocol import table_pb2 as pb


def put_row(call: Call, request: pb.PutRowRequest) -> bytes:
    """Replace a row."""
    return _single(call, request, Action.PUT, request.row, "PutRow")


def update_row(call: Call, request: pb.UpdateRowRequest) -> bytes:
    """Change single columns of a row."""
    return _single(call, request, Action.UPDATE, request.row_change, "UpdateRow")


def delete_row(call: Call, request: pb.DeleteRowRequest) -> bytes:
    """Remove a row."""
    return _single(call, request, Action.DELETE, request.primary_key, "DeleteRow")


def _single(
    call: Call,
    request: pb.PutRowRequest | pb.UpdateRowRequest | pb.DeleteRowRequest,
    action: Action,
    row: bytes,
    operation: str,
) -> bytes:
    check_table_name(request.table_name)
    write = read_write(action, row, request, call.work)
    check_size(operation, [write])
    table = call.row_table(request.table_name)
    keyed = with_key(write, table, call.now_us)
    content = execute(call, call.instance.transactions.scope(table, request.transaction_id, call.now), keyed)
    # The three responses share their fields.
    cost = write_cost(keyed.write, version_bytes(table.options))
    return pb.PutRowResponse(consumed=cost, row=content).SerializeToString()


HANDLERS: Final[Mapping[str, Callable[[Call, Any], bytes]]] = {
    "PutRow": put_row,
    "UpdateRow": update_row,
    "DeleteRow": delete_row,
    "BatchWriteRow": batch_write_row,
}

LEDGER: Final = (
    tested(
        "PutRow, UpdateRow, DeleteRow, BatchWriteRow",
        "limits of names, values, columns and sizes, and their texts",
        JAVA(
            "ParameterLegalityTest.testInvalidColumnName",
            "RestrictedItemTest.testCase12",
            "RestrictedItemTest.testCase23",
            "RestrictedItemTest.testCase26",
            "RestrictedItemTest.testCase41",
            "RestrictedItemTest.testCase48_string_put",
        ),
    ),
    tested(
        "PutRow",
        "the number of key columns is checked before the table is looked up",
        JAVA("RestrictedItemTest.testCase16"),
    ),
    guessed(
        "UpdateRow, DeleteRow, BatchWriteRow, GetRow, BatchGetRow, GetRange",
        "the number of key columns is checked before the table is looked up, as in `PutRow`",
        "contested: a remark in the test of `PutRow` says that `GetRow` looks up the table first",
    ),
    tested(
        "PutRow, GetRow",
        "a key without columns is `Cell data broken, empty PK.`",
        DOTNET("RowOperationTest.TestEmptyPrimaryKey"),
    ),
    guessed("PutRow, UpdateRow, DeleteRow, BatchWriteRow", "the table's name is checked first", "as in reads"),
    tested(
        "PutRow, UpdateRow, DeleteRow, BatchWriteRow",
        "keys: size, then name, then type",
        JAVA(
            "DataOperationTest.testCase3",
            "DataOperationTest.testCase2",
            "ParameterLegalityTest.testInvalidPkOrder",
        ),
    ),
    documented("PutRow, UpdateRow, BatchWriteRow", "a text that is not UTF-8 is refused", ERRORS),
    documented(
        "PutRow, UpdateRow, DeleteRow, BatchWriteRow",
        "the words for a delete marker, columns and a section of attributes where none belong",
        ERRORS,
    ),
    documented(
        "PutRow, UpdateRow", "zero bytes behind a row are accepted", "the code of the Node SDK, which sends them"
    ),
    tested(
        "PutRow",
        "the tag of attributes must not come without any: the public Elixir client sends it with every put",
        ECTO("test/row_test.exs repo - at least one attribute column"),
    ),
    tested(
        "PutRow, UpdateRow",
        "versions, their order, their number and their limits",
        JAVA("RestrictedItemTest.testCase3", "RestrictedItemTest.testCase45", "RestrictedItemTest.testCase46"),
    ),
    documented("PutRow, UpdateRow", "the distance of a version to the server's time is limited", ERRORS),
    documented("PutRow", "an auto-increment key grows within its partition key"),
    tested(
        "PutRow",
        "no expectation goes with its placeholder, in these words",
        ECTO("test/row_test.exs repo - insert/get/delete"),
    ),
    documented("PutRow, DeleteRow", "no condition and no deletion goes with its placeholder, in these words", ERRORS),
    live(
        "PutRow", "its values are microseconds of whole milliseconds", RUST("src/data/mod.rs test_batch_get_row_impl")
    ),
    guessed("PutRow", "further values of one millisecond are one more each", "no source has two of them"),
    guessed(
        "PutRow, UpdateRow, BatchWriteRow",
        "a client may choose the value of an auto-increment key; later automatic values of the table are greater",
        "no source says what the service does with such rows",
    ),
    tested(
        "UpdateRow",
        "a change that only deletes does not create a row",
        PYTHON("row_op_test.test_all_delete_in_update", "row_op_test.test_all_delete_in_update_of_batch_write"),
    ),
    guessed("UpdateRow", "a row stays when its last column is deleted", "a put without columns leaves a row as well"),
    guessed("UpdateRow", "a change that only deletes is recorded in the stream", "as the deletion of a missing row"),
    tested(
        "UpdateRow",
        "increments: a missing column is 0, the new value can be returned",
        JAVA("IncrementRequest.testDefaultLongValue", "IncrementRequest.testReturnColumnNames"),
    ),
    live(
        "UpdateRow, BatchWriteRow",
        "the row with new values has no key, not even its tag",
        ELIXIR("test/mixin/atomic_increment_test.exs", "lib/ex_aliyun_ots/plainbuffer/plainbuffer.ex start_decoding"),
    ),
    tested("UpdateRow", "an increment costs a read unit", DEW("Integration/RowTest.php update with increment")),
    guessed(
        "UpdateRow",
        "a column that is incremented comes once; columns that are put or deleted may come twice",
        "a test of the .NET SDK has the words for a column that is deleted twice, and takes a success as well",
    ),
    guessed(
        "UpdateRow",
        "an increment of a value that is no integer is refused, in these words",
        "that it is refused is documented, the words are not",
    ),
    guessed("UpdateRow", "an increment beyond 64 bits wraps around", "no source says what happens"),
    tested("UpdateRow", "`Update operation is not allowed in this table`", PHP("CreateTableTest.testAllowUpdateFalse")),
    guessed(
        "PutRow, UpdateRow, DeleteRow, BatchWriteRow",
        "a malformed column condition refuses the request, before the table is looked up",
        "the order is known of reads only",
    ),
    documented("DeleteRow", "a missing row is a success"),
    guessed("DeleteRow", "the deletion of a missing row is recorded in the stream", "no source says whether it is"),
    tested(
        "PutRow, UpdateRow, DeleteRow, BatchWriteRow",
        "a unit for every 4 KiB that are written, and one read unit for a condition",
        DOTNET("CapacityUnitTest.Test3WriteCUConsumed"),
        JAVA("CapacityUnitTest.testPutRowExpectExistOrNotExist"),
        PHP("PutRowTest.testWrite10CUConsumed"),
        PYTHON("filter_and_condition_update_unitttest.test_batch_write_row"),
    ),
    guessed(
        "PutRow, UpdateRow, DeleteRow, BatchWriteRow",
        "versions count 8 bytes each, but nothing in tables of one version without a time to live",
        "so it is documented of what storage costs; no source says it of units",
    ),
    documented("BatchWriteRow", "a row that fails its condition costs one unit of both"),
    guessed("BatchWriteRow", "other refused rows cost one write unit", "as rows that fail their condition"),
    tested(
        "BatchWriteRow",
        "200 rows; a key may come twice; which mistakes fail the request",
        JAVA(
            "RestrictedItemTest.testCase31",
            "OTSAPIBehaviorTest.testBatchWriteRowToPutIdenticalRowPk",
            "OTSAPIBehaviorTest.testBatchWriteRowToUpdateIdenticalRowPk",
            "ParameterLegalityTest.testInvalidPrimaryKey",
        ),
    ),
    documented("BatchWriteRow", "a key that comes twice must come without conditions, in these words", ERRORS),
    tested(
        "BatchWriteRow",
        "rows of one key that have conditions are refused one by one, not the request",
        ECTO("test/row_test.exs repo - batch_write"),
    ),
    guessed("BatchWriteRow", "rows of that key without a condition are executed", "no test mixes them"),
    tested(
        "BatchWriteRow",
        "rows that increment one row twice do not fail the request",
        JAVA("IncrementRequest.testBatchWriteError"),
    ),
    guessed(
        "BatchWriteRow",
        "each of these increments is an error of its row, the other changes of the row are executed",
        "the test prints the errors and compares nothing",
    ),
    tested(
        "BatchWriteRow",
        "an atomic batch has one partition key",
        GO("TableStoreSuite.TestAtomicBatchWriteRowWithDiffPartitionKey"),
        JAVA("OTSAPIBehaviorTest.testAtomicBatchWriteRowWithDiffPartKey"),
    ),
    documented("BatchWriteRow", "an atomic batch has one table"),
    guessed(
        "BatchWriteRow",
        "an atomic batch that fails has the error of its first refused row in every row",
        "no source shows the other rows",
    ),
    tested(
        "PutRow",
        "the words for a malformed transaction id; the test passes without a refusal as well",
        PYTHON("transaction_test.test_invalid_transaction_id"),
    ),
)
