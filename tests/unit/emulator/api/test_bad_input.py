"""Requests that once broke the emulator, in their shortest form: the answer is a readable refusal."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import pytest

from ots_emulator import Emulator
from ots_emulator.refusal import Refusal
from ots_emulator.server.application import HANDLERS
from ots_emulator.server.auth import inflate
from ots_tunnel.errors import ServiceError
from ots_tunnel.protocol import table_pb2 as table
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.http.rpc import build_request
from ots_tunnel.protocol.http.signing import sign_response
from ots_tunnel.protocol.plainbuffer.codec import encode_primary_key
from ots_tunnel.protocol.plainbuffer.crc8 import crc8
from ots_tunnel.protocol.token import build_token, parse_token
from tests.support.emulator.emulator_driver import CREDENTIALS, IGNORE, Driver

KEY = encode_primary_key((("k", 1),))


def error_of(response: HttpResponse) -> tuple[int, str, str]:
    error = table.Error.FromString(response.body)
    return response.status, error.code, error.message


def filter_of_depth(depth: int) -> bytes:
    single = table.SingleColumnValueFilter(
        comparator="CT_EXIST", column_name="a", column_value=b"", filter_if_missing=True, latest_version_only=True
    )
    found = table.Filter(type="FT_SINGLE_COLUMN_VALUE", filter=single.SerializeToString())
    for _ in range(depth):
        outer = table.CompositeColumnValueFilter(combinator="LO_NOT", sub_filters=[found])
        found = table.Filter(type="FT_COMPOSITE_COLUMN_VALUE", filter=outer.SerializeToString())
    return found.SerializeToString()


@pytest.mark.parametrize(
    ("path", "headers"),
    [("/\udcff", {}), ("/ListTable", {"x-ots-date": "\udcff"}), ("/ListTable", {"x-ots-apiversion": "\udcff"})],
    ids=["path", "date", "version"],
)
async def test_bytes_that_are_not_utf_8_are_refused(path: str, headers: dict[str, str]) -> None:
    names = ("x-ots-date", "x-ots-accesskeyid", "x-ots-contentmd5", "x-ots-instancename")
    known = {"x-ots-apiversion": "2015-12-31", **dict.fromkeys(names, "x")}

    response = await Emulator().handle(HttpRequest(path, {**known, **headers}, b""))

    assert error_of(response)[:2] == (400, "OTSParameterInvalid")


async def test_a_signed_header_that_is_no_text_is_a_wrong_signature(driver: Driver) -> None:
    request = build_request(
        TABLE_OPERATIONS["ListTable"],
        table.ListTableRequest(),
        instance="demo",
        credentials=CREDENTIALS,
        now=driver.clock.now(),
        trace_id="t",
    )
    headers = {**request.headers, "x-ots-other": "\udcff"}

    response = await driver.emulator.handle(HttpRequest(request.path, headers, request.body))

    assert error_of(response) == (403, "OTSAuthFailed", "Signature mismatch.")


@pytest.mark.parametrize("depth", [500, 2000])
async def test_filters_within_filters_are_counted(driver: Driver, depth: int) -> None:
    with pytest.raises(ServiceError, match="The count of filter exceeds the max: 32"):
        await driver.get(1, filter=filter_of_depth(depth))


async def test_errors_before_authentication_are_signed_for_the_claimed_caller(driver: Driver) -> None:
    """The vendor's Python client checks the signature of every error but OTSAuthFailed."""
    headers = {"x-ots-accesskeyid": "test-id", "x-ots-instancename": "demo"}

    response = await driver.emulator.handle(HttpRequest("/Nothing", headers, b""))

    signature = sign_response("/Nothing", response.headers, "test-secret")
    assert response.headers["Authorization"] == f"OTS test-id:{signature}"


async def test_a_mistake_of_our_own_is_an_internal_error_with_a_line_in_the_log(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(call: object, request: object) -> bytes:
        raise KeyError("broken")

    monkeypatch.setitem(HANDLERS, "ListTable", broken)

    response = await driver.send("ListTable", table.ListTableRequest())

    assert error_of(response) == (500, "OTSInternalServerError", "Internal server error.")
    assert [record.message for record in caplog.records if record.exc_info] == ["call failed"]


def key_cell(value: bytes) -> bytes:
    """A row of one key column ``k`` with this type byte and payload, checksums right."""
    cell = crc8(b"k" + value)
    start = b"\x75\0\0\0\x01\x03\x04\x01\0\0\0k\x05" + len(value).to_bytes(4, "little")
    return start + value + bytes((0x0A, cell, 0x09, crc8(bytes((cell, 0)))))


def row_with(value: bytes) -> bytes:
    """A row of table ``t`` with one cell ``a`` of this type byte and payload, checksums right."""
    cell = crc8(b"a" + value)
    key = encode_primary_key((("k", 1),))[:-2]
    cells = b"\x02\x03\x04\x01\0\0\0a\x05" + len(value).to_bytes(4, "little") + value + bytes((0x0A, cell))
    return key + cells + bytes((0x09, crc8(bytes((key[-1], cell, 0)))))


async def put(driver: Driver, row: bytes) -> None:
    await driver.call("PutRow", table_name="t", row=row, condition=IGNORE)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("INTEGER", b"\x00"),
        ("INTEGER", b"\x00" + bytes(9)),
        ("STRING", b"\x03\x02\0\0\0\xff\xfe"),
        ("STRING", b"\x03\x01\0\0\0abc"),
        ("STRING", b"\x03"),
        ("BINARY", b"\x07\xff\xff\xff\xffab"),
    ],
)
async def test_unreadable_keys_are_refused(kind: str, value: bytes) -> None:
    driver = Driver()
    await driver.call(
        "CreateTable",
        table_meta={"table_name": "t", "primary_key": [{"name": "k", "type": kind}]},
        reserved_throughput={"capacity_unit": {"read": 0, "write": 0}},
        table_options={"time_to_live": -1, "max_versions": 1},
    )

    with pytest.raises(ServiceError, match="OTSParameterInvalid: Malformed primary key"):
        await put(driver, key_cell(value))


@pytest.mark.parametrize("value", [b"\x02\x02", b"\x03\0\0"], ids=["boolean", "cut"])
async def test_unreadable_values_are_refused(driver: Driver, value: bytes) -> None:
    with pytest.raises(ServiceError, match="The value of column 'a' has an invalid type or length"):
        await put(driver, row_with(value))


async def test_a_text_is_utf_8(driver: Driver) -> None:
    with pytest.raises(ServiceError, match="Value of column 'a' must be UTF8 encoding"):
        await put(driver, row_with(b"\x03\x02\0\0\0\xff\xfe"))


async def test_an_increment_without_a_value_is_refused(driver: Driver) -> None:
    key = KEY[:-2]
    cell = crc8(b"a\x04")
    row = (
        key + b"\x02\x03\x04\x01\0\0\0a\x05\0\0\0\0\x06\x04\x0a" + bytes((cell, 0x09, crc8(bytes((key[-1], cell, 0)))))
    )

    with pytest.raises(ServiceError, match="must be an integer when type is INCREMENT"):
        await driver.call("UpdateRow", table_name="t", row_change=row, condition=IGNORE)


async def test_a_channel_version_that_cannot_grow_is_refused(driver: Driver) -> None:
    tunnel = await driver.create_tunnel("BaseData")
    client = await driver.connect(tunnel)
    await driver.heartbeat(tunnel, client)

    with pytest.raises(ServiceError, match=r"OTSParameterInvalid: .*version"):
        await driver.heartbeat(tunnel, client, ("BaseData_0", 2**63 - 1, "CLOSE"))

    assert list(await driver.heartbeat(tunnel, client)) == ["BaseData_0"]


@pytest.mark.parametrize(
    "change",
    [
        {"total_count": 2**63 - 1},
        {"total_count": -1},
        {"timestamp": -1},
        {"timestamp": 2**63 - 1},
        {"iterator": "9" * 5000},
        {"iterator": "\N{ARABIC-INDIC DIGIT ONE}"},
        {"iterator": "1"},
    ],
    ids=["count", "negative count", "negative time", "time", "digits", "other digits", "behind the end"],
)
@pytest.mark.parametrize("call", ["ReadRecords", "Checkpoint"])
async def test_tokens_that_the_service_never_gave_are_refused(
    driver: Driver, call: str, change: dict[str, Any]
) -> None:
    tunnel = await driver.create_tunnel("Stream")
    (channel,) = await driver.channels(tunnel, "Stream")
    content = parse_token((await driver.checkpoint_of(tunnel, channel)).checkpoint)
    if "iterator" in change:
        change = {"iterator": f"{content.iterator.rpartition(':')[0]}:{change['iterator']}"}
    token = build_token(replace(content, **change))
    fields = {"token": token} if call == "ReadRecords" else {"checkpoint": token, "sequence_number": 1}

    with pytest.raises(ServiceError, match=r"OTSParameterInvalid: .*token"):
        await driver.call(call, tunnel_id=tunnel, client_id="", channel_id=channel, **fields)


async def test_a_compressed_body_that_ends_early_is_refused() -> None:
    with pytest.raises(Refusal, match="deflate"):
        inflate({"x-ots-request-compress-type": "deflate"}, zlib.compress(b"\x0a\x01t")[:-4], 1000)


async def test_an_error_does_not_repeat_megabytes_of_the_request(driver: Driver) -> None:
    status, _, message = error_of(await driver.emulator.handle(HttpRequest("/" + "x" * 10**6, {}, b"")))

    assert (status, len(message)) == (400, 2000)


async def test_names_of_columns_to_return_that_are_no_text_are_refused(driver: Driver) -> None:
    content = table.ReturnContent.FromString(b"\x08\x02\x12\x02\xff\xfe")
    row = {"type": "PUT", "row_change": KEY, "condition": IGNORE, "return_content": content}

    with pytest.raises(ServiceError, match="Parse PBMessage from RawString failed"):
        await driver.call("BatchWriteRow", tables=[{"table_name": "t", "rows": [row]}])


async def test_a_filter_on_a_column_whose_name_is_no_text_is_refused(driver: Driver) -> None:
    single = b"\x08\x01\x12\x01\xff\x1a\x09" + bytes(9) + b"\x20\x01\x28\x01"
    found = table.Filter(type="FT_SINGLE_COLUMN_VALUE", filter=single)

    with pytest.raises(ServiceError, match="Deserialize relation filter failed"):
        await driver.get(1, filter=found.SerializeToString())
