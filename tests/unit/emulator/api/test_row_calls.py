"""Details of row calls: names, returned content, auto-increment keys, refused rows and refused requests."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel.errors import ServiceError, TunnelError
from ots_tunnel.model import KeyType, Marker, PrimaryKey
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.http.rpc import build_request, parse_response
from ots_tunnel.protocol.plainbuffer.codec import decode_primary_key, decode_row, encode_primary_key, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from tests.support.emulator.emulator_driver import CREDENTIALS, IGNORE, Driver, delete_all, increment, put
from tests.support.emulator.returned import returned_cells

KEY = encode_primary_key((("k", 1),))
CREATED = {
    "reserved_throughput": pb.ReservedThroughput(capacity_unit=pb.CapacityUnit(read=0, write=0)),
    "table_options": pb.TableOptions(time_to_live=-1, max_versions=1),
}


async def update(driver: Driver, *columns: Column, key: PrimaryKey = (("k", 1),), **fields: Any) -> Any:
    fields.setdefault("condition", IGNORE)
    fields.setdefault("table_name", "t")
    return await driver.call("UpdateRow", row_change=encode_row(key, columns), **fields)


async def create_two(driver: Driver, second: KeyType = KeyType.INTEGER, *, chosen: bool = False) -> None:
    """Create table ``two`` with key columns ``k`` and ``s``, the second optionally auto-increment."""
    option = pb.AUTO_INCREMENT if chosen else None
    keys = [
        pb.PrimaryKeySchema(name="k", type="INTEGER"),
        pb.PrimaryKeySchema(name="s", type=second.name, option=option),
    ]
    await driver.call("CreateTable", table_meta=pb.TableMeta(table_name="two", primary_key=keys), **CREATED)


# Names


def batch_of(name: str) -> dict[str, Any]:
    row = pb.RowInBatchWriteRowRequest(type="PUT", row_change=encode_row((("k", 1),)), condition=IGNORE)
    return {"tables": [pb.TableInBatchWriteRowRequest(table_name=name, rows=[row])]}


CALLS: dict[str, Any] = {
    "CreateTable": lambda name: {
        "table_meta": pb.TableMeta(table_name=name, primary_key=[pb.PrimaryKeySchema(name="k", type="INTEGER")]),
        **CREATED,
    },
    "UpdateTable": lambda name: {"table_name": name, "table_options": pb.TableOptions(max_versions=1)},
    "DescribeTable": lambda name: {"table_name": name},
    "DeleteTable": lambda name: {"table_name": name},
    "PutRow": lambda name: {"table_name": name, "row": encode_row((("k", 1),)), "condition": IGNORE},
    "UpdateRow": lambda name: {
        "table_name": name,
        "row_change": encode_row((("k", 1),), [put("a", 1)]),
        "condition": IGNORE,
    },
    "DeleteRow": lambda name: {
        "table_name": name,
        "primary_key": encode_row((("k", 1),), delete=True),
        "condition": IGNORE,
    },
    "GetRow": lambda name: {"table_name": name, "primary_key": KEY, "max_versions": 1},
    "BatchGetRow": lambda name: {
        "tables": [pb.TableInBatchGetRowRequest(table_name=name, primary_key=[KEY], max_versions=1)]
    },
    "BatchWriteRow": batch_of,
    "GetRange": lambda name: {
        "table_name": name,
        "direction": "FORWARD",
        "inclusive_start_primary_key": KEY,
        "exclusive_end_primary_key": encode_primary_key((("k", 2),)),
        "max_versions": 1,
    },
    "ComputeSplitPointsBySize": lambda name: {"table_name": name, "split_size": 1},
    "StartLocalTransaction": lambda name: {"table_name": name, "key": KEY},
}


@pytest.mark.parametrize("name", ["", "0", "#", "\u4e2d\u6587", "T#", "3t", "-", "a" * 256])
@pytest.mark.parametrize("call", CALLS)
async def test_no_table_can_have_this_name(driver: Driver, call: str, name: str) -> None:
    with pytest.raises(ServiceError, match=rf"OTSParameterInvalid: Invalid table name: '{name}'\. \(http 400"):
        await driver.call(call, **CALLS[call](name))


@pytest.mark.parametrize("call", sorted(set(CALLS) - {"CreateTable", "BatchGetRow", "BatchWriteRow"}))
async def test_no_table_has_this_name(driver: Driver, call: str) -> None:
    with pytest.raises(ServiceError, match=r"OTSObjectNotExist: Requested table does not exist\. \(http 404"):
        await driver.call(call, **CALLS[call]("none"))


@pytest.mark.parametrize("call", ["BatchGetRow", "BatchWriteRow"])
async def test_a_missing_table_fails_the_rows_of_a_batch(driver: Driver, call: str) -> None:
    (table,) = (await driver.call(call, **CALLS[call]("none"))).tables

    assert [(row.is_ok, row.error.code) for row in table.rows] == [(False, "OTSObjectNotExist")]


@pytest.mark.parametrize(
    ("instance", "code", "message"),
    [
        ("ab", "OTSParameterInvalid", "Invalid instance name: 'ab'"),
        ("a_b", "OTSParameterInvalid", "Invalid instance name: 'a_b'"),
        ("a" * 17, "OTSParameterInvalid", f"Invalid instance name: '{'a' * 17}'"),
        ("foreign", "OTSAuthFailed", "The instance is not found"),
    ],
)
async def test_no_instance_has_this_name(driver: Driver, instance: str, code: str, message: str) -> None:
    operation = TABLE_OPERATIONS["ListTable"]
    request = build_request(
        operation,
        pb.ListTableRequest(),
        instance=instance,
        credentials=CREDENTIALS,
        now=driver.clock.now(),
        trace_id="t",
    )
    with pytest.raises(TunnelError, match=f"{code}: {message}"):
        parse_response(operation, await driver.emulator.handle(request))


async def test_an_instance_of_somebody_else_is_refused() -> None:
    driver = Driver()
    driver.emulator.add_instance("theirs", {"their-id": "their-secret"})
    operation = TABLE_OPERATIONS["ListTable"]
    request = build_request(
        operation,
        pb.ListTableRequest(),
        instance="theirs",
        credentials=CREDENTIALS,
        now=driver.clock.now(),
        trace_id="t",
    )

    with pytest.raises(TunnelError, match="OTSAuthFailed: The user has no privilege to access the instance"):
        parse_response(operation, await driver.emulator.handle(request))


# Returned content


async def test_incremented_columns_are_returned_by_name(driver: Driver) -> None:
    wanted = pb.ReturnContent(return_type="RT_AFTER_MODIFY", return_column_names=["a"])
    await update(driver, put("a", 5))
    answer = await update(driver, increment("a", 3), increment("b", 1), put("c", 1), return_content=wanted)

    assert returned_cells(answer.row) == [("a", 8, driver.now_ms)]


@pytest.mark.parametrize(
    ("kind", "names", "message"),
    [
        ("RT_AFTER_MODIFY", ["c"], "'c' is not that of a column the row change increments"),
        ("RT_AFTER_MODIFY", ["a", "z"], "'z' is not that of a column the row change increments"),
        ("RT_PK", ["a"], "Return column names cannot be given when return type is RT_PK"),
        ("RT_NONE", ["a"], "Return column names cannot be given when return type is RT_NONE"),
    ],
)
async def test_nothing_else_is_returned_by_name_and_nothing_is_written(
    driver: Driver, kind: Any, names: list[str], message: str
) -> None:
    wanted = pb.ReturnContent(return_type=kind, return_column_names=names)
    with pytest.raises(ServiceError, match=message):
        await update(driver, increment("a", 1), put("c", 1), return_content=wanted)

    assert await driver.get(1) is None


# Auto-increment keys


async def test_an_update_creates_a_row_with_a_chosen_key(driver: Driver) -> None:
    await create_two(driver, chosen=True)
    wanted = pb.ReturnContent(return_type="RT_PK")
    placeholder = (("k", 1), ("s", Marker.AUTO_INCREMENT))
    answer = await update(
        driver, increment("n", 1), delete_all("m"), key=placeholder, return_content=wanted, table_name="two"
    )
    chosen = decode_primary_key(answer.row)
    await update(driver, increment("n", 15), key=chosen, table_name="two")

    got = await driver.call("GetRow", table_name="two", primary_key=encode_primary_key(chosen), max_versions=1)
    assert isinstance(chosen[1][1], int)
    assert [(column.name, column.value) for column in decode_row(got.row).columns] == [("n", 16)]


async def test_a_key_is_chosen_only_for_an_auto_increment_column(driver: Driver) -> None:
    with pytest.raises(ServiceError, match="VT_AUTO_INCREMENT is an invalid type for the primary key"):
        await update(driver, put("a", 1), key=(("k", Marker.AUTO_INCREMENT),))


# Refused requests and refused rows


async def test_attributes_named_as_a_key_column_refuse_the_whole_batch(driver: Driver) -> None:
    rows = [
        pb.RowInBatchWriteRowRequest(type="PUT", row_change=encode_row((("k", key),), [put(name, 1)]), condition=IGNORE)
        for key, name in ((1, "a"), (2, "k"))
    ]
    with pytest.raises(ServiceError, match="Duplicated attribute column name with primary key column: k"):
        await driver.call("BatchWriteRow", tables=[pb.TableInBatchWriteRowRequest(table_name="t", rows=rows)])

    assert await driver.get(1) is None


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([], "No row specified in the request of BatchGetRow"),
        ([("t", [1]), ("t", [2])], "Duplicated table name: t"),
        ([("t", range(101))], "Rows count exceeds the upper limit: 100"),
    ],
)
async def test_batches_of_reads_are_checked(driver: Driver, tables: list[tuple[str, list[int]]], message: str) -> None:
    asked = [
        pb.TableInBatchGetRowRequest(
            table_name=name, primary_key=[encode_primary_key((("k", key),)) for key in keys], max_versions=1
        )
        for name, keys in tables
    ]
    with pytest.raises(ServiceError, match=rf"OTSParameterInvalid: {message}\. \(http 400"):
        await driver.call("BatchGetRow", tables=asked)


async def test_a_batch_of_reads_takes_a_key_twice_and_a_table_without_keys(driver: Driver) -> None:
    await driver.put(1, put("a", 1))
    twice = pb.TableInBatchGetRowRequest(table_name="t", primary_key=[KEY, KEY], max_versions=1)
    empty = pb.TableInBatchGetRowRequest(table_name="other", max_versions=1)

    first, second = (await driver.call("BatchGetRow", tables=[twice, empty])).tables

    assert [decode_row(row.row).primary_key for row in first.rows] == [(("k", 1),)] * 2
    assert (second.table_name, list(second.rows)) == ("other", [])


async def test_the_bounds_of_a_range_have_the_same_types(driver: Driver) -> None:
    message = "invalid range, the begin's type is different from the end's,VT_INTEGER:VT_STRING"
    with pytest.raises(ServiceError, match=message):
        await driver.range((("k", 1),), (("k", "z"),))


async def test_every_row_of_a_batch_of_reads_has_its_own_outcome(driver: Driver) -> None:
    await create_two(driver, KeyType.STRING)
    await driver.put(1, put("a", 1))
    wrong = encode_primary_key((("k", 1), ("s", 5)))
    right = encode_primary_key((("k", 1), ("s", "x")))
    asked = [
        pb.TableInBatchGetRowRequest(table_name="two", primary_key=[wrong, right], max_versions=1),
        pb.TableInBatchGetRowRequest(table_name="none", primary_key=[KEY], max_versions=1),
        pb.TableInBatchGetRowRequest(table_name="t", primary_key=[KEY], max_versions=1),
    ]
    answer = await driver.call("BatchGetRow", tables=asked)

    found = [
        (table.table_name, row.is_ok, row.error.code, bool(row.row)) for table in answer.tables for row in table.rows
    ]
    assert found == [
        ("two", False, "OTSInvalidPK", False),
        ("two", True, "", False),
        ("none", False, "OTSObjectNotExist", False),
        ("t", True, "", True),
    ]


async def test_a_table_can_forbid_updates(driver: Driver) -> None:
    await driver.call("UpdateTable", table_name="t", table_options=pb.TableOptions(allow_update=False))
    await driver.put(1, put("a", 1))
    refused = await driver.refused(
        "UpdateRow", table_name="t", row_change=encode_row((("k", 1),), [put("a", 2)]), condition=IGNORE
    )
    assert refused == (400, "OTSParameterInvalid", "Update operation is not allowed in this table")
    await driver.delete(1)

    assert not (await driver.call("DescribeTable", table_name="t")).table_options.allow_update
    assert await driver.get(1) is None
