"""Rows as clients send them: with zero bytes behind, with too many key columns, with deletions only."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel.model import Marker, PrimaryKey
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.codec import decode_row, encode_primary_key, encode_row
from tests.support.emulator.emulator_driver import IGNORE, Driver, delete_all, delete_one, put

KEY: PrimaryKey = (("k", 1),)
LOW, HIGH = encode_primary_key((("k", Marker.INF_MIN),)), encode_primary_key((("k", Marker.INF_MAX),))
PUT = encode_row(KEY, [put("a", 1)])


def calls(behind: bytes) -> dict[str, dict[str, Any]]:
    """Each row call with these bytes behind every row."""
    change = encode_row(KEY, [put("b", 2), delete_all("c")]) + behind
    key = encode_primary_key(KEY) + behind
    row = pb.RowInBatchWriteRowRequest(type="UPDATE", row_change=change, condition=IGNORE)
    ends = {"inclusive_start_primary_key": LOW + behind, "exclusive_end_primary_key": HIGH + behind}
    table = {"table_name": "t"}
    return {
        "PutRow": {**table, "row": PUT + behind, "condition": IGNORE},
        "UpdateRow": {**table, "row_change": change, "condition": IGNORE},
        "BatchWriteRow": {"tables": [pb.TableInBatchWriteRowRequest(table_name="t", rows=[row])]},
        "GetRow": {**table, "primary_key": key, "max_versions": 1},
        "BatchGetRow": {"tables": [pb.TableInBatchGetRowRequest(table_name="t", primary_key=[key], max_versions=1)]},
        "GetRange": {**table, "direction": "FORWARD", "max_versions": 1, **ends},
        "StartLocalTransaction": {**table, "key": key},
        "DeleteRow": {**table, "primary_key": encode_row(KEY, delete=True) + behind, "condition": IGNORE},
    }


@pytest.mark.parametrize("zeros", [0, 1, 7])
async def test_zero_bytes_may_follow_a_row(driver: Driver, zeros: int) -> None:
    """The vendor's Node SDK sends them with range ends, automatic keys and deleted columns."""
    sent = calls(bytes(zeros))
    for name in ("PutRow", "UpdateRow", "BatchWriteRow"):
        await driver.call(name, **sent[name])
    one = await driver.call("GetRow", **sent["GetRow"])
    (several,) = (await driver.call("BatchGetRow", **sent["BatchGetRow"])).tables
    span = await driver.call("GetRange", **sent["GetRange"])
    transaction = await driver.call("StartLocalTransaction", **sent["StartLocalTransaction"])
    await driver.call("AbortTransaction", transaction_id=transaction.transaction_id)

    assert {(column.name, column.value) for column in decode_row(one.row).columns} == {("a", 1), ("b", 2)}
    assert one.row == several.rows[0].row == span.rows
    await driver.call("DeleteRow", **sent["DeleteRow"])
    assert await driver.get(1) is None


@pytest.mark.parametrize("zeros", [1, 7])
async def test_what_follows_a_row_is_not_stored_with_it(driver: Driver, zeros: int) -> None:
    plain = encode_row(KEY, [put("a", 1, driver.now_ms)])
    await driver.call("PutRow", table_name="t", row=plain + bytes(zeros), condition=IGNORE)

    assert (await driver.call("GetRow", **calls(b"")["GetRow"])).row == plain


@pytest.mark.parametrize("name", sorted(calls(b"")))
async def test_anything_else_behind_a_row_is_refused(driver: Driver, name: str) -> None:
    status, code, message = await driver.refused(name, **calls(b"\0\1")[name])

    assert (status, code) == (400, "OTSParameterInvalid")
    assert "2 bytes follow the row" in message


# Keys that no table has


def with_key(columns: int, table: str) -> dict[str, dict[str, Any]]:
    """Each row call with a key of so many columns."""
    key: PrimaryKey = tuple((f"k{number}", 1) for number in range(columns))
    row = pb.RowInBatchWriteRowRequest(type="PUT", row_change=encode_row(key), condition=IGNORE)
    encoded = encode_primary_key(key)
    asked = pb.TableInBatchGetRowRequest(table_name=table, primary_key=[encoded], max_versions=1)
    named = {"table_name": table}
    ends = {"direction": "FORWARD", "inclusive_start_primary_key": encoded, "exclusive_end_primary_key": encoded}
    return {
        "PutRow": {**named, "row": encode_row(key, [put("a", 1)]), "condition": IGNORE},
        "UpdateRow": {**named, "row_change": encode_row(key, [put("a", 1)]), "condition": IGNORE},
        "DeleteRow": {**named, "primary_key": encode_row(key, delete=True), "condition": IGNORE},
        "GetRow": {**named, "primary_key": encoded, "max_versions": 1},
        "GetRange": {**named, **ends, "max_versions": 1},
        "BatchWriteRow": {"tables": [pb.TableInBatchWriteRowRequest(table_name=table, rows=[row])]},
        "BatchGetRow": {"tables": [asked]},
    }


@pytest.mark.parametrize("name", sorted(with_key(5, "t")))
@pytest.mark.parametrize(
    ("columns", "table", "message"),
    [
        (0, "t", "Cell data broken, empty PK."),
        (0, "none", "Cell data broken, empty PK."),
        (5, "t", "The number of primary key columns must be in range: [1, 4]."),
        (5, "none", "The number of primary key columns must be in range: [1, 4]."),
        (0, "#", "Invalid table name: '#'."),
        (5, "#", "Invalid table name: '#'."),
    ],
)
async def test_the_columns_of_a_key_are_counted_before_the_table_is_looked_up(
    driver: Driver, name: str, columns: int, table: str, message: str
) -> None:
    assert await driver.refused(name, **with_key(columns, table)[name]) == (400, "OTSParameterInvalid", message)


# Changes that only delete


async def test_a_change_that_only_deletes_columns_does_not_create_a_row() -> None:
    driver = Driver()
    await driver.create_table(hours=24)
    tunnel = await driver.create_tunnel("Stream")
    wanted = pb.ReturnContent(return_type="RT_PK")
    change = encode_row(KEY, [delete_all("a"), delete_one("b", 5)])

    answer = await driver.call("UpdateRow", table_name="t", row_change=change, condition=IGNORE, return_content=wanted)

    assert await driver.get(1) is None
    assert decode_row(answer.row).primary_key == KEY
    assert (answer.consumed.capacity_unit.read, answer.consumed.capacity_unit.write) == (0, 1)
    not_there = pb.Condition(row_existence="EXPECT_NOT_EXIST")
    await driver.call("PutRow", table_name="t", row=PUT, condition=not_there)
    (channel,) = await driver.channels(tunnel, "Stream")
    records, _ = await driver.drain(tunnel, channel)
    assert [(action.name, len(row.columns)) for action, row in records] == [("UPDATE", 2), ("PUT", 1)]


async def test_a_row_stays_when_a_change_deletes_its_last_column(driver: Driver) -> None:
    await driver.put(1, put("a", 1))
    await driver.update(1, delete_all("a"))

    row = await driver.get(1)
    assert row is not None
    assert row.columns == ()
