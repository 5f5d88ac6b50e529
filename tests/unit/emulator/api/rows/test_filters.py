"""Filters of reads and column conditions of writes, with typed messages."""

from __future__ import annotations

from typing import Any

import pytest

from ots_emulator.api.rows.patterns import WORK, Work, pattern_of
from ots_tunnel.errors import ServiceError
from ots_tunnel.model import Marker, Value
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.codec import decode_primary_key, encode_primary_key, encode_row, encode_value
from ots_tunnel.protocol.plainbuffer.column import Column
from tests.support.emulator.emulator_driver import Driver, put

T = 1_700_000_000_000
KEY = encode_primary_key((("k", 1),))
LOW, HIGH = (("k", Marker.INF_MIN),), (("k", Marker.INF_MAX),)


def single(
    column: str, comparator: str, value: Value = 0, *, strict: bool = True, latest: bool = True, **fields: Any
) -> bytes:
    condition = pb.SingleColumnValueFilter(
        comparator=f"CT_{comparator}",
        column_name=column,
        column_value=encode_value(value),
        filter_if_missing=strict,
        latest_version_only=latest,
        **fields,
    )
    return pb.Filter(type="FT_SINGLE_COLUMN_VALUE", filter=condition.SerializeToString()).SerializeToString()


def joined(combinator: str, *parts: bytes) -> bytes:
    composite = pb.CompositeColumnValueFilter(
        combinator=f"LO_{combinator}",
        sub_filters=[pb.Filter.FromString(part) for part in parts],
    )
    return pb.Filter(type="FT_COMPOSITE_COLUMN_VALUE", filter=composite.SerializeToString()).SerializeToString()


def window(offset: int, limit: int) -> bytes:
    page = pb.ColumnPaginationFilter(offset=offset, limit=limit)
    return pb.Filter(type="FT_COLUMN_PAGINATION", filter=page.SerializeToString()).SerializeToString()


async def names(driver: Driver, **fields: Any) -> list[str] | None:
    row = await driver.get(1, **fields)
    return None if row is None else [column.name for column in row.columns]


@pytest.fixture
async def driver(driver: Driver) -> Driver:
    await driver.put(
        1, put("a", 1, T + 10), put("a", 2, T + 20), put("b", "x"), put("c", 1.5), put("d", True), put("e", b"1")
    )
    return driver


@pytest.mark.parametrize(
    ("comparator", "passing"),
    [
        ("EQUAL", [2]),
        ("NOT_EQUAL", [1, 3]),
        ("GREATER_THAN", [1]),
        ("GREATER_EQUAL", [1, 2]),
        ("LESS_THAN", [3]),
        ("LESS_EQUAL", [2, 3]),
    ],
)
async def test_comparators(driver: Driver, comparator: str, passing: list[int]) -> None:
    found = [value for value in (1, 2, 3) if await names(driver, filter=single("a", comparator, value)) is not None]

    assert found == passing


@pytest.mark.parametrize(
    ("column", "value"), [("b", "x"), ("c", 1.5), ("d", True), ("e", b"1"), ("k", 1)], ids=lambda value: str(value)
)
async def test_values_of_every_type_compare(driver: Driver, column: str, value: Value) -> None:
    assert await names(driver, filter=single(column, "EQUAL", value)) is not None
    assert await names(driver, filter=single(column, "NOT_EQUAL", value)) is None
    assert await names(driver, filter=single(column, "EQUAL", 7)) is None


async def test_existence(driver: Driver) -> None:
    assert await names(driver, filter=single("a", "EXIST")) is not None
    assert await names(driver, filter=single("a", "NOT_EXIST")) is None
    assert await names(driver, filter=single("z", "NOT_EXIST")) is not None


@pytest.mark.parametrize("strict", [True, False])
async def test_a_missing_column_fails_only_on_request(driver: Driver, strict: bool) -> None:
    found = await names(driver, filter=single("z", "EQUAL", 1, strict=strict))

    assert (found is None) == strict


async def test_older_versions_count_on_request(driver: Driver) -> None:
    assert await names(driver, filter=single("a", "EQUAL", 1)) is None
    assert await names(driver, filter=single("a", "EQUAL", 1, latest=False)) is not None
    # Only versions that the read selects.
    assert await names(driver, max_versions=1, filter=single("a", "EQUAL", 1, latest=False)) is None
    times = pb.TimeRange(start_time=T + 5, end_time=T + 15)
    assert await names(driver, time_range=times, filter=single("a", "EQUAL", 1)) == ["a"]


@pytest.mark.parametrize("selection", [{"columns_to_get": ["b"]}, {"start_column": "b"}], ids=["names", "range"])
async def test_a_filter_sees_the_selected_cells(driver: Driver, selection: dict[str, Any]) -> None:
    assert await names(driver, filter=single("a", "EQUAL", 2), **selection) is None
    assert await names(driver, filter=single("a", "EQUAL", 2, strict=False), **selection) is not None
    assert await names(driver, filter=single("k", "EQUAL", 1), **selection) is not None


async def test_filters_are_joined(driver: Driver) -> None:
    yes, no = single("a", "EQUAL", 2), single("a", "EQUAL", 3)
    found = {
        "and": await names(driver, filter=joined("AND", yes, yes, no)),
        "or": await names(driver, filter=joined("OR", no, no, yes)),
        "not": await names(driver, filter=joined("NOT", no)),
        "not and": await names(driver, filter=joined("NOT", joined("AND", yes, yes))),
    }

    assert {name for name, columns in found.items() if columns is not None} == {"or", "not"}


ONE = "Invalid NOT operator: the number of sub-filters must be 1."
SEVERAL = "Invalid AND/OR operator: the number of sub-filters must be more than 1."
MANY = "The count of filter exceeds the max: 32."


@pytest.mark.parametrize(
    ("combinator", "count", "message"),
    [
        *(("NOT", 2, ONE), ("NOT", 0, ONE), ("NOT", 31, ONE), ("NOT", 1000, MANY)),
        *(("AND", 1, SEVERAL), ("OR", 0, SEVERAL), ("AND", 32, MANY), ("OR", 1000, MANY)),
    ],
)
async def test_joins_need_their_number_of_parts(driver: Driver, combinator: str, count: int, message: str) -> None:
    """The join itself counts as one of the 32."""
    condition = joined(combinator, *[single("a", "EQUAL", 2)] * count)
    refused = (400, "OTSParameterInvalid", message)

    assert await refusals(driver, condition) == [refused] * 4


async def test_thirty_two_filters_are_enough(driver: Driver) -> None:
    yes = single("a", "EQUAL", 2)

    assert await names(driver, filter=joined("AND", *[yes] * 31)) is not None
    assert await names(driver, filter=joined("AND", *[yes] * 29, joined("NOT", yes))) is None


@pytest.mark.parametrize("value", ["a" * 2_097_153, b"a" * 2_097_153], ids=["text", "binary"])
async def test_a_filter_compares_with_values_that_a_column_can_have(driver: Driver, value: str | bytes) -> None:
    message = "The length of attribute column: 'a' exceeds the MaxLength:2097152 with CurrentLength:2097153."
    alone = single("a", "EQUAL", value)

    for condition in (alone, joined("OR", alone, single("b", "EQUAL", 1))):
        assert await refusals(driver, condition) == [(400, "OTSParameterInvalid", message)] * 4
    assert await names(driver, filter=single("a", "EQUAL", value[:-1])) is None


async def test_a_filter_names_a_column_that_can_be(driver: Driver) -> None:
    name = "x" * 256

    refused = (400, "OTSParameterInvalid", f"Invalid column name: '{name}'.")
    assert await refusals(driver, single(name, "EQUAL", 1)) == [refused] * 4


async def refusals(driver: Driver, condition: bytes) -> list[tuple[int, str, str]]:
    """How each call that takes a filter or a column condition refuses it."""
    asked = pb.TableInBatchGetRowRequest(table_name="t", primary_key=[KEY], max_versions=1, filter=condition)
    ends = {
        "inclusive_start_primary_key": encode_primary_key(LOW),
        "exclusive_end_primary_key": encode_primary_key(HIGH),
    }
    return [
        await driver.refused("GetRow", table_name="t", primary_key=KEY, max_versions=1, filter=condition),
        await driver.refused("BatchGetRow", tables=[asked]),
        await driver.refused("GetRange", table_name="t", direction="FORWARD", max_versions=1, filter=condition, **ends),
        await driver.refused(
            "DeleteRow",
            table_name="t",
            primary_key=encode_row((("k", 1),), delete=True),
            condition=pb.Condition(row_existence="IGNORE", column_condition=condition),
        ),
    ]


async def test_pages_of_columns(driver: Driver) -> None:
    assert await names(driver, filter=window(0, 2)) == ["a", "a", "b"]
    assert await names(driver, max_versions=1, filter=window(1, 2)) == ["b", "c"]
    assert await names(driver, filter=window(9, 2)) == []
    assert await names(driver, filter=joined("AND", window(0, 1), single("b", "EQUAL", "x"))) == ["a", "a"]
    with pytest.raises(ServiceError, match="Offset in ColumnPaginationFilter must be greater than or equal to 0"):
        await names(driver, filter=window(-1, 2))
    with pytest.raises(ServiceError, match="Limit in ColumnPaginationFilter must be greater than 0"):
        await names(driver, filter=window(0, 0))


async def test_an_empty_page_can_have_a_next_key() -> None:
    driver = Driver(range_rows=10)
    await driver.create_table()
    await driver.fill(25)
    no = single("v", "EQUAL", 24)

    keys, following = await driver.range(LOW, HIGH, filter=no)
    assert keys == []
    assert following

    keys, following = await driver.range((("k", 20),), HIGH, filter=no)
    assert keys == [24]
    assert not following


@pytest.mark.parametrize("strict", [True, False])
async def test_a_condition_on_a_missing_row_is_one_on_a_missing_column(driver: Driver, strict: bool) -> None:
    condition = pb.Condition(row_existence="IGNORE", column_condition=single("a", "EQUAL", 1, strict=strict))
    row = encode_row((("k", 9),), [Column("a", 5)])
    if strict:
        with pytest.raises(ServiceError, match="OTSConditionCheckFail"):
            await driver.call("PutRow", table_name="t", row=row, condition=condition)
    else:
        await driver.call("PutRow", table_name="t", row=row, condition=condition)

    assert (await driver.get(9) is None) == strict


@pytest.mark.parametrize("name", ["", "#a", "a" * 256])
async def test_names_of_columns_to_get_are_checked_before_versions(driver: Driver, name: str) -> None:
    with pytest.raises(ServiceError, match=f"Invalid column name: '{name}'"):
        await names(driver, columns_to_get=[name], max_versions=0)


def part(regex: str, cast: Any = None) -> dict[str, Any]:
    return {"value_trans_rule": pb.ValueTransferRule(regex=regex, cast_type=cast)}


@pytest.mark.parametrize(
    ("value", "comparator", "rule", "passing"),
    [
        (12345, "EQUAL", part("updated:([0-9]+)}", "VT_INTEGER"), True),
        (12000, "GREATER_THAN", part("updated:([0-9]+)}", "VT_INTEGER"), True),
        (13000, "GREATER_THAN", part("updated:([0-9]+)}", "VT_INTEGER"), False),
        (12345.0, "EQUAL", part("updated:([0-9]+)}", "VT_DOUBLE"), True),
        ("12345", "EQUAL", part("updated:([0-9]+)}", "VT_STRING"), True),
        ("n1", "EQUAL", part("n[0-9]"), True),
        # A value that does not match or is not a number counts as missing.
        (1, "NOT_EQUAL", part("absent:(.)"), False),
        (1, "NOT_EQUAL", part("name:(..)", "VT_INTEGER"), False),
    ],
)
async def test_a_part_of_a_text_is_compared(
    driver: Driver, value: Value, comparator: str, rule: dict[str, Any], passing: bool
) -> None:
    await driver.put(1, put("a", "{name:n1,updated:12345}"))

    assert (await names(driver, filter=single("a", comparator, value, **rule)) is not None) == passing


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (part("("), r"Invalid filter: regex of value_trans_rule: missing \)"),
        (
            part("a", "VT_BLOB"),
            "cast_type of value_trans_rule must be VT_INTEGER, VT_DOUBLE or VT_STRING, found: VT_BLOB",
        ),
    ],
)
async def test_rules_that_cannot_be_applied_are_refused(driver: Driver, rule: dict[str, Any], message: str) -> None:
    with pytest.raises(ServiceError, match=message):
        await names(driver, filter=single("a", "EQUAL", 1, **rule))


async def test_a_range_whose_expression_has_much_to_do_comes_in_more_pages(driver: Driver) -> None:
    keys = list(range(20))
    for key in keys:
        await driver.put(key, put("a", "ab" * 8192))
    heavy = single("a", "NOT_EQUAL", "x", strict=False, **part("(a|b)*?a(a|b){60}c"))

    first, following = await driver.range(LOW, HIGH, filter=heavy)
    second, end = await driver.range(decode_primary_key(following), HIGH, filter=heavy)

    assert first + second == keys
    assert len(first) < len(keys)
    assert not end


async def test_a_row_for_which_an_expression_has_no_work_left_begins_the_next_page(driver: Driver) -> None:
    """Each row has enough by itself: less than half of the work, and then more than is left."""
    expression = "(x" + "[ab]{900}" * 5 + "y)"
    states = pattern_of(expression, Work()).states
    for key, share in enumerate((0.3, 0.75, 0.1)):
        await driver.put(key, put("a", "q" * min(16_384, int(share * WORK / states))))
    heavy = single("a", "NOT_EQUAL", "x", strict=False, **part(expression))

    pages, start = [], LOW
    while start:
        found, following = await driver.range(start, HIGH, filter=heavy)
        pages.append(found)
        start = decode_primary_key(following) if following else ()

    assert pages == [[0], [1], [2]]
