"""Local transactions, atomic batches and auto-increment keys with the vendor's Python SDK, unmodified."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ots_emulator import Emulator, Settings
from tests.oracle.test_emulator_with_python_sdk import (
    EXIST,
    IGNORE,
    NOT_EXIST,
    client_of,
    columns_of,
    key,
    put,
    pytestmark,
    refusal,
    sdk,
)

__all__ = ["pytestmark"]

CONFLICT = (409, "OTSRowOperationConflict", "Data is being modified by the other request.")


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    with Emulator(settings=Settings(date_skew=None)) as emulator:
        yield emulator


def create(client: Any, name: str, *columns: Any) -> None:
    client.create_table(
        sdk.TableMeta(name, list(columns)),
        sdk.TableOptions(-1, 3, 86400),
        sdk.ReservedThroughput(sdk.CapacityUnit(0, 0)),
    )


@pytest.fixture
def client(emulator: Emulator) -> Iterator[Any]:
    client = client_of(emulator)
    create(client, "t", ("gid", "INTEGER"), ("uid", "STRING"))
    put(client, 1, ("n", 1))
    put(client, 2, ("n", 2))
    yield client
    client.connection.pool.clear()


def values(client: Any, gid: int, transaction: str | None = None) -> list[Any]:
    _, row, _ = client.get_row("t", key(gid), max_version=1, transaction_id=transaction)
    return [] if row is None else [column[1] for column in row.attribute_columns]


def change(gid: int, *columns: Any) -> Any:
    return sdk.Row(key(gid), {"PUT": list(columns)})


def test_a_transaction_sees_its_own_writes_and_others_do_not(client: Any) -> None:
    transaction = client.start_local_transaction("t", [("gid", 1)])
    client.update_row("t", change(1, ("n", 10)), IGNORE, transaction_id=transaction)
    client.put_row("t", sdk.Row(key(1, "v"), [("n", 11)]), NOT_EXIST, transaction_id=transaction)

    assert values(client, 1, transaction) == [10]
    assert values(client, 1) == [1]
    _, _, rows, _ = client.get_range(
        "t",
        "FORWARD",
        [("gid", 1), ("uid", sdk.INF_MIN)],
        [("gid", 1), ("uid", sdk.INF_MAX)],
        max_version=1,
        transaction_id=transaction,
    )
    assert [row.primary_key[1][1] for row in rows] == ["u", "v"]

    client.commit_transaction(transaction)
    assert values(client, 1) == [10]
    assert refusal(client.commit_transaction, transaction)[1] == "OTSSessionNotExist"


def test_an_aborted_transaction_leaves_nothing(client: Any) -> None:
    transaction = client.start_local_transaction("t", [("gid", 1)])
    client.delete_row("t", sdk.Row(key(1)), IGNORE, transaction_id=transaction)
    assert values(client, 1, transaction) == []

    client.abort_transaction(transaction)

    assert values(client, 1) == [1]
    assert refusal(client.get_row, "t", key(1), max_version=1, transaction_id=transaction)[1] == "OTSSessionNotExist"


def test_a_partition_key_belongs_to_one_transaction(client: Any) -> None:
    transaction = client.start_local_transaction("t", [("gid", 1)])

    assert refusal(client.start_local_transaction, "t", [("gid", 1)]) == CONFLICT
    assert refusal(client.put_row, "t", sdk.Row(key(1), [("n", 5)]), IGNORE) == CONFLICT
    put(client, 2, ("n", 5))
    other = client.start_local_transaction("t", [("gid", 2)])
    client.abort_transaction(other)
    client.abort_transaction(transaction)
    put(client, 1, ("n", 6))
    assert columns_of(client, 1) == [("n", 6)]


def test_other_partition_keys_are_out_of_range(client: Any) -> None:
    transaction = client.start_local_transaction("t", [("gid", 1)])

    for call, arguments in (
        (client.put_row, ("t", sdk.Row(key(2), [("n", 5)]), IGNORE)),
        (client.update_row, ("t", change(2, ("n", 5)), IGNORE)),
        (client.delete_row, ("t", sdk.Row(key(2)), IGNORE)),
    ):
        assert refusal(call, *arguments, transaction_id=transaction)[1] == "OTSDataOutOfRange"
    assert refusal(client.get_row, "t", key(2), max_version=1, transaction_id=transaction)[1] == "OTSDataOutOfRange"
    assert (
        refusal(
            client.get_range,
            "t",
            "FORWARD",
            [("gid", 1), ("uid", sdk.INF_MIN)],
            [("gid", 3), ("uid", sdk.INF_MAX)],
            max_version=1,
            transaction_id=transaction,
        )[1]
        == "OTSDataOutOfRange"
    )


def test_conditions_look_at_what_the_transaction_sees(client: Any) -> None:
    transaction = client.start_local_transaction("t", [("gid", 1)])
    client.delete_row("t", sdk.Row(key(1)), EXIST, transaction_id=transaction)

    assert refusal(client.delete_row, "t", sdk.Row(key(1)), EXIST, transaction_id=transaction)[1] == (
        "OTSConditionCheckFail"
    )


def test_batches_join_a_transaction(client: Any) -> None:
    transaction = client.start_local_transaction("t", [("gid", 1)])
    request = sdk.BatchWriteRowRequest()
    request.add(
        sdk.TableInBatchWriteRowItem(
            "t",
            [
                sdk.PutRowItem(sdk.Row(key(1, "a"), [("n", 7)]), IGNORE),
                sdk.PutRowItem(sdk.Row(key(2, "a"), [("n", 7)]), IGNORE),
            ],
        )
    )
    request.set_transaction_id(transaction)
    stored, refused = client.batch_write_row(request).get_put()

    assert (len(stored), [row.error_code for row in refused]) == (1, ["OTSDataOutOfRange"])
    client.abort_transaction(transaction)


def test_an_auto_increment_key_is_chosen_by_the_service(client: Any) -> None:
    create(client, "a", ("gid", "INTEGER"), ("id", "INTEGER", sdk.PK_AUTO_INCR))
    numbers = []
    for _ in range(5):
        row = sdk.Row([("gid", 1), ("id", sdk.PK_AUTO_INCR)], [("n", 1)])
        _, returned = client.put_row("a", row, IGNORE, sdk.ReturnType.RT_PK)
        assert returned.primary_key[0] == ("gid", 1)
        numbers.append(returned.primary_key[1][1])

    assert numbers == sorted(set(numbers))
    _, row, _ = client.get_row("a", [("gid", 1), ("id", numbers[2])], max_version=1)
    assert row.attribute_columns[0][:2] == ("n", 1)


def test_an_auto_increment_key_takes_no_condition(client: Any) -> None:
    create(client, "a", ("gid", "INTEGER"), ("id", "INTEGER", sdk.PK_AUTO_INCR))
    row = sdk.Row([("gid", 1), ("id", sdk.PK_AUTO_INCR)], [("n", 1)])

    for condition, name in ((EXIST, "EXPECT_EXIST"), (NOT_EXIST, "EXPECT_NOT_EXIST")):
        assert refusal(client.put_row, "a", row, condition) == (
            400,
            "OTSParameterInvalid",
            f"Invalid expect:{name} when modify row with pk auto increment.",
        )
    explicit = sdk.Row([("gid", 1), ("id", 5)], [("n", 1)])
    client.put_row("a", explicit, IGNORE)
    assert refusal(client.put_row, "a", explicit, NOT_EXIST)[2].startswith("Invalid expect: EXPECT_NOT_EXIST")
    assert refusal(client.start_local_transaction, "a", [("gid", 1)])[1] == "OTSParameterInvalid"


@pytest.mark.parametrize("place", ["first", "text"])
def test_an_auto_increment_key_is_neither_first_nor_text(client: Any, place: str) -> None:
    columns = {
        "first": (("id", "INTEGER", sdk.PK_AUTO_INCR), ("gid", "INTEGER")),
        "text": (("gid", "INTEGER"), ("id", "STRING", sdk.PK_AUTO_INCR)),
    }[place]
    expected = {
        "first": "First primary key can't be auto increment, table: a.",
        "text": "AUTO_INCREMENT primary key must be integer.",
    }[place]

    assert refusal(create, client, "a", *columns) == (400, "OTSParameterInvalid", expected)
