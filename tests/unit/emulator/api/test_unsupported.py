"""Calls that the emulator lacks are refused in words; calls that nobody knows are named."""

from __future__ import annotations

import re
from importlib.metadata import files
from pathlib import Path

import pytest

from ots_emulator.api.unsupported import GAPS, HANDLERS, OPERATIONS_BY_PATH
from ots_emulator.server import application
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.operations import TABLE_API_VERSION, Operation
from ots_tunnel.protocol.http.rpc import build_request
from tests.support.emulator.emulator_driver import CREDENTIALS, Driver

ROOT = Path(__file__).parents[4]


async def answer(driver: Driver, name: str, body: bytes) -> tuple[int, str, str]:
    operation = OPERATIONS_BY_PATH.get(f"/{name}") or Operation(
        name, f"/{name}", pb.ListStreamRequest, pb.ListStreamResponse, idempotent=True, api_version=TABLE_API_VERSION
    )
    request = build_request(
        operation, body, instance="demo", credentials=CREDENTIALS, now=driver.clock.now(), trace_id="t"
    )
    response = await driver.emulator.handle(request)
    error = pb.Error.FromString(response.body)
    return response.status, error.code, error.message


def named(table: str) -> bytes:
    # A table, an index by name, and a number: nothing of it is read.
    return pb.ListStreamRequest(table_name=table).SerializeToString() + b"\x12\x01i\x30\x05"


@pytest.mark.parametrize("name", sorted(HANDLERS))
@pytest.mark.parametrize("table", ["t", "none", "#"])
async def test_a_call_that_is_missing_is_refused_in_words(driver: Driver, name: str, table: str) -> None:
    message = f"{name} is not available in this emulator: see 'What is missing?' in docs/emulator.md."

    assert await answer(driver, name, named(table)) == (400, "OTSParameterInvalid", message)


def test_every_call_of_the_vendors_python_sdk_is_known() -> None:
    (client,) = (file for file in files("tablestore") or () if str(file) == "tablestore/client.py")
    called = set(re.findall(r"_request_helper\(\s*'(\w+)'", client.read_text()))

    assert len(called) > 60
    assert sorted(called - set(application.HANDLERS)) == []


def test_the_page_that_the_refusals_name_lists_what_is_missing() -> None:
    _, _, after = (ROOT / "docs/emulator.md").read_text().partition("## What is missing?")
    section = after.partition("\n## ")[0]

    assert [what for what in GAPS if what.lower() not in section.lower()] == []


@pytest.mark.parametrize("name", ["NoSuchCall", "tunnel/nosuchcall"])
async def test_unknown_calls_are_named(driver: Driver, name: str) -> None:
    assert await answer(driver, name, named("t")) == (400, "OTSParameterInvalid", f"Unsupported operation: '{name}'.")
