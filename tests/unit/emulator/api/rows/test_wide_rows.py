"""Rows that are wider than an answer are returned in parts."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel.errors import ServiceError
from ots_tunnel.model import Marker
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.codec import DecodedRow, decode_row, decode_rows, encode_primary_key
from tests.support.emulator.emulator_driver import Driver, put

LOW, HIGH = (("k", Marker.INF_MIN),), (("k", Marker.INF_MAX),)


@pytest.fixture
async def driver() -> Driver:
    driver = Driver(range_bytes=500)
    await driver.create_table()
    await driver.put(1, put("a", 1))
    await driver.put(2, *(put(f"c{number:02}", number) for number in range(40)))
    await driver.put(3, put("a", 3))
    return driver


async def parts_of_get(driver: Driver, **fields: Any) -> list[DecodedRow]:
    parts, token = [], None
    while True:
        answer = await driver.call(
            "GetRow", table_name="t", primary_key=encode_primary_key((("k", 2),)), max_versions=1, token=token, **fields
        )
        parts.append(decode_row(answer.row))
        token = answer.next_token
        if not token:
            return parts


async def test_a_row_comes_in_parts(driver: Driver) -> None:
    parts = await parts_of_get(driver)

    assert len(parts) > 2
    assert [column.name for part in parts for column in part.columns] == [f"c{number:02}" for number in range(40)]
    assert {part.primary_key for part in parts} == {(("k", 2),)}


async def test_the_parts_hold_only_the_selected_columns(driver: Driver) -> None:
    parts = await parts_of_get(driver, start_column="c10", end_column="c35")

    assert [column.value for part in parts for column in part.columns] == list(range(10, 35))


@pytest.mark.parametrize("direction", ["FORWARD", "BACKWARD"])
async def test_a_range_stops_inside_a_row_and_resumes_there(driver: Driver, direction: str) -> None:
    start, end = (LOW, HIGH) if direction == "FORWARD" else (HIGH, LOW)
    following, token, seen = encode_primary_key(start), None, list[tuple[int, int]]()
    answers = 0
    while following:
        answer = await driver.call(
            "GetRange",
            table_name="t",
            direction=direction,
            max_versions=1,
            inclusive_start_primary_key=following,
            exclusive_end_primary_key=encode_primary_key(end),
            token=token,
        )
        answers += 1
        for row in decode_rows(answer.rows):
            seen += [(int(row.primary_key[0][1]), int(column.value)) for column in row.columns]
        following, token = answer.next_start_primary_key, answer.next_token

    wide = [(2, number) for number in range(40)]
    expected = [(1, 1), *wide, (3, 3)]
    assert seen == (expected if direction == "FORWARD" else [(3, 3), *wide, (1, 1)])
    assert answers > 3


async def test_a_malformed_token_is_refused(driver: Driver) -> None:
    with pytest.raises(ServiceError, match="Invalid token"):
        await driver.call(
            "GetRow", table_name="t", primary_key=encode_primary_key((("k", 2),)), max_versions=1, token=b"x"
        )


async def test_each_row_of_a_batch_comes_in_its_own_parts(driver: Driver) -> None:
    keys = [encode_primary_key((("k", key),)) for key in (1, 2)]
    tokens, seen = [b"", b""], list[str]()
    while True:
        asked = pb.TableInBatchGetRowRequest(table_name="t", primary_key=keys, token=tokens, max_versions=1)
        ((narrow, wide),) = [table.rows for table in (await driver.call("BatchGetRow", tables=[asked])).tables]
        assert [column.name for column in decode_row(narrow.row).columns] == ["a"]
        assert not narrow.next_token
        seen += [column.name for column in decode_row(wide.row).columns]
        tokens = [b"", wide.next_token]
        if not wide.next_token:
            break

    assert seen == [f"c{number:02}" for number in range(40)]


async def test_a_batch_has_a_token_for_every_row_or_for_none(driver: Driver) -> None:
    keys = [encode_primary_key((("k", key),)) for key in (1, 2)]
    asked = pb.TableInBatchGetRowRequest(table_name="t", primary_key=keys, token=[b""], max_versions=1)
    with pytest.raises(ServiceError, match="number of tokens must be that of the rows: 2, found: 1"):
        await driver.call("BatchGetRow", tables=[asked])


async def test_a_window_of_columns_is_cut_before_the_row_is(driver: Driver) -> None:
    page = pb.ColumnPaginationFilter(offset=5, limit=30)
    window = pb.Filter(type="FT_COLUMN_PAGINATION", filter=page.SerializeToString()).SerializeToString()

    parts = await parts_of_get(driver, filter=window)

    assert [column.value for part in parts for column in part.columns] == list(range(5, 35))
