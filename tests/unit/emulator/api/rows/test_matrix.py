"""Ranges that are answered as a matrix of rows."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from ots_tunnel.errors import ServiceError
from ots_tunnel.model import Marker
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.codec import encode_primary_key, encode_row
from ots_tunnel.protocol.plainbuffer.crc8 import crc8
from tests.support.emulator.emulator_driver import IGNORE, Driver, put
from tests.support.emulator.row_matrix import read_matrix

MIN, MAX = ((("k", marker), ("s", marker)) for marker in (Marker.INF_MIN, Marker.INF_MAX))


@pytest.fixture
async def two() -> Driver:
    driver = Driver()
    keys = [pb.PrimaryKeySchema(name="k", type="INTEGER"), pb.PrimaryKeySchema(name="s", type="STRING")]
    await driver.call(
        "CreateTable",
        table_meta=pb.TableMeta(table_name="two", primary_key=keys),
        reserved_throughput=pb.ReservedThroughput(capacity_unit=pb.CapacityUnit(read=0, write=0)),
        table_options=pb.TableOptions(time_to_live=-1, max_versions=3),
    )
    for key, columns in (
        ((("k", 1), ("s", "x")), [put("a", 7), put("b", "yz"), put("c", 1.5)]),
        ((("k", 2), ("s", "é")), [put("b", b"\0"), put("a", True)]),
        ((("k", 3), ("s", "")), [put("d", 1)]),
    ):
        await driver.call("PutRow", table_name="two", row=encode_row(key, columns), condition=IGNORE)
    return driver


async def matrix(driver: Driver, *columns: str, **fields: Any) -> Any:
    return await driver.call(
        "GetRange",
        table_name="two",
        direction="FORWARD",
        inclusive_start_primary_key=encode_primary_key(MIN),
        exclusive_end_primary_key=encode_primary_key(MAX),
        columns_to_get=columns,
        **{"max_versions": 1, "data_block_type_hint": "DBT_SIMPLE_ROW_MATRIX", **fields},
    )


def named(*names: str) -> bytes:
    return b"".join(struct.pack("<h", len(name)) + name.encode() for name in names)


def integer(value: int) -> bytes:
    return b"\0" + struct.pack("<q", value)


def text(value: str) -> bytes:
    return b"\3" + struct.pack("<i", len(value.encode())) + value.encode()


def closed(block: bytes) -> bytes:
    block += b"\1"
    return block + bytes((crc8(block),))


async def test_columns_are_named_once_and_missing_values_are_marked(two: Driver) -> None:
    answer = await matrix(two, "b", "a")

    names = named("k", "s", "b", "a")
    options_at = 20 + len(names)
    expected = (
        b"SRM0"
        + struct.pack("<4i", options_at + 7, options_at, 2, 2)
        + names
        + b"\x0a\1\3\2\0\0\0"
        + (b"\2" + integer(1) + text("x") + text("yz") + integer(7))
        + (b"\2" + integer(2) + text("é") + b"\7\1\0\0\0\0" + b"\2\1")
    )
    assert answer.rows == closed(expected)
    assert read_matrix(answer.rows) == [
        {"k": 1, "s": "x", "b": "yz", "a": 7},
        {"k": 2, "s": "é", "b": b"\0", "a": True},
    ]
    assert answer.data_block_type == pb.DBT_SIMPLE_ROW_MATRIX
    assert (answer.consumed.capacity_unit.read, answer.consumed.capacity_unit.write) == (1, 0)


async def test_key_columns_that_are_not_requested_may_be_left_out(two: Driver) -> None:
    answer = await matrix(two, "s", "c", return_entire_primary_keys=False, limit=2)

    names = named("s", "c")
    options_at = 20 + len(names)
    expected = (
        b"SRM0"
        + struct.pack("<4i", options_at + 7, options_at, 1, 1)
        + names
        + b"\x0a\0\3\2\0\0\0"
        + (b"\2" + text("x") + b"\1" + struct.pack("<d", 1.5))
        + (b"\2" + text("é") + b"\6")
    )
    assert answer.rows == closed(expected)
    assert answer.next_start_primary_key


async def test_no_rows_are_no_bytes(two: Driver) -> None:
    answer = await matrix(two, "none")

    assert (answer.rows, answer.data_block_type) == (b"", pb.DBT_SIMPLE_ROW_MATRIX)


async def test_a_matrix_needs_columns(two: Driver) -> None:
    with pytest.raises(ServiceError, match=r"DBT_SIMPLE_ROW_MATRIX need at least one column to get\. \(http 400"):
        await matrix(two)


async def test_of_several_versions_a_matrix_has_the_newest(two: Driver) -> None:
    row = encode_row((("k", 1), ("s", "x")), [put("a", 8, two.now_ms + 1), put("a", 9, two.now_ms)])
    await two.call("PutRow", table_name="two", row=row, condition=IGNORE)
    answer = await matrix(two, "a", max_versions=3, limit=1)

    assert answer.rows[:-2].endswith(b"\2" + integer(1) + text("x") + integer(8))


async def test_a_plain_answer_says_that_it_is_one_if_asked(two: Driver) -> None:
    answer = await matrix(two, data_block_type_hint="DBT_PLAIN_BUFFER")

    assert answer.HasField("data_block_type")
    assert answer.rows.startswith(b"\x75\0\0\0")
