"""Calls for unsupported features are answered as for a table without them; unknown calls are named."""

from __future__ import annotations

import pytest

from ots_emulator.api.unsupported import HANDLERS, OPERATIONS_BY_PATH
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.operations import TABLE_API_VERSION, Operation
from ots_tunnel.protocol.http.rpc import build_request
from tests.support.emulator.emulator_driver import CREDENTIALS, Driver

LISTS = ("ListSearchIndex", "ListDeliveryTask")
SERIES = sorted(name for name in HANDLERS if "Timeseries" in name and name != "ListTimeseriesTable")
PARTS = sorted(set(HANDLERS) - {*LISTS, *SERIES, "ListTimeseriesTable"})
UNSUPPORTED = (
    "SQLQuery",
    "CreateIndex",
    "CreateSearchIndex",
    "CreateTimeseriesTable",
    "CreateDeliveryTask",
    "CreateGlobalTable",
    "AddDefinedColumn",
    "BulkImport",
    "NoSuchCall",
    "tunnel/nosuchcall",
)


async def answer(driver: Driver, name: str, body: bytes) -> tuple[int, str, str]:
    operation = OPERATIONS_BY_PATH.get(f"/{name}") or Operation(
        name, f"/{name}", pb.ListStreamRequest, pb.ListStreamResponse, idempotent=True, api_version=TABLE_API_VERSION
    )
    request = build_request(
        operation, body, instance="demo", credentials=CREDENTIALS, now=driver.clock.now(), trace_id="t"
    )
    response = await driver.emulator.handle(request)
    if response.status == 200:
        return 200, "", response.body.decode()
    error = pb.Error.FromString(response.body)
    return response.status, error.code, error.message


def named(table: str) -> bytes:
    # The other fields are ignored: here an index by name, and a number.
    return pb.ListStreamRequest(table_name=table).SerializeToString() + b"\x12\x01i\x30\x05"


@pytest.mark.parametrize("name", LISTS)
async def test_lists_are_empty(driver: Driver, name: str) -> None:
    assert await answer(driver, name, named("t")) == (200, "", "")
    assert await answer(driver, name, b"") == (200, "", "")
    assert (await answer(driver, name, named("none")))[:2] == (404, "OTSObjectNotExist")
    assert await answer(driver, "ListTimeseriesTable", b"") == (200, "", "")


@pytest.mark.parametrize("name", PARTS)
async def test_a_named_index_or_task_does_not_exist(driver: Driver, name: str) -> None:
    status, code, message = await answer(driver, name, named("t"))
    assert (status, code) == (404, "OTSObjectNotExist")
    assert message in ("Requested index does not exist.", "Requested delivery task does not exist.")
    assert await answer(driver, name, named("none")) == (404, "OTSObjectNotExist", "Requested table does not exist.")
    assert await answer(driver, name, named("#")) == (400, "OTSParameterInvalid", "Invalid table name: '#'.")


@pytest.mark.parametrize("name", SERIES)
async def test_no_table_is_a_time_series_table(driver: Driver, name: str) -> None:
    assert await answer(driver, name, named("t")) == (404, "OTSObjectNotExist", "Requested table does not exist.")


@pytest.mark.parametrize("name", UNSUPPORTED)
async def test_unknown_calls_are_named(driver: Driver, name: str) -> None:
    assert await answer(driver, name, named("t")) == (400, "OTSParameterInvalid", f"Unsupported operation: '{name}'.")
