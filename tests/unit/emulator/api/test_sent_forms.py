"""Forms of requests that public clients send and the service takes: digests, sections, batches."""

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


@pytest.mark.parametrize("behind", [b"", b"\0"])
async def test_a_section_of_attributes_may_be_empty(driver: Driver, behind: bytes) -> None:
    """The public Elixir client sends its tag with every put."""
    key = with_empty_section(encode_primary_key(KEY)) + behind
    row = with_empty_section(encode_row(KEY)) + behind
    await driver.call("PutRow", table_name="t", row=row, condition=IGNORE)

    found = (await driver.call("GetRow", table_name="t", primary_key=key, max_versions=1)).row

    assert found == encode_row(KEY)
    delete = with_empty_section(encode_row(KEY, delete=True)) + behind
    await driver.call("DeleteRow", table_name="t", primary_key=delete, condition=IGNORE)
    assert await driver.get(1) is None


async def test_an_update_with_an_empty_section_has_no_columns(driver: Driver) -> None:
    refused = await driver.refused(
        "UpdateRow", table_name="t", row_change=with_empty_section(encode_row(KEY)), condition=IGNORE
    )

    assert refused == (400, "OTSParameterInvalid", "Attribute column is missing.")


async def test_a_row_in_a_batch_is_stored_without_the_tag_of_no_attributes(driver: Driver) -> None:
    changes = [with_empty_section(encode_row(KEY)), encode_row((("k", 2),), [put("a", 1)])]
    rows = [pb.RowInBatchWriteRowRequest(type="PUT", row_change=each, condition=IGNORE) for each in changes]
    for atomic in (False, True):
        batch = pb.TableInBatchWriteRowRequest(table_name="t", rows=rows[:1] if atomic else rows)
        (answer,) = (await driver.call("BatchWriteRow", tables=[batch], is_atomic=atomic)).tables
        assert all(row.is_ok for row in answer.rows)

    low, high = (encode_primary_key((("k", marker),)) for marker in (Marker.INF_MIN, Marker.INF_MAX))
    ends = {"inclusive_start_primary_key": low, "exclusive_end_primary_key": high}
    span = await driver.call("GetRange", table_name="t", direction="FORWARD", max_versions=1, limit=1, **ends)
    assert span.rows == encode_row(KEY)


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
