"""The vendor's Python SDK, unmodified, against the emulator over HTTP: every call, and the errors it distinguishes."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from ots_emulator import Emulator
from ots_emulator.server.faults import FaultRule

with warnings.catch_warnings():
    # The SDK warns that its compiled codec is for another Python; the pure one is tested.
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    import tablestore as sdk
    from tablestore.retry import NoRetryPolicy

    logging.disable(logging.NOTSET)

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:tablestore.*"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:future.*"),
]

IGNORE = sdk.Condition(sdk.RowExistenceExpectation.IGNORE)
EXIST = sdk.Condition(sdk.RowExistenceExpectation.EXPECT_EXIST)
NOT_EXIST = sdk.Condition(sdk.RowExistenceExpectation.EXPECT_NOT_EXIST)
ALL = ([("gid", sdk.INF_MIN), ("uid", sdk.INF_MIN)], [("gid", sdk.INF_MAX), ("uid", sdk.INF_MAX)])


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    with Emulator() as emulator:
        yield emulator


def client_of(emulator: Emulator, **options: Any) -> Any:
    options = {"key": "test-id", "secret": "test-secret", "instance": "demo", **options}
    key, secret, instance = options.pop("key"), options.pop("secret"), options.pop("instance")
    return sdk.OTSClient(emulator.endpoint, key, secret, instance, retry_policy=NoRetryPolicy(), **options)


@pytest.fixture
def client(emulator: Emulator) -> Iterator[Any]:
    client = client_of(emulator)
    client.create_table(
        sdk.TableMeta("t", [("gid", "INTEGER"), ("uid", "STRING")], [("defined", "STRING")]),
        sdk.TableOptions(-1, 3, 86400),
        sdk.ReservedThroughput(sdk.CapacityUnit(0, 0)),
    )
    yield client
    client.connection.pool.clear()


def key(gid: int = 1, uid: str = "u") -> list[tuple[str, Any]]:
    return [("gid", gid), ("uid", uid)]


def put(client: Any, gid: int = 1, *columns: Any, condition: Any = IGNORE, uid: str = "u") -> None:
    client.put_row("t", sdk.Row(key(gid, uid), list(columns)), condition)


def columns_of(client: Any, gid: int = 1, *, versions: int = 3) -> list[tuple[Any, ...]]:
    _, row, _ = client.get_row("t", key(gid), max_version=versions)
    return [tuple(column[:2]) for column in row.attribute_columns]


def refusal(call: Any, *arguments: Any, **options: Any) -> tuple[int, str, str]:
    with pytest.raises(sdk.OTSServiceError) as raised:
        call(*arguments, **options)
    return raised.value.http_status, raised.value.code, raised.value.message


def test_tables(client: Any) -> None:
    described = client.describe_table("t")
    client.update_table("t", sdk.TableOptions(86400 * 2, 5, 1000))
    updated = client.describe_table("t")

    assert described.table_meta.schema_of_primary_key == [("gid", "INTEGER"), ("uid", "STRING")]
    assert described.table_meta.defined_columns == [("defined", "STRING")]
    assert (described.table_options.time_to_live, described.table_options.max_version) == (-1, 3)
    assert (updated.table_options.time_to_live, updated.table_options.max_version) == (86400 * 2, 5)
    assert tuple(client.list_table()) == ("t",)
    client.delete_table("t")
    assert tuple(client.list_table()) == ()


def test_table_errors(client: Any) -> None:
    meta = sdk.TableMeta("t", [("gid", "INTEGER")])
    throughput = sdk.ReservedThroughput(sdk.CapacityUnit(0, 0))

    assert refusal(client.create_table, meta, sdk.TableOptions(), throughput)[:2] == (409, "OTSObjectAlreadyExist")
    assert refusal(client.describe_table, "missing")[:2] == (404, "OTSObjectNotExist")
    assert refusal(client.delete_table, "missing")[:2] == (404, "OTSObjectNotExist")
    bad = sdk.TableMeta("no-name", [("gid", "INTEGER")])
    assert refusal(client.create_table, bad, sdk.TableOptions(), throughput) == (
        400,
        "OTSParameterInvalid",
        "Invalid table name: 'no-name'.",
    )
    twice = sdk.TableMeta("u", [("a", "INTEGER"), ("a", "STRING")])
    assert "Duplicated primary key name" in refusal(client.create_table, twice, sdk.TableOptions(), throughput)[2]
    fine = sdk.TableMeta("u", [("a", "INTEGER")])
    assert "cannot be 0" in refusal(client.create_table, fine, sdk.TableOptions(0), throughput)[2]


def test_put_and_get_every_type(client: Any) -> None:
    values = [("b", bytearray(b"\x00\xff")), ("d", 1.5), ("i", -7), ("s", "grüße"), ("t", True)]

    put(client, 1, *values)

    assert columns_of(client) == values
    consumed, row, _ = client.get_row("t", key(2), max_version=1)
    assert row is None
    assert consumed.read == 1


def test_versions(client: Any) -> None:
    now = 1000 * int(time.time())
    for step in range(5):
        row = sdk.Row(key(), {"PUT": [("a", step, now + step)]})
        client.update_row("t", row, IGNORE)

    assert columns_of(client) == [("a", 4), ("a", 3), ("a", 2)]
    assert columns_of(client, versions=1) == [("a", 4)]
    _, one, _ = client.get_row("t", key(), max_version=None, time_range=now + 3)
    assert [column[:2] for column in one.attribute_columns] == [("a", 3)]
    _, window, _ = client.get_row("t", key(), max_version=9, time_range=(now + 2, now + 4))
    assert [column[1] for column in window.attribute_columns] == [3, 2]


def test_update_row(client: Any) -> None:
    now = 1000 * int(time.time())
    put(client, 1, ("a", 1, now), ("b", 2), ("c", 5), ("d", 1, now))
    changes = {"PUT": [("e", "new")], "DELETE": [("a", None, now)], "DELETE_ALL": ["b"], "INCREMENT": [("c", 3)]}

    client.update_row("t", sdk.Row(key(), changes), EXIST)

    assert columns_of(client, versions=1) == [("c", 8), ("d", 1), ("e", "new")]


def test_increment_returns_the_new_value_of_the_key(client: Any) -> None:
    _, returned = client.put_row("t", sdk.Row(key(), [("a", 1)]), IGNORE, sdk.ReturnType.RT_PK)

    assert returned.primary_key == key()


def test_conditions(client: Any) -> None:
    failed = (403, "OTSConditionCheckFail", "Condition check failed.")
    assert refusal(put, client, 1, condition=EXIST) == failed
    put(client, 1, ("a", 5), condition=NOT_EXIST)
    assert refusal(put, client, 1, condition=NOT_EXIST) == failed
    assert refusal(client.delete_row, "t", key(9), EXIST) == failed

    def on(value: int) -> Any:
        return sdk.Condition(
            sdk.RowExistenceExpectation.IGNORE,
            sdk.SingleColumnCondition("a", value, sdk.ComparatorType.GREATER_THAN),
        )

    assert refusal(put, client, 1, condition=on(5)) == failed
    put(client, 1, ("a", 6), condition=on(4))


def test_delete_row(client: Any) -> None:
    put(client, 1, ("a", 1))

    client.delete_row("t", key(), IGNORE)
    client.delete_row("t", key(), IGNORE)

    assert client.get_row("t", key(), max_version=1)[1] is None


def test_row_errors(client: Any) -> None:
    row = sdk.Row([("gid", "text"), ("uid", "u")], [])
    assert refusal(client.put_row, "t", row, IGNORE) == (
        400,
        "OTSInvalidPK",
        "Validate PK type fail. Input: VT_STRING, Meta: VT_INTEGER.",
    )
    assert (
        refusal(client.put_row, "t", sdk.Row([("gid", 1)], []), IGNORE)[2]
        == "Validate PK size fail. Input: 1, Meta: 2."
    )
    wrong_order = sdk.Row([("uid", "u"), ("gid", 1)], [])
    assert refusal(client.put_row, "t", wrong_order, IGNORE)[2] == "Validate PK name fail. Input: uid, Meta: gid."
    assert refusal(client.put_row, "missing", sdk.Row(key(), []), IGNORE)[:2] == (404, "OTSObjectNotExist")
    assert refusal(put, client, 1, ("a", 1, 1))[2] == "Invalid timestamp. Cell:a."
    assert refusal(put, client, 1, ("a", float("nan")))[2] == "NaN can't be set to double value."
    assert "exceeds the MaxLength:1024" in refusal(put, client, 1, uid="x" * 1025)[2]
    assert "exceeds the MaxLength:2097152" in refusal(put, client, 1, ("a", "x" * 2097153))[2]
    assert refusal(client.get_row, "t", key(), max_version=1, time_range=5)[1] == "OTSParameterInvalid"


def batch(client: Any, items: list[Any], table: str = "t") -> Any:
    request = sdk.BatchWriteRowRequest()
    request.add(sdk.TableInBatchWriteRowItem(table, items))
    return client.batch_write_row(request)


def test_batch_write_and_batch_get(client: Any) -> None:
    result = batch(
        client,
        [
            sdk.PutRowItem(sdk.Row(key(1), [("a", 1)]), IGNORE),
            sdk.UpdateRowItem(sdk.Row(key(2), {"PUT": [("a", 2)]}), IGNORE),
            sdk.DeleteRowItem(sdk.Row(key(3)), IGNORE),
            sdk.PutRowItem(sdk.Row(key(4), []), EXIST),
            sdk.PutRowItem(sdk.Row([("gid", 1)], []), IGNORE),
        ],
    )
    asked = sdk.BatchGetRowRequest()
    asked.add(sdk.TableInBatchGetRowItem("t", [key(2), key(9), key(1)], ["a"], None, 1))
    answer = client.batch_get_row(asked).get_result_by_table("t")

    succeeded, failed = result.get_put()
    assert [row.is_ok for row in succeeded] == [True]
    assert [row.error_code for row in failed] == ["OTSConditionCheckFail", "OTSInvalidPK"]
    assert len(result.get_succeed_of_update()) == len(result.get_succeed_of_delete()) == 1
    assert [row.row and row.row.attribute_columns[0][1] for row in answer] == [2, None, 1]


def test_batch_limits(client: Any) -> None:
    many = [sdk.PutRowItem(sdk.Row(key(gid), []), IGNORE) for gid in range(201)]
    repeated = [sdk.PutRowItem(sdk.Row(key(1), []), EXIST) for _ in range(2)]

    assert refusal(batch, client, many)[2] == "Rows count exceeds the upper limit: 200."
    _, refused = batch(client, repeated).get_put()
    assert [row.error_code for row in refused] == ["OTSParameterInvalid"] * 2
    assert "Repeated rows do not support row exist" in refused[0].error_message
    assert not batch(client, many[:1], table="missing").is_all_succeed()
    assert client.get_row("t", key(1), max_version=1)[1] is None


def test_range_in_both_directions(client: Any) -> None:
    for first in (0, 200, 400):
        batch(client, [sdk.PutRowItem(sdk.Row(key(gid), [("a", gid)]), IGNORE) for gid in range(first, first + 200)])

    _, following, rows, _ = client.get_range("t", "FORWARD", *ALL, max_version=1, limit=5)
    _, _, last, _ = client.get_range("t", "BACKWARD", ALL[1], ALL[0], max_version=1, limit=2)
    consumed = sdk.CapacityUnit(0, 0)
    everything = list(client.xget_range("t", "FORWARD", *ALL, consumed, max_version=1))

    assert [row.primary_key[0][1] for row in rows] == [0, 1, 2, 3, 4]
    assert following == key(5)
    assert [row.primary_key[0][1] for row in last] == [599, 598]
    assert [row.primary_key[0][1] for row in everything] == list(range(600))


def test_range_pages_at_4_mb(client: Any) -> None:
    for gid in range(6):
        put(client, gid, ("a", "x" * 1_000_000))

    _, following, rows, _ = client.get_range("t", "FORWARD", *ALL, max_version=1)

    assert len(rows) == 5
    assert following == key(5)


def test_range_errors_and_filter(client: Any) -> None:
    for gid in range(4):
        put(client, gid, ("a", gid))
    odd = sdk.SingleColumnCondition("a", 2, sdk.ComparatorType.GREATER_EQUAL)

    _, _, rows, _ = client.get_range("t", "FORWARD", *ALL, max_version=1, column_filter=odd)

    assert [row.primary_key[0][1] for row in rows] == [2, 3]
    assert refusal(client.get_range, "t", "FORWARD", ALL[1], ALL[0], max_version=1)[2].startswith("Begin key must less")
    assert refusal(client.get_range, "t", "BACKWARD", *ALL, max_version=1)[2].startswith("Begin key must more")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"key": "unknown"}, "The AccessKeyID does not exist."),
        ({"secret": "wrong"}, "Signature mismatch."),
        ({"instance": "other"}, "The instance is not found."),
    ],
)
def test_wrong_credentials(emulator: Emulator, options: dict[str, str], message: str) -> None:
    assert refusal(client_of(emulator, **options).list_table) == (403, "OTSAuthFailed", message)


def test_signature_v4(emulator: Emulator) -> None:
    assert tuple(client_of(emulator, region="cn-hangzhou").list_table()) == ()


def test_retries_of_the_sdk_absorb_an_outage(emulator: Emulator) -> None:
    client = sdk.OTSClient(emulator.endpoint, "test-id", "test-secret", "demo")
    emulator.faults.add(FaultRule("ListTable", count=2, code="OTSServerBusy", message="Server is busy."))

    assert tuple(client.list_table()) == ()
    assert emulator.calls == 3


async def test_asyncio_client(emulator: Emulator) -> None:
    async with sdk.AsyncOTSClient(emulator.endpoint, "test-id", "test-secret", "demo") as client:
        await client.create_table(
            sdk.TableMeta("t", [("gid", "INTEGER"), ("uid", "STRING")]),
            sdk.TableOptions(-1, 1, 86400),
            sdk.ReservedThroughput(sdk.CapacityUnit(0, 0)),
        )
        await client.put_row("t", sdk.Row(key(), [("a", 1)]), IGNORE)
        _, row, _ = await client.get_row("t", key(), max_version=1)

    assert row.attribute_columns[0][:2] == ("a", 1)
