"""Forms of requests that public clients send, taken or refused as by the service: digests, sections, keys, batches."""

from __future__ import annotations

import base64
import hashlib

import pytest

from ots_tunnel.model import Marker, PrimaryKey
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.codec import decode_row, encode_primary_key, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from tests.support.emulator.emulator_driver import IGNORE, Driver, delete_all, increment, put
from tests.unit.emulator.tunnels.test_tunnel_checklist import answer_to, error_of, request_of, resigned

KEY: PrimaryKey = (("k", 1),)
DIGEST = (403, "OTSAuthFailed", "Mismatch between MD5 value of request body and x-ots-contentmd5 in header.")


def hexadecimal(body: bytes, *, upper: bool = True) -> str:
    """The digest as the public Elixir client sends it."""
    text = hashlib.md5(body).hexdigest()
    return base64.b64encode((text.upper() if upper else text).encode()).decode()


@pytest.mark.parametrize("upper", [True, False])
async def test_a_digest_may_be_of_hexadecimal_digits(driver: Driver, upper: bool) -> None:
    request = request_of(driver, "DescribeTable", table_name="t")
    right = resigned(request, contentmd5=hexadecimal(request.body, upper=upper))
    wrong = resigned(request, contentmd5=hexadecimal(b"other", upper=upper))

    assert (await answer_to(driver, right)).status == 200
    assert error_of(await answer_to(driver, wrong)) == DIGEST


async def test_the_digest_of_a_tunnel_call_is_of_bytes(driver: Driver) -> None:
    request = request_of(driver, "ListTunnel", table_name="t")

    answer = await answer_to(driver, resigned(request, contentmd5=hexadecimal(request.body)))

    assert error_of(answer) == DIGEST


def with_empty_section(row: bytes) -> bytes:
    """The same row with the tag of the attributes although there are none."""
    marker = 1 if row[-3] == 0x08 else 0
    return row[: -2 - marker] + b"\x02" + row[-2 - marker :]


@pytest.mark.parametrize("name", ["PutRow", "UpdateRow", "DeleteRow", "BatchWriteRow"])
async def test_a_section_of_attributes_has_attributes(driver: Driver, name: str) -> None:
    """The public Elixir client sends its tag with every put, and its adapter for Ecto expects the refusal."""
    row = with_empty_section(encode_row(KEY, delete=name == "DeleteRow"))
    batch_row = pb.RowInBatchWriteRowRequest(type="PUT", row_change=row, condition=IGNORE)
    fields = {
        "PutRow": {"table_name": "t", "row": row, "condition": IGNORE},
        "UpdateRow": {"table_name": "t", "row_change": row, "condition": IGNORE},
        "DeleteRow": {"table_name": "t", "primary_key": row, "condition": IGNORE},
        "BatchWriteRow": {"tables": [pb.TableInBatchWriteRowRequest(table_name="t", rows=[batch_row])]},
    }

    refused = await driver.refused(name, **fields[name])

    assert refused == (400, "OTSParameterInvalid", "Cell data broken, no Cells follow CellTag.")


async def test_only_a_deletion_has_a_marker_and_only_others_have_columns(driver: Driver) -> None:
    marked = encode_row(KEY, delete=True)
    filled = encode_row(KEY, [put("a", 1)], delete=True)

    refusals = [
        await driver.refused("PutRow", table_name="t", row=marked, condition=IGNORE),
        await driver.refused("UpdateRow", table_name="t", row_change=filled, condition=IGNORE),
        await driver.refused("DeleteRow", table_name="t", primary_key=filled, condition=IGNORE),
    ]

    unexpected = "Invalid request of put/update row: unexpected RowDeleteMarker in request."
    assert [text for _, _, text in refusals] == [
        unexpected,
        unexpected,
        "Invalid delete row request: unexpected cells in request.",
    ]


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (encode_row(KEY, [put("a", 1)]), "Attribute column cannot be given while reading data."),
        (encode_row(KEY, delete=True), "Delete marker cannot be given."),
        (encode_primary_key((("k", Marker.AUTO_INCREMENT),)), "PKAutoIncr can't be used for read operations."),
    ],
    ids=["columns", "marker", "placeholder"],
)
async def test_a_read_has_a_key_and_nothing_else(driver: Driver, key: bytes, text: str) -> None:
    asked = pb.TableInBatchGetRowRequest(table_name="t", primary_key=[key], max_versions=1)

    for refused in (
        await driver.refused("GetRow", table_name="t", primary_key=key, max_versions=1),
        await driver.refused("BatchGetRow", tables=[asked]),
    ):
        assert refused == (400, "OTSParameterInvalid", text)


TOGETHER = "cannot be given at the same time."


@pytest.mark.parametrize(
    ("max_versions", "times", "text"),
    [
        (0, None, "Invalid max versions: 0. Reason: Max versions must be positive."),
        (-2, None, "Invalid max versions: -2. Reason: Max versions must be positive."),
        (1, {"specific_time": 1}, f"Specific tiemstamp and max versions {TOGETHER}"),
        (None, {"specific_time": 1, "end_time": 2}, f"Specific tiemstamp and time range {TOGETHER}"),
        (1, {"specific_time": 1, "start_time": 0}, f"Specific timestamp, time range and max versions {TOGETHER}"),
        (None, {"specific_time": -1}, "Specific timestamp cannot be less than 0."),
        (None, {"start_time": 1}, "Start and end time must be given at the same time."),
        (1, {"end_time": 1}, "Start and end time must be given at the same time."),
    ],
)
async def test_versions_that_contradict_each_other_are_refused(
    driver: Driver, max_versions: int | None, times: dict[str, int] | None, text: str
) -> None:
    fields = {} if times is None else {"time_range": pb.TimeRange(**times)}

    refused = await driver.refused(
        "GetRow", table_name="t", primary_key=encode_primary_key(KEY), max_versions=max_versions, **fields
    )

    assert refused == (400, "OTSParameterInvalid", text)


async def test_minus_one_versions_are_all_of_them(driver: Driver) -> None:
    await driver.put(1, put("a", 1, driver.now_ms), put("a", 2, driver.now_ms + 1))

    row = await driver.get(1, max_versions=-1)

    assert row is not None
    assert [column.value for column in row.columns] == [2, 1]


async def test_a_batch_of_reads_takes_a_table_without_keys_and_versions(driver: Driver) -> None:
    await driver.put(1, put("a", 1))
    asked = pb.TableInBatchGetRowRequest(table_name="t", primary_key=[encode_primary_key(KEY)], max_versions=1)
    empty = pb.TableInBatchGetRowRequest(table_name="other")

    first, second = (await driver.call("BatchGetRow", tables=[asked, empty])).tables

    assert [decode_row(row.row).columns[0].value for row in first.rows] == [1]
    assert (second.table_name, list(second.rows)) == ("other", [])
    refused = await driver.refused("BatchGetRow", tables=[pb.TableInBatchGetRowRequest(table_name="#")])
    assert refused == (400, "OTSParameterInvalid", "Invalid table name: '#'.")


async def test_a_column_may_be_deleted_twice(driver: Driver) -> None:
    await driver.put(1, put("a", 1), put("b", 1))
    await driver.update(1, delete_all("a"), delete_all("a"))

    row = await driver.get(1)
    assert row is not None
    assert [column.name for column in row.columns] == ["b"]


@pytest.mark.parametrize("other", [increment("n", 2), put("n", 2)], ids=["increment", "put"])
async def test_a_column_that_is_incremented_comes_once(driver: Driver, other: Column) -> None:
    change = encode_row(KEY, [increment("n", 1), other])

    assert await driver.refused("UpdateRow", table_name="t", row_change=change, condition=IGNORE) == (
        400,
        "OTSParameterInvalid",
        "Duplicated attribute column name: 'n' while updating row.",
    )


async def test_only_an_integer_is_incremented(driver: Driver) -> None:
    await driver.put(1, put("n", "text"))
    change = encode_row(KEY, [increment("n", 1)])

    assert await driver.refused("UpdateRow", table_name="t", row_change=change, condition=IGNORE) == (
        400,
        "OTSParameterInvalid",
        "The column 'n' holds no integer, so it cannot be incremented.",
    )
