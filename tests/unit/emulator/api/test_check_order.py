"""Which of several mistakes in one read is named: that of the table's name, the filter, the versions, then the key."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel.model import Marker, PrimaryKey
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.codec import encode_primary_key, encode_row
from tests.support.emulator.emulator_driver import IGNORE, Driver, put

KEY = encode_primary_key((("k", 1),))
BAD_NAME = "Invalid table name: '#'."
BAD_FILTER = "Invalid NOT operator: the number of sub-filters must be 1."
NO_VERSIONS = {"BatchGetRow": "No version condition is specified while querying row."}
_NOT = pb.CompositeColumnValueFilter(combinator="LO_NOT").SerializeToString()
FILTER = pb.Filter(type="FT_COMPOSITE_COLUMN_VALUE", filter=_NOT).SerializeToString()


def read(name: str, **fields: Any) -> dict[str, Any]:
    """A read of one of the three calls."""
    if name == "GetRow":
        return {"primary_key": KEY, **fields}
    if name == "BatchGetRow":
        return {"tables": [pb.TableInBatchGetRowRequest(primary_key=[KEY], **fields)]}
    return {"direction": "FORWARD", "inclusive_start_primary_key": KEY, "exclusive_end_primary_key": KEY, **fields}


@pytest.mark.parametrize("name", ["GetRow", "BatchGetRow", "GetRange"])
async def test_the_first_of_several_mistakes_is_named(driver: Driver, name: str) -> None:
    everything = await driver.refused(name, **read(name, table_name="#", filter=FILTER))
    without_name = await driver.refused(name, **read(name, table_name="t", filter=FILTER))
    without_filter = await driver.refused(name, **read(name, table_name="t"))
    unknown_table = await driver.refused(name, **read(name, table_name="none"))

    assert everything == (400, "OTSParameterInvalid", BAD_NAME)
    assert without_name == (400, "OTSParameterInvalid", BAD_FILTER)
    message = NO_VERSIONS.get(name, "No version condition is specified.")
    assert without_filter == unknown_table == (400, "OTSParameterInvalid", message)


async def create_two(driver: Driver) -> None:
    keys = [pb.PrimaryKeySchema(name="k", type="INTEGER"), pb.PrimaryKeySchema(name="s", type="STRING")]
    await driver.call(
        "CreateTable",
        table_meta=pb.TableMeta(table_name="two", primary_key=keys),
        reserved_throughput=pb.ReservedThroughput(capacity_unit=pb.CapacityUnit(read=0, write=0)),
        table_options=pb.TableOptions(time_to_live=-1, max_versions=1),
    )


def ends(begin: PrimaryKey, end: PrimaryKey) -> dict[str, Any]:
    return {
        "table_name": "two",
        "direction": "FORWARD",
        "max_versions": 1,
        "inclusive_start_primary_key": encode_primary_key(begin),
        "exclusive_end_primary_key": encode_primary_key(end),
    }


RIGHT: PrimaryKey = (("k", 5), ("s", "x"))
WRONG_ORDER: PrimaryKey = (("s", "x"), ("k", 5))


@pytest.mark.parametrize(
    ("begin", "end", "code", "message"),
    [
        (WRONG_ORDER, RIGHT, "OTSInvalidPK", "Validate PK name fail. Input: s, Meta: k."),
        (RIGHT, WRONG_ORDER, "OTSInvalidPK", "Validate PK name fail. Input: s, Meta: k."),
        (RIGHT[:1], RIGHT, "OTSInvalidPK", "Validate PK size fail. Input: 1, Meta: 2."),
        (
            (("k", "a"), ("s", "x")),
            RIGHT,
            "OTSInvalidPK",
            "Validate PK type fail. Input: VT_STRING, Meta: VT_INTEGER.",
        ),
        (
            RIGHT,
            (("k", "a"), ("s", "x")),
            "OTSParameterInvalid",
            "invalid range, the begin's type is different from the end's,VT_INTEGER:VT_STRING",
        ),
        (
            (("k", Marker.INF_MIN), ("s", Marker.INF_MIN)),
            (("k", "a"), ("s", "x")),
            "OTSInvalidPK",
            "Validate PK type fail. Input: VT_STRING, Meta: VT_INTEGER.",
        ),
        (RIGHT, (("k", 1), ("s", "x")), "OTSParameterInvalid", "Begin key must less than end key in FORWARD"),
    ],
)
async def test_the_ends_of_a_range_are_compared_with_the_table_first(
    driver: Driver, begin: PrimaryKey, end: PrimaryKey, code: str, message: str
) -> None:
    await create_two(driver)

    assert await driver.refused("GetRange", **ends(begin, end)) == (400, code, message)


async def test_a_malformed_column_condition_refuses_the_request_before_any_row_is_written(driver: Driver) -> None:
    condition = pb.Condition(row_existence="EXPECT_EXIST", column_condition=FILTER)
    rows = [
        pb.RowInBatchWriteRowRequest(type="PUT", row_change=encode_row((("k", key),), [put("v", 1)]), condition=each)
        for key, each in ((1, IGNORE), (2, condition))
    ]
    batch = pb.TableInBatchWriteRowRequest(table_name="t", rows=rows)

    refused = (400, "OTSParameterInvalid", BAD_FILTER)
    assert await driver.refused("BatchWriteRow", tables=[batch]) == refused
    assert await driver.get(1) is None
    row = rows[1].row_change
    for table in ("t", "none"):
        assert await driver.refused("PutRow", table_name=table, row=row, condition=condition) == refused
    bad_name = (400, "OTSParameterInvalid", BAD_NAME)
    assert await driver.refused("PutRow", table_name="#", row=row, condition=condition) == bad_name
    batch.table_name = "#"
    assert await driver.refused("BatchWriteRow", tables=[batch]) == bad_name
