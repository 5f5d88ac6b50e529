"""The lines of the data plane's conformance checklist (docs/data-plane.md 4)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from ots_emulator.server.faults import FaultRule
from ots_tunnel.errors import ConnectionLost, RowRejected, ServerUnavailable, ServiceError
from ots_tunnel.model import Action
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.signing import content_md5, sign_response
from ots_tunnel.protocol.plainbuffer.codec import decode_row, encode_primary_key, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from tests.support.emulator.emulator_driver import IGNORE, Driver, delete_all, delete_one, increment, put
from tests.unit.emulator.tunnels.test_tunnel_checklist import answer_to, error_of, request_of, resigned

MakeDriver = Callable[..., Driver]


def signature_holds(response: HttpResponse, path: str) -> bool:
    headers = {name.lower(): value for name, value in response.headers.items()}
    signed = {name: value for name, value in headers.items() if name.startswith("x-ots-")}
    key_id, _, signature = headers["authorization"].removeprefix("OTS ").partition(":")
    return key_id == "test-id" and signature == sign_response(path, signed, "test-secret")


@pytest.mark.parametrize("fraction", ["", ".1", ".153", ".123456Z"[:-1], ".10912"])
async def test_table_checklist_01_dates_with_any_fraction(driver: Driver, fraction: str) -> None:
    date = request_of(driver, "ListTable").headers["x-ots-date"]
    request = resigned(request_of(driver, "ListTable"), date=re.sub(r"\.\d+Z", f"{fraction}Z", date))

    assert (await answer_to(driver, request)).status == 200


@pytest.mark.parametrize("v4", [False, True])
async def test_table_checklist_01_a_repeated_request_is_no_replay(driver: Driver, v4: bool) -> None:
    fields = {"signdate": "20231114", "signregion": "cn-hangzhou"} if v4 else {}
    request = resigned(request_of(driver, "ListTable"), v4=v4, **fields)
    upper = HttpRequest(request.path, {name.title(): value for name, value in request.headers.items()}, request.body)

    assert [(await answer_to(driver, sent)).status for sent in (request, request, upper)] == [200] * 3


@pytest.mark.parametrize("name", ["ListTable", "DescribeTable"])
async def test_table_checklist_02_five_headers_on_every_answer(driver: Driver, name: str) -> None:
    fields = {"table_name": "absent"} if name == "DescribeTable" else {}
    request = request_of(driver, name, **fields)
    response = await answer_to(driver, request)
    headers = {name.lower(): value for name, value in response.headers.items()}

    assert response.status == (404 if fields else 200)
    assert headers["x-ots-requestid"]
    assert headers["x-ots-contenttype"] == "protocol buffer"
    assert headers["x-ots-contentmd5"] == content_md5(response.body)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", headers["x-ots-date"])
    assert signature_holds(response, request.path)


async def test_table_checklist_03_errors_are_protobuf_with_their_status(driver: Driver) -> None:
    missing = await answer_to(driver, request_of(driver, "DescribeTable", table_name="absent"))
    stale = await answer_to(driver, resigned(request_of(driver, "ListTable"), date="2020-01-01T00:00:00.000Z"))
    unknown = await answer_to(driver, HttpRequest("/Nothing", request_of(driver, "ListTable").headers, b""))

    assert error_of(missing)[:2] == (404, "OTSObjectNotExist")
    assert error_of(stale) == (
        403,
        "OTSAuthFailed",
        "Mismatch between system time and x-ots-date: 2020-01-01T00:00:00.000Z.",
    )
    assert error_of(unknown) == (400, "OTSParameterInvalid", "Unsupported operation: 'Nothing'.")


async def test_table_checklist_04_row_errors_and_request_errors(driver: Driver) -> None:
    row = encode_row((("k", 1),), [Column("v", 1)])
    wrong = encode_row((("other", 1),), [Column("v", 1)])
    parts = [pb.RowInBatchWriteRowRequest(type="PUT", row_change=body, condition=IGNORE) for body in (row, wrong, row)]
    batches = [
        pb.TableInBatchWriteRowRequest(table_name="absent", rows=parts[:1]),
        pb.TableInBatchWriteRowRequest(table_name="t", rows=parts),
    ]

    answer = await driver.call("BatchWriteRow", tables=batches)

    assert [table.table_name for table in answer.tables] == ["absent", "t"]
    assert [[row.error.code for row in table.rows] for table in answer.tables] == [
        ["OTSObjectNotExist"],
        ["", "OTSInvalidPK", ""],
    ]
    name = Column("x" * 256, 1)
    with pytest.raises(ServiceError, match="Invalid column name"):
        await driver.write((Action.PUT, 2, [put("v", 1)]), (Action.PUT, 3, [name]))
    assert await driver.get(2) is None


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ((("k", 1), ("l", 2)), "Validate PK size fail. Input: 2, Meta: 1."),
        ((("l", 1),), "Validate PK name fail. Input: l, Meta: k."),
        ((("k", "1"),), "Validate PK type fail. Input: VT_STRING, Meta: VT_INTEGER."),
        ((("k", b"1"),), "Validate PK type fail. Input: VT_BLOB, Meta: VT_INTEGER."),
    ],
)
async def test_table_checklist_05_texts_about_keys(driver: Driver, key: Any, message: str) -> None:
    with pytest.raises(RowRejected) as raised:
        await driver.call("GetRow", table_name="t", primary_key=encode_primary_key(key), max_versions=1)
    assert raised.value.message == message


async def test_table_checklist_05_conditions_with_a_missing_row(driver: Driver) -> None:
    def condition(existence: str, *, if_missing: bool | None = None) -> pb.Condition:
        made = pb.Condition(row_existence=existence)
        if if_missing is not None:
            single = pb.SingleColumnValueFilter(
                comparator="CT_EQUAL",
                column_name="v",
                column_value=b"\0" + (1).to_bytes(8, "little"),
                filter_if_missing=if_missing,
                latest_version_only=True,
            )
            made.column_condition = pb.Filter(
                type="FT_SINGLE_COLUMN_VALUE", filter=single.SerializeToString()
            ).SerializeToString()
        return made

    async def allowed(wanted: pb.Condition) -> bool:
        row = encode_row((("k", 9),), (), delete=True)
        try:
            await driver.call("DeleteRow", table_name="t", primary_key=row, condition=wanted)
        except RowRejected as error:
            if error.code != "OTSConditionCheckFail":
                raise
            return False
        return True

    assert await allowed(condition("IGNORE"))
    assert not await allowed(condition("EXPECT_EXIST"))
    assert await allowed(condition("EXPECT_NOT_EXIST"))
    assert await allowed(condition("IGNORE", if_missing=False))
    assert not await allowed(condition("IGNORE", if_missing=True))


async def test_table_checklist_05_deviation_lifetime_and_versions(make_driver: MakeDriver) -> None:
    driver = make_driver(least_time_to_live=100)
    await driver.create_table(max_versions=2, ttl=100, deviation=1000)
    now = driver.now_ms

    for timestamp, fits in (
        (now - 99_000, True),
        (now - 101_000, False),
        (now + 999_000, True),
        (now + 1_001_000, False),
    ):
        (outcome,) = await driver.write((Action.PUT, 1, [put("v", 1, timestamp)]))
        assert outcome.is_ok == fits, timestamp - now
        assert fits or outcome.error.message == "Invalid timestamp. Cell:v."
    await driver.update(2, put("v", 1, now), put("v", 2, now + 1), put("v", 3, now + 2))
    assert [value for _, value, _ in await driver.cells(2)] == [3, 2]
    driver.clock.advance(101)
    assert await driver.get(2) is None


async def test_table_checklist_06_repeated_keys_in_a_batch(driver: Driver) -> None:
    outcomes = await driver.write(
        (Action.PUT, 1, [put("v", 1)]), (Action.UPDATE, 1, [put("w", 2)]), (Action.UPDATE, 1, [put("v", 3)])
    )
    assert [outcome.is_ok for outcome in outcomes] == [True] * 3
    assert {(name, value) for name, value, _ in await driver.cells(1)} >= {("v", 3), ("w", 2)}

    row = encode_row((("k", 1),), [put("v", 1)])
    expect = pb.Condition(row_existence="EXPECT_EXIST")
    parts = [pb.RowInBatchWriteRowRequest(type="PUT", row_change=row, condition=each) for each in (expect, IGNORE)]
    answer = await driver.call("BatchWriteRow", tables=[pb.TableInBatchWriteRowRequest(table_name="t", rows=parts)])
    texts = [outcome.error.message for outcome in answer.tables[0].rows]
    assert texts == ["Repeated rows do not support row exist expectation check in BatchModify.", ""]
    outcomes = await driver.write(
        (Action.UPDATE, 1, [increment("n", 1)]),
        (Action.UPDATE, 2, [increment("n", 1)]),
        (Action.UPDATE, 1, [increment("m", 1)]),
        (Action.UPDATE, 1, [put("w", 5)]),
    )
    message = "Repeated rows do not support increments more than once in BatchModify."
    refused = ("OTSParameterInvalid", message)
    assert [(row.error.code, row.error.message) for row in outcomes] == [refused, ("", ""), refused, ("", "")]
    assert {name: value for name, value, _ in await driver.cells(1)} == {"v": 1, "w": 5}


async def test_table_checklist_07_descriptions_and_changes_of_tables(driver: Driver) -> None:
    described = await driver.call("DescribeTable", table_name="t")
    assert described.HasField("stream_details")
    assert not described.stream_details.enable_stream

    await driver.call("UpdateTable", table_name="t", table_options=pb.TableOptions(max_versions=7))

    options = (await driver.call("DescribeTable", table_name="t")).table_options
    assert (options.max_versions, options.time_to_live) == (7, -1)
    assert options.deviation_cell_version_in_sec == described.table_options.deviation_cell_version_in_sec


async def test_table_checklist_08_records_of_a_stream(make_driver: MakeDriver) -> None:
    driver = make_driver()
    await driver.create_table(hours=24, max_versions=3)
    now = driver.now_ms
    await driver.put(1, put("v", 1, now))
    await driver.update(1, delete_one("v", now), delete_all("w"), put("x", b"\0"))
    await driver.delete(1)
    (stream,) = (await driver.call("ListStream", table_name="t")).streams
    (shard,) = (await driver.call("DescribeStream", stream_id=stream.stream_id)).shards
    start = await driver.call("GetShardIterator", stream_id=stream.stream_id, shard_id=shard.shard_id)

    answer = await driver.call("GetStreamRecord", shard_iterator=start.shard_iterator)

    kinds = [pb.ActionType.Name(record.action_type) for record in answer.stream_records]
    rows = [decode_row(record.record) for record in answer.stream_records]
    assert kinds == ["PUT_ROW", "UPDATE_ROW", "DELETE_ROW"]
    times = [row.sequence.timestamp_us for row in rows if row.sequence is not None]
    assert len(times) == 3
    assert times == sorted(set(times))
    assert times[0] >= now * 1000
    (one,) = [column for column in rows[1].columns if column.name == "v"]
    assert (one.op.name, one.timestamp_ms) == ("DELETE_ONE_VERSION", now)
    assert rows[2].delete_marker
    assert not rows[2].columns


async def test_table_checklist_09_broken_checksums_are_refused(driver: Driver) -> None:
    row = bytearray(encode_row((("k", 1),), [put("v", 1)]))
    row[-3] ^= 1

    with pytest.raises(ServiceError, match="Cell data broken, checksum is mismatch"):
        await driver.call("PutRow", table_name="t", row=bytes(row), condition=IGNORE)
    assert await driver.get(1) is None


async def test_table_checklist_10_switches_for_faults(make_driver: MakeDriver) -> None:
    driver = make_driver(table_ready_delay=5.0)
    await driver.create_table(hours=24)
    with pytest.raises(ServiceError, match="OTSTableNotReady"):
        await driver.get(1)
    driver.clock.advance(6)
    faults = driver.emulator.faults

    faults.unavailable(30, driver.clock.now())
    with pytest.raises(ServerUnavailable):
        await driver.get(1)
    driver.clock.advance(31)
    assert await driver.get(1) is None

    faults.add(FaultRule("BatchWriteRow", count=1, row_code="OTSServerBusy"))
    outcomes = await driver.write((Action.PUT, 1, [put("v", 1)]), (Action.PUT, 2, [put("v", 2)]))
    assert [outcome.error.code for outcome in outcomes] == ["OTSServerBusy", ""]

    faults.add(FaultRule("BatchWriteRow", count=1, drop_response=True))
    with pytest.raises(ConnectionLost):
        await driver.put(3, put("v", 3))
    assert await driver.get(3) is not None

    (stream,) = (await driver.call("ListStream", table_name="t")).streams
    (shard,) = (await driver.call("DescribeStream", stream_id=stream.stream_id)).shards
    place = (await driver.call("GetShardIterator", stream_id=stream.stream_id, shard_id=shard.shard_id)).shard_iterator
    driver.emulator.trim("demo", "t")
    with pytest.raises(ServiceError, match="OTSTrimmedDataAccess"):
        await driver.call("GetStreamRecord", shard_iterator=place)

    await driver.fill(8, start=10)
    driver.emulator.split("demo", "t")
    driver.emulator.merge("demo", "t")
    assert len((await driver.call("DescribeStream", stream_id=stream.stream_id)).shards) == 4

    ahead = request_of(driver, "ListTable")
    driver.emulator.advance_clock(-3600)
    assert error_of(await answer_to(driver, ahead))[:2] == (403, "OTSAuthFailed")
