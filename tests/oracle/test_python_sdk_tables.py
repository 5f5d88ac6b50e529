"""The vendor's Python SDK: options of tables, filters, parts of rows, and calls on missing things."""

from __future__ import annotations

from typing import Any

import pytest

from ots_emulator import Emulator
from tests.oracle.test_emulator_with_python_sdk import (
    client,
    columns_of,
    emulator,
    key,
    put,
    pytestmark,
    refusal,
    sdk,
)

__all__ = ["client", "emulator", "pytestmark"]


def create_split(client: Any, kind: str, points: list[Any], **options: Any) -> None:
    client._create_table_ex(
        sdk.TableMeta("split", [("k", kind)]),
        sdk.TableOptions(-1, 1, 86400),
        sdk.ReservedThroughput(sdk.CapacityUnit(0, 0)),
        split_points=points,
        **options,
    )


@pytest.mark.parametrize(
    ("kind", "points"),
    [("INTEGER", [-5, 0, 7]), ("STRING", ["f", "p"]), ("BINARY", [bytearray(b"\x40"), bytearray(b"\x80")])],
)
def test_tables_split_in_advance(emulator: Emulator, client: Any, kind: str, points: list[Any]) -> None:
    create_split(client, kind, points)

    table = next(found for found in emulator.call("state")["instances"][0]["tables"] if found["name"] == "split")
    assert table["partitionCount"] == len(points) + 1
    client.put_row("split", sdk.Row([("k", points[0])], [("a", 1)]))
    _, row, _ = client.get_row("split", [("k", points[0])])
    assert row.attribute_columns[0][:2] == ("a", 1)


def test_ten_partitions_are_the_most(client: Any) -> None:
    assert refusal(create_split, client, "INTEGER", list(range(10))) == (
        400,
        "OTSParameterInvalid",
        "The count of partitions cannot be greater than 10",
    )


def test_encryption_is_described(client: Any) -> None:
    client.create_table(
        sdk.TableMeta("secret", [("k", "STRING")]),
        sdk.TableOptions(-1, 1, 86400),
        sdk.ReservedThroughput(sdk.CapacityUnit(0, 0)),
        sse_spec=sdk.SSESpecification(True, sdk.SSEKeyType.SSE_KMS_SERVICE),
    )
    # This SDK cannot name the user's encryption keys: it takes text and sends bytes.
    details = client.describe_table("secret").sse_details
    assert (details.enable, details.key_type) == (True, sdk.SSEKeyType.SSE_KMS_SERVICE)
    assert not client.describe_table("t").sse_details.enable


def test_throughput_is_changed_by_halves(client: Any) -> None:
    client.update_table("t", reserved_throughput=sdk.ReservedThroughput(sdk.CapacityUnit(3, None)))
    client.update_table("t", reserved_throughput=sdk.ReservedThroughput(sdk.CapacityUnit(None, 4)))

    details = client.describe_table("t").reserved_throughput_details
    assert (details.capacity_unit.read, details.capacity_unit.write) == (3, 4)
    assert details.last_increase_time > 0


def test_parts_of_rows(client: Any) -> None:
    put(client, 1, *((f"c{number}", number) for number in range(6)))

    def columns(**wanted: Any) -> list[str]:
        _, row, _ = client.get_row("t", key(1), max_version=1, **wanted)
        return [column[0] for column in row.attribute_columns]

    assert columns(start_column="c2", end_column="c4") == ["c2", "c3"]
    assert columns(columns_to_get=["c5", "c0"]) == ["c0", "c5"]
    assert columns_of(client, 1, versions=1)[0] == ("c0", 0)


def test_a_filter_on_a_part_of_a_text(client: Any) -> None:
    put(client, 1, ("a", "t1,updated:12345"))
    put(client, 2, ("a", "t2,updated:99"))
    rule = sdk.RegexRule("updated:([0-9]+)", sdk.CastType.VT_INTEGER)
    newer = sdk.SingleColumnRegexCondition("a", sdk.ComparatorType.GREATER_THAN, 100, rule)

    found = [client.get_row("t", key(gid), column_filter=newer, max_version=1)[1] for gid in (1, 2)]

    assert [row is not None for row in found] == [True, False]


def test_a_filter_sees_only_what_is_read(client: Any) -> None:
    put(client, 1, ("a", 1), ("b", 2))
    strict = sdk.SingleColumnCondition("a", 1, sdk.ComparatorType.EQUAL, pass_if_missing=False)

    assert client.get_row("t", key(1), column_filter=strict, max_version=1)[1] is not None
    assert client.get_row("t", key(1), ["b"], strict, max_version=1)[1] is None


def test_versions_and_one_time_contradict_each_other(client: Any) -> None:
    assert refusal(client.get_row, "t", key(1), time_range=1_700_000_000_000) == (
        400,
        "OTSParameterInvalid",
        "Specific tiemstamp and max versions cannot be given at the same time.",
    )


def missing(name: str) -> tuple[int, str, str]:
    """How a call that the emulator lacks is refused."""
    message = f"{name} is not available in this emulator: see 'What is missing?' in docs/emulator.md."
    return 400, "OTSParameterInvalid", message


def test_what_the_emulator_lacks_is_refused_in_words(client: Any) -> None:
    assert refusal(client.list_search_index, "t") == missing("ListSearchIndex")
    assert refusal(client.list_search_index) == missing("ListSearchIndex")
    assert refusal(client.describe_search_index, "t", "i") == missing("DescribeSearchIndex")
    assert refusal(client.delete_search_index, "t", "i") == missing("DeleteSearchIndex")
    assert refusal(client.search, "t", "i", sdk.SearchQuery(sdk.MatchAllQuery(), limit=1)) == missing("Search")
    assert refusal(client.compute_splits, "t", "i") == missing("ComputeSplits")
    assert refusal(client.delete_secondary_index, "t", "i") == missing("DropIndex")
    index = sdk.SecondaryIndexMeta("i", ["defined"], [])
    assert refusal(client.create_secondary_index, "t", index, False) == missing("CreateIndex")
    assert refusal(client.exe_sql_query, "select 1") == missing("SQLQuery")
    assert refusal(client.list_timeseries_table) == missing("ListTimeseriesTable")
    assert refusal(client.describe_timeseries_table, "t") == missing("DescribeTimeseriesTable")
    assert list(client.list_table()) == ["t"]
