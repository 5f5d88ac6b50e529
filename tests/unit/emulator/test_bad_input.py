"""Requests that once broke the emulator, each as short as it can be: the answer is a refusal that can be read."""

from __future__ import annotations

import pytest

from ots_emulator import Emulator
from ots_emulator.app import HANDLERS
from ots_tunnel.errors import ServiceError
from ots_tunnel.protocol import table_pb2 as table
from ots_tunnel.protocol.http import HttpRequest, HttpResponse
from ots_tunnel.protocol.plainbuffer import encode_primary_key
from ots_tunnel.protocol.rpc import TABLE_OPERATIONS, build_request
from ots_tunnel.protocol.signing import sign_response
from tests.unit.emulator.driver import CREDENTIALS, Driver

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
async def test_bytes_that_are_no_text_are_refused(path: str, headers: dict[str, str]) -> None:
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


async def test_errors_before_authentication_are_signed_for_who_the_caller_says_to_be(driver: Driver) -> None:
    """The vendor's Python client checks the signature of every error but OTSAuthFailed."""
    headers = {"x-ots-accesskeyid": "test-id", "x-ots-instancename": "demo"}

    response = await driver.emulator.handle(HttpRequest("/Nothing", headers, b""))

    signature = sign_response("/Nothing", response.headers, "test-secret")
    assert response.headers["authorization"] == f"OTS test-id:{signature}"


async def test_a_mistake_of_our_own_is_an_internal_error_with_a_line_in_the_log(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(call: object, request: object) -> bytes:
        raise KeyError("broken")

    monkeypatch.setitem(HANDLERS, "ListTable", broken)  # type: ignore[arg-type]

    response = await driver.send("ListTable", table.ListTableRequest())

    assert error_of(response) == (500, "OTSInternalServerError", "Internal server error.")
    assert [record.message for record in caplog.records if record.exc_info] == ["call failed"]
