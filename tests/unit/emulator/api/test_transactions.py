"""Transactions and atomic batches beyond the SDK's tests: time, change log, all or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ots_tunnel.errors import ServiceError
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.codec import encode_primary_key, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from tests.support.emulator.emulator_driver import IGNORE, Driver, delete_one, increment


async def start(driver: Driver, key: int = 1) -> str:
    answer = await driver.call("StartLocalTransaction", table_name="t", key=encode_primary_key((("k", key),)))
    return str(answer.transaction_id)


async def put(driver: Driver, key: int, value: int, transaction: str | None = None) -> None:
    row = encode_row((("k", key),), [Column("v", value)])
    await driver.call("PutRow", table_name="t", row=row, condition=IGNORE, transaction_id=transaction)


async def value(driver: Driver, key: int) -> Any:
    row = await driver.get(key)
    return None if row is None else row.columns[0].value


async def test_a_transaction_ends_after_its_time() -> None:
    driver = Driver(transaction_lifetime=60.0)
    await driver.create_table()
    transaction = await start(driver)
    await put(driver, 1, 5, transaction)
    driver.clock.advance(59)
    await put(driver, 1, 6, transaction)
    driver.clock.advance(2)

    with pytest.raises(ServiceError, match="OTSSessionNotExist"):
        await put(driver, 1, 7, transaction)
    await put(driver, 1, 8)

    assert await value(driver, 1) == 8


async def test_the_time_of_transactions_can_be_changed() -> None:
    driver = Driver()
    await driver.create_table()
    driver.emulator.change_settings(transaction_lifetime=5.0)
    transaction = await start(driver)
    driver.clock.advance(6)

    with pytest.raises(ServiceError, match="OTSSessionNotExist"):
        await put(driver, 1, 7, transaction)


async def test_a_transaction_ends_after_its_time_where_the_clock_was_set_back() -> None:
    driver = Driver(transaction_lifetime=60.0)
    await driver.create_table()
    transaction = await start(driver)
    driver.emulator.advance_clock(-3600)
    await put(driver, 1, 6, transaction)
    driver.clock.advance(61)

    await put(driver, 1, 7)

    assert await value(driver, 1) == 7


async def test_a_transaction_enters_the_change_log_when_it_is_committed() -> None:
    driver = Driver()
    await driver.create_table(hours=24)
    tunnel = await driver.create_tunnel("Stream")
    client = await driver.connect(tunnel)
    (channel,) = await driver.heartbeat(tunnel, client)
    token = (await driver.checkpoint_of(tunnel, channel)).checkpoint
    transaction, other = await start(driver, 1), await start(driver, 2)
    await put(driver, 1, 5, transaction)
    await put(driver, 2, 6, other)
    assert not (await driver.read(tunnel, channel, token)).records

    await driver.call("CommitTransaction", transaction_id=transaction)
    await driver.call("AbortTransaction", transaction_id=other)

    assert len((await driver.read(tunnel, channel, token)).records) == 1


async def test_a_deleted_table_takes_its_transactions_along() -> None:
    driver = Driver()
    await driver.create_table()
    transaction = await start(driver)
    await driver.call("DeleteTable", table_name="t")
    await driver.create_table()

    with pytest.raises(ServiceError, match="OTSSessionNotExist"):
        await driver.call("CommitTransaction", transaction_id=transaction)


async def atomic(driver: Driver, *rows: tuple[int, int], expect: str = "IGNORE") -> list[tuple[bool, str]]:
    parts = [
        pb.RowInBatchWriteRowRequest(
            type="PUT",
            row_change=encode_row((("k", key), ("s", number)), [Column("v", number)]),
            condition=pb.Condition(row_existence=expect),
        )
        for key, number in rows
    ]
    batch = pb.TableInBatchWriteRowRequest(table_name="two", rows=parts)
    answer = await driver.call("BatchWriteRow", tables=[batch], is_atomic=True)
    return [(row.is_ok, row.error.code) for row in answer.tables[0].rows]


@pytest.fixture
async def two() -> Driver:
    driver = Driver()
    await driver.call(
        "CreateTable",
        table_meta=pb.TableMeta(
            table_name="two",
            primary_key=[pb.PrimaryKeySchema(name=name, type="INTEGER") for name in ("k", "s")],
        ),
        reserved_throughput=pb.ReservedThroughput(capacity_unit=pb.CapacityUnit(read=0, write=0)),
        table_options=pb.TableOptions(time_to_live=-1, max_versions=1),
    )
    return driver


async def rows(driver: Driver) -> int:
    return int(driver.emulator.state()["instances"][0]["tables"][0]["rows"])


async def test_an_atomic_batch_is_stored_as_a_whole(two: Driver) -> None:
    assert await atomic(two, (1, 1), (1, 2)) == [(True, "")] * 2
    assert await rows(two) == 2


@pytest.mark.parametrize(("one_time", "indexes"), [(False, [0] * 5), (True, [0, 1, 2, 0, 1])])
async def test_records_of_one_commit_have_one_time_by_a_setting(
    make_driver: Callable[..., Driver], one_time: bool, indexes: list[int]
) -> None:
    driver = make_driver(one_time_per_commit=one_time)
    await driver.create_table(hours=24)
    rows = [encode_row((("k", 1),), [Column("v", number)]) for number in range(3)]
    await driver.call("BatchWriteRow", tables=batch_of(*rows), is_atomic=True)
    transaction = await start(driver)
    await put(driver, 1, 5, transaction)
    await put(driver, 1, 6, transaction)
    await driver.call("CommitTransaction", transaction_id=transaction)
    tunnel = await driver.create_tunnel("Stream", flag="EARLIEST")
    client = await driver.connect(tunnel)
    (channel,) = await driver.heartbeat(tunnel, client)

    records, _ = await driver.drain(tunnel, channel)

    places = [record.sequence for _, record in records]
    assert [place.row_index for place in places] == indexes
    assert len({place.timestamp_us for place in places}) == (2 if one_time else 5)
    assert places == sorted(places)


async def test_an_atomic_batch_with_one_refused_row_stores_nothing(two: Driver) -> None:
    await atomic(two, (1, 2))

    refused = await atomic(two, (1, 1), (1, 2), (1, 3), expect="EXPECT_NOT_EXIST")

    assert refused == [(False, "OTSConditionCheckFail")] * 3
    assert await rows(two) == 1


async def test_an_atomic_batch_has_one_partition_key(two: Driver) -> None:
    assert await atomic(two, (1, 1), (2, 1)) == [(False, "OTSDataOutOfRange")] * 2
    assert await rows(two) == 0


UNKNOWN = "0b5f1c7e-3f6a-4c52-9c39-5d7b2a0f1e11"


ROW_CALLS: dict[str, Any] = {
    "GetRow": {"table_name": "two", "primary_key": encode_primary_key((("k", 1), ("s", 2))), "max_versions": 1},
    "PutRow": {"table_name": "two", "row": encode_row((("k", 1), ("s", 2))), "condition": IGNORE},
}


@pytest.mark.parametrize("name", ["CommitTransaction", "AbortTransaction"])
async def test_a_transaction_needs_an_id(two: Driver, name: str) -> None:
    assert await two.refused(name, transaction_id="") == (400, "OTSParameterInvalid", "TransactionID is invalid.")


@pytest.mark.parametrize("name", ["CommitTransaction", "AbortTransaction", "GetRow", "PutRow"])
@pytest.mark.parametrize("text", ["1", "x" * 36, UNKNOWN + "0", UNKNOWN[:-1], UNKNOWN + "\n"])
async def test_an_id_that_the_service_never_gave_is_malformed(two: Driver, name: str, text: str) -> None:
    assert await two.refused(name, transaction_id=text, **ROW_CALLS.get(name, {})) == (
        400,
        "OTSParameterInvalid",
        "TransactionID is invalid.",
    )


@pytest.mark.parametrize("name", ["CommitTransaction", "AbortTransaction", "GetRow", "PutRow"])
async def test_a_transaction_that_has_ended_is_named_as_such(two: Driver, name: str) -> None:
    answer = await two.call("StartLocalTransaction", table_name="two", key=encode_primary_key((("k", 1),)))
    ended = answer.transaction_id
    await two.call("AbortTransaction", transaction_id=ended)

    for text in (ended, UNKNOWN):
        assert await two.refused(name, transaction_id=text, **ROW_CALLS.get(name, {})) == (
            400,
            "OTSSessionNotExist",
            "Session not exist or may be timeout.",
        )


async def test_a_transaction_starts_with_one_key_column(two: Driver) -> None:
    with pytest.raises(ServiceError, match="StartLocalTransaction support only one primary key"):
        await two.call("StartLocalTransaction", table_name="two", key=encode_primary_key((("k", 1), ("s", 2))))


async def test_a_table_can_be_without_transactions() -> None:
    driver = Driver()
    await driver.call(
        "CreateTable",
        table_meta=pb.TableMeta(table_name="t", primary_key=[pb.PrimaryKeySchema(name="k", type="INTEGER")]),
        reserved_throughput=pb.ReservedThroughput(capacity_unit=pb.CapacityUnit(read=0, write=0)),
        table_options=pb.TableOptions(time_to_live=-1, max_versions=1),
        enable_local_txn=False,
    )

    with pytest.raises(ServiceError, match="explicit transaction on explicit-transaction-disabled table"):
        await start(driver)


async def test_a_transaction_writes_no_more_than_a_batch_may() -> None:
    driver = Driver()
    await driver.create_table()
    transaction = await start(driver)
    row = encode_row((("k", 1),), [Column("v", b"x" * 2_000_000)])
    for _ in range(2):
        await driver.call("PutRow", table_name="t", row=row, condition=IGNORE, transaction_id=transaction)

    with pytest.raises(ServiceError, match="limit size: 4194304, data size: 6000"):
        await driver.call("PutRow", table_name="t", row=row, condition=IGNORE, transaction_id=transaction)


def batch_of(*rows: bytes, table: str = "t", action: str = "PUT") -> list[Any]:
    parts = [pb.RowInBatchWriteRowRequest(type=action, row_change=row, condition=IGNORE) for row in rows]
    return [pb.TableInBatchWriteRowRequest(table_name=table, rows=parts)]


async def test_an_atomic_batch_that_exceeds_its_transaction_writes_nothing() -> None:
    driver = Driver()
    await driver.create_table()
    transaction = await start(driver)
    first = encode_row((("k", 1),), [Column("a", "x" * 2_000_000)])
    await driver.call("PutRow", table_name="t", row=first, condition=IGNORE, transaction_id=transaction)
    fits, exceeds = (encode_row((("k", 1),), [Column(name, name * 1_500_000)]) for name in "bc")

    batch = batch_of(fits, exceeds, action="UPDATE")
    answer = await driver.call("BatchWriteRow", tables=batch, is_atomic=True, transaction_id=transaction)
    await driver.call("CommitTransaction", transaction_id=transaction)

    assert [row.error.code for row in answer.tables[0].rows] == ["OTSParameterInvalid"] * 2
    assert "limit size: 4194304, data size: 5000" in answer.tables[0].rows[0].error.message
    assert [name for name, _, _ in await driver.cells(1)] == ["a"]


async def test_a_transaction_counts_data_and_not_what_carries_it(two: Driver) -> None:
    answer = await two.call("StartLocalTransaction", table_name="two", key=encode_primary_key((("k", 1),)))
    # On the wire such cells take half as much again.
    columns = [Column(f"c{number}", number) for number in range(900)]
    rows = [encode_row((("k", 1), ("s", number)), columns) for number in range(200)]
    assert sum(map(len, rows)) > 4 << 20
    batch = batch_of(*rows, table="two")

    inside = await two.call("BatchWriteRow", tables=batch, is_atomic=True, transaction_id=answer.transaction_id)
    await two.call("AbortTransaction", transaction_id=answer.transaction_id)
    outside = await two.call("BatchWriteRow", tables=batch, is_atomic=True)

    assert {row.error.message for row in [*inside.tables[0].rows, *outside.tables[0].rows]} == {""}


async def test_a_commit_that_fails_writes_nothing() -> None:
    driver = Driver()
    await driver.create_table(max_versions=1)
    transaction = await start(driver)
    now = driver.now_ms
    changes = [
        [Column("first", 1)],
        [Column("c", 7, now)],
        [Column("c", "text", now - 10)],
        [delete_one("c", now)],
        [increment("c", 1)],
    ]
    for columns in changes:
        row = encode_row((("k", 1),), columns)
        await driver.call("UpdateRow", table_name="t", row_change=row, condition=IGNORE, transaction_id=transaction)
    # With two versions the deletion uncovers the text, which cannot be incremented.
    await driver.call("UpdateTable", table_name="t", table_options=pb.TableOptions(max_versions=2))

    with pytest.raises(ServiceError, match="holds no integer"):
        await driver.call("CommitTransaction", transaction_id=transaction)

    assert await driver.get(1) is None
    await put(driver, 1, 5)  # the partition key is free again


async def test_a_batch_of_an_unknown_transaction_writes_nothing() -> None:
    driver = Driver()
    for name in "tu":
        await driver.create_table(name)
    transaction = await start(driver)
    rows = [pb.RowInBatchWriteRowRequest(type="PUT", row_change=encode_row((("k", 1),)), condition=IGNORE)]
    batch = [pb.TableInBatchWriteRowRequest(table_name=name, rows=rows) for name in "tu"]

    with pytest.raises(ServiceError, match="OTSDataOutOfRange"):
        await driver.call("BatchWriteRow", tables=batch, transaction_id=transaction)
    await driver.call("CommitTransaction", transaction_id=transaction)
    with pytest.raises(ServiceError, match="OTSSessionNotExist"):
        await driver.call("BatchWriteRow", tables=batch, transaction_id=transaction)

    assert await driver.get(1) is None


async def test_errors_of_an_atomic_batch_name_the_keys_that_differ(two: Driver) -> None:
    parts = [
        pb.RowInBatchWriteRowRequest(type="PUT", row_change=encode_row((("k", key), ("s", 1))), condition=IGNORE)
        for key in (0, 1)
    ]
    batch = pb.TableInBatchWriteRowRequest(table_name="two", rows=parts)
    answer = await two.call("BatchWriteRow", tables=[batch], is_atomic=True)

    expected = "Data out of scope of atomic. Atomic PartKey:0. Data PartKey:1"
    assert [row.error.message for row in answer.tables[0].rows] == [expected] * 2
