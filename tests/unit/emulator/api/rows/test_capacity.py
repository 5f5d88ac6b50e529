"""Capacity units of calls, and sizes that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from ots_emulator.tables.row_size import data_bytes
from ots_tunnel.errors import ServiceError
from ots_tunnel.model import Action, Marker
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.codec import decode_rows, encode_primary_key, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.plainbuffer.spans import scan_row
from tests.support.emulator.emulator_driver import IGNORE, Driver, increment, put

LOW, HIGH = encode_primary_key((("k", Marker.INF_MIN),)), encode_primary_key((("k", Marker.INF_MAX),))
KEY = encode_primary_key((("k", 1),))


@pytest.mark.parametrize(
    ("columns", "size"),
    [
        ([], 1 + 8),
        ([put("ab", 5)], 9 + 2 + 8 + 8),
        ([put("ab", 1.5)], 9 + 2 + 8 + 8),
        ([put("ab", True)], 9 + 2 + 1 + 8),
        ([put("ab", "xyz")], 9 + 2 + 3 + 8),
        ([put("ab", b"xyz", 1), put("ab", b"", 2)], 9 + (2 + 3 + 8) + (2 + 0 + 8)),
    ],
)
def test_the_size_of_a_row(columns: list[Column], size: int) -> None:
    assert data_bytes(scan_row(encode_row((("k", 1),), columns))) == size


def of(size: int) -> Column:
    """A column that makes the whole row this size where versions count."""
    return put("v", b"x" * (size - 9 - 1 - 8))


async def cost(driver: Driver, name: str, **fields: Any) -> tuple[int, int]:
    unit = (await driver.call(name, table_name="t", **fields)).consumed.capacity_unit
    return unit.read, unit.write


@pytest.mark.parametrize(("size", "units"), [(100, 1), (4096, 1), (4097, 2), (8192, 2), (8193, 3)])
async def test_rows_cost_a_unit_for_each_4096_bytes(driver: Driver, size: int, units: int) -> None:
    row = encode_row((("k", 1),), [of(size)])

    assert await cost(driver, "PutRow", row=row, condition=IGNORE) == (0, units)
    assert await cost(driver, "PutRow", row=row, condition=pb.Condition(row_existence="EXPECT_EXIST")) == (1, units)
    assert await cost(driver, "GetRow", primary_key=KEY, max_versions=1) == (units, 0)
    key_range = {"direction": "FORWARD", "inclusive_start_primary_key": LOW, "exclusive_end_primary_key": HIGH}
    assert await cost(driver, "GetRange", max_versions=1, **key_range) == (units, 0)


@pytest.mark.parametrize(("versions", "ttl", "units"), [(1, -1, 1), (2, -1, 2), (1, 86400, 2)])
async def test_versions_count_only_where_several_are_kept_or_none_for_ever(versions: int, ttl: int, units: int) -> None:
    driver = Driver()
    await driver.create_table(max_versions=versions, ttl=ttl)
    row = encode_row((("k", 1),), [of(4096 + 8)])
    batch = pb.TableInBatchWriteRowRequest(
        table_name="t", rows=[pb.RowInBatchWriteRowRequest(type="PUT", row_change=row, condition=IGNORE)]
    )
    asked = pb.TableInBatchGetRowRequest(table_name="t", primary_key=[KEY], max_versions=1)

    assert await cost(driver, "PutRow", row=row, condition=IGNORE) == (0, units)
    assert await cost(driver, "GetRow", primary_key=KEY, max_versions=1) == (units, 0)
    (written,) = (await driver.call("BatchWriteRow", tables=[batch])).tables[0].rows
    (atomic,) = (await driver.call("BatchWriteRow", tables=[batch], is_atomic=True)).tables[0].rows
    (read,) = (await driver.call("BatchGetRow", tables=[asked])).tables[0].rows
    assert [row.consumed.capacity_unit.write for row in (written, atomic)] == [units, units]
    assert read.consumed.capacity_unit.read == units


async def test_a_missing_row_costs_a_unit(driver: Driver) -> None:
    delete = encode_row((("k", 1),), delete=True)

    assert await cost(driver, "GetRow", primary_key=KEY, max_versions=1) == (1, 0)
    assert await cost(driver, "DeleteRow", primary_key=delete, condition=IGNORE) == (0, 1)


@pytest.mark.parametrize("size", [100, 9000])
async def test_a_row_of_a_batch_that_fails_its_condition_costs_one_of_both(driver: Driver, size: int) -> None:
    row = pb.RowInBatchWriteRowRequest(
        type="PUT",
        row_change=encode_row((("k", 1),), [of(size)]),
        condition=pb.Condition(row_existence="EXPECT_EXIST"),
    )
    batch = pb.TableInBatchWriteRowRequest(table_name="t", rows=[row])
    (outcome,) = (await driver.call("BatchWriteRow", tables=[batch])).tables[0].rows

    assert outcome.error.code == "OTSConditionCheckFail"
    assert (outcome.consumed.capacity_unit.read, outcome.consumed.capacity_unit.write) == (1, 1)


async def test_an_increment_costs_a_read_unit(driver: Driver) -> None:
    change = encode_row((("k", 1),), [increment("n", 1), put("a", 1)])
    rows = [
        pb.RowInBatchWriteRowRequest(type="UPDATE", row_change=change, condition=IGNORE),
        pb.RowInBatchWriteRowRequest(
            type="UPDATE", row_change=encode_row((("k", 2),), [put("a", 1)]), condition=IGNORE
        ),
    ]
    batch = pb.TableInBatchWriteRowRequest(table_name="t", rows=rows)

    assert await cost(driver, "UpdateRow", row_change=change, condition=IGNORE) == (1, 1)
    expected = pb.Condition(row_existence="EXPECT_EXIST")
    assert await cost(driver, "UpdateRow", row_change=change, condition=expected) == (1, 1)
    (answer,) = (await driver.call("BatchWriteRow", tables=[batch])).tables
    units = [row.consumed.capacity_unit for row in answer.rows]
    assert [(unit.read, unit.write) for unit in units] == [(1, 1), (0, 1)]


async def test_a_range_that_selects_nothing_of_many_rows_costs_a_unit(driver: Driver) -> None:
    for key in range(4):
        await driver.put(key, of(4096))
    single = pb.SingleColumnValueFilter(
        comparator="CT_EXIST", column_name="none", column_value=b"", filter_if_missing=True, latest_version_only=True
    )
    nothing = pb.Filter(type="FT_SINGLE_COLUMN_VALUE", filter=single.SerializeToString()).SerializeToString()
    key_range = {"direction": "FORWARD", "inclusive_start_primary_key": LOW, "exclusive_end_primary_key": HIGH}

    assert await cost(driver, "GetRange", max_versions=1, **key_range) == (4, 0)
    assert await cost(driver, "GetRange", max_versions=1, filter=nothing, **key_range) == (1, 0)
    assert await cost(driver, "GetRange", max_versions=1, columns_to_get=["none"], **key_range) == (1, 0)
    assert await cost(driver, "GetRange", max_versions=1, columns_to_get=["k"], **key_range) == (1, 0)


@pytest.mark.parametrize("name", ["PutRow", "UpdateRow"])
async def test_rows_may_be_as_large_as_a_batch(driver: Driver, name: str) -> None:
    half = (4_194_304 - 9 - 3 * 9) // 3
    fits = [put(column, b"x" * half) for column in "abc"]
    body = "row" if name == "PutRow" else "row_change"
    await driver.call(name, table_name="t", condition=IGNORE, **{body: encode_row((("k", 1),), fits)})
    size = 9 + 3 * 9 + 3 * half + 10
    over = [*fits, put("d", b"x")]

    message = f"The total data size of {name} request exceeds the limit, limit size: 4194304, data size: {size}"
    with pytest.raises(ServiceError, match=message):
        await driver.call(name, table_name="t", condition=IGNORE, **{body: encode_row((("k", 1),), over)})


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([put(f"c{number}", 1) for number in range(1025)], "limit count: 1024, column count: 1025"),
        (
            [put("attr", b"x" * 2_097_153)],
            "attribute column: 'attr' exceeds the MaxLength:2097152 with CurrentLength:2097153",
        ),
        ([put("a", float("nan"))], "NaN can't be set to double value"),
        ([put("a", float("inf"))], "Infinity can't be set to double value"),
        ([put("a", 1, -1)], "Timestamp must be in range"),
        ([put("a", 1, 9223372036854775)], "Timestamp must be in range"),
    ],
)
async def test_rows_that_are_refused(driver: Driver, columns: list[Column], message: str) -> None:
    with pytest.raises(ServiceError, match=message):
        await driver.write((Action.PUT, 1, [put("a", 1)]), (Action.PUT, 2, columns))

    assert await driver.get(1) is None


async def test_a_key_value_that_is_too_long_is_refused(driver: Driver) -> None:
    key = encode_primary_key((("k", "x" * 1025),))
    with pytest.raises(ServiceError, match="column: 'k' exceeds the MaxLength:1024 with CurrentLength:1025"):
        await driver.call("GetRow", table_name="t", primary_key=key, max_versions=1)


async def test_columns_to_get_are_counted(driver: Driver) -> None:
    with pytest.raises(
        ServiceError, match="columns from the request exceeds the limit, limit count: 1024, column count: 1025"
    ):
        await driver.get(1, columns_to_get=[f"c{number}" for number in range(1025)])


async def test_older_servers_refuse_repeated_rows() -> None:
    driver = Driver(refuse_repeated_rows=True)
    await driver.create_table()
    with pytest.raises(ServiceError, match="Repeated rows are not allowed in BatchModify"):
        await driver.write((Action.PUT, 1, [put("a", 1)]), (Action.PUT, 1, [put("a", 2)]))

    assert await driver.get(1) is None


async def test_tables_are_counted() -> None:
    driver = Driver(table_quota=2)
    await driver.create_table("a")
    await driver.create_table("b")
    with pytest.raises(ServiceError, match="OTSQuotaExhausted: Number of tables exceeds the quota:2"):
        await driver.create_table("c")


KEYS = (("PK0", "STRING"), ("PK1", "STRING"), ("PK2", "INTEGER"), ("PK3", "INTEGER"))


def predefined(number: int) -> bytes:
    """A row like those that the vendor's .NET SDK reads in its tests of ranges."""
    key = (("PK0", f"ABC{number}"), ("PK1", f"DEF{number}"), ("PK2", 123 + number), ("PK3", 456 + number))
    values = (f"ABC{number}", 123 + number, 3.14 + number, number % 2 == 0, b"\x20\x20")
    return encode_row(key, [put(f"Col{place}", value) for place, value in enumerate(values)])


async def read_all(driver: Driver, most: int) -> int:
    """Read so many rows; return the units that the pages have cost."""
    start, end = (
        encode_primary_key(tuple((name, marker) for name, _ in KEYS)) for marker in (Marker.INF_MIN, Marker.INF_MAX)
    )
    units = 0
    while start and most:
        ends = {"inclusive_start_primary_key": start, "exclusive_end_primary_key": end}
        page = await driver.call("GetRange", table_name="t", direction="FORWARD", max_versions=1, limit=most, **ends)
        units += page.consumed.capacity_unit.read
        most -= len(decode_rows(page.rows))
        start = page.next_start_primary_key
    return units


@pytest.mark.parametrize(
    ("versions", "rows", "units"), [(1, 5000, 107), (1, 5001, 108), (1, 15_100, 328), (10, 5000, 156)]
)
async def test_every_row_of_a_long_range_is_counted(versions: int, rows: int, units: int) -> None:
    """Without versions these are the numbers of that SDK, which reads at most 15,001 rows."""
    driver = Driver()
    await driver.call(
        "CreateTable",
        table_meta={"table_name": "t", "primary_key": [{"name": name, "type": kind} for name, kind in KEYS]},
        reserved_throughput={"capacity_unit": {"read": 0, "write": 0}},
        table_options={"time_to_live": -1, "max_versions": versions},
    )
    for first in range(0, rows, 100):
        changes = [
            pb.RowInBatchWriteRowRequest(type="PUT", row_change=predefined(number), condition=IGNORE)
            for number in range(first, min(first + 100, rows))
        ]
        await driver.call("BatchWriteRow", tables=[pb.TableInBatchWriteRowRequest(table_name="t", rows=changes)])

    assert await read_all(driver, 15_001) == units


async def test_rows_of_different_columns_are_counted_alike(driver: Driver) -> None:
    sizes = [of(100), of(9000), of(5000)]
    for key, column in enumerate(sizes):
        await driver.put(key, column, put("w", 1))
    key_range = {"direction": "FORWARD", "inclusive_start_primary_key": LOW, "exclusive_end_primary_key": HIGH}

    assert await cost(driver, "GetRange", max_versions=1, **key_range) == (-(-(100 + 9000 + 5000 + 3 * 17) // 4096), 0)
