"""A change log keeps whose changes it has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ots_tunnel.errors import QueryRefused
from ots_tunnel.spark.lake import ChangeLog, Delta, change_log
from ots_tunnel.spark.lake.tables import lake_table
from ots_tunnel.spark.lake.tables.delta import DeltaTable

#: A batch of any query.
BATCH: Any = SimpleNamespace(
    sparkSession=None, schema=None, columns=["key"], persist=lambda: None, unpersist=lambda: None
)


class Table(DeltaTable):
    """A table of Delta in memory."""

    kept: dict[str, str]
    batches: list[tuple[str, int]]

    def check_session(self) -> None:
        """Any session will do."""

    @property
    def exists(self) -> bool:
        return bool(self.kept)

    def properties(self) -> dict[str, str]:
        return dict(self.kept)

    def set_property(self, key: str, value: str) -> None:
        Table.kept[key] = value

    def columns(self) -> tuple[tuple[str, str], ...]:
        return (("key", "string"),)

    def last_batch(self, application: str, asked: int | None = None) -> int | None:
        return max((number for query, number in self.batches if query == application), default=None)

    def append(self, rows: Any, application: str, number: int) -> None:
        self.batches.append((application, number))


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> type[Table]:
    """The table in the place of every log."""
    Table.kept, Table.batches = {}, []

    def run(spark: Any, statement: str) -> None:
        pairs = statement.partition("TBLPROPERTIES (")[2].rstrip(")").split(", ")
        Table.kept = Table.kept or {key.strip("'"): value.strip("'") for key, value in (p.split(" = ") for p in pairs)}

    monkeypatch.setattr(Table, "_check_empty", lambda table: None)
    monkeypatch.setattr(lake_table, "run", run)
    monkeypatch.setattr(change_log, "columns_in", lambda schema: (("key", "string"),))
    monkeypatch.setattr(change_log, "query_of", lambda spark: "query")
    monkeypatch.setattr(Delta, "seen_by", lambda place, spark: Table(spark, place.path))
    return Table


def test_a_log_of_another_source_is_refused(table: type[Table]) -> None:
    """In a bucket two drivers in one table would write over each other's commits."""
    ChangeLog("s3a://lake/log", source="shop/orders/lake")(BATCH, 0)

    with pytest.raises(
        QueryRefused, match="found a change log of 'shop/orders/lake', wanted is one of 'shop/customers/lake'"
    ):
        ChangeLog("s3a://lake/log", source="shop/customers/lake")(BATCH, 0)
    assert table.batches == [("query", 0)]
    ChangeLog("s3a://lake/log", source="shop/orders/lake")(BATCH, 1)
    assert table.batches == [("query", 0), ("query", 1)]


def test_a_log_without_a_source_takes_every_one_and_gets_the_first_that_is_named(table: type[Table]) -> None:
    ChangeLog("/lake/log")(BATCH, 0)
    ChangeLog("/lake/log")(BATCH, 1)
    assert "ots-tunnel.source" not in table.kept

    ChangeLog("/lake/log", source="shop/orders/lake")(BATCH, 2)
    assert table.kept["ots-tunnel.source"] == "shop/orders/lake"


def test_a_query_that_is_refused_leaves_no_mark_in_the_log_of_another_one(
    table: type[Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier release has written the log, without a source."""
    table.kept, table.batches = {"ots-tunnel.kind": "changes"}, [("orders query", 41)]
    monkeypatch.setattr(change_log, "query_of", lambda spark: "customers query")
    with pytest.raises(QueryRefused, match="has no batch of the same query"):
        ChangeLog("s3a://lake/log", source="shop/customers/lake")(BATCH, 7)

    assert "ots-tunnel.source" not in table.kept
    monkeypatch.setattr(change_log, "query_of", lambda spark: "orders query")
    ChangeLog("s3a://lake/log", source="shop/orders/lake")(BATCH, 42)
    assert table.kept["ots-tunnel.source"] == "shop/orders/lake"


def test_a_log_without_a_source_gets_that_of_a_new_query_too(table: type[Table]) -> None:
    """One of an example, or of an earlier release: otherwise two sources could go on side by side."""
    table.kept = {"ots-tunnel.kind": "changes"}
    ChangeLog("s3a://lake/log", source="shop/orders/lake")(BATCH, 0)

    with pytest.raises(QueryRefused, match=r"whose property ots-tunnel\.source tells it"):
        ChangeLog("s3a://lake/log", source="shop/customers/lake")(BATCH, 0)


def test_of_two_that_create_a_log_at_once_one_is_refused(table: type[Table], monkeypatch: pytest.MonkeyPatch) -> None:
    def overtake(found: Table) -> None:
        table.kept = {"ots-tunnel.kind": "changes", "ots-tunnel.source": "shop/orders/lake"}

    monkeypatch.setattr(Table, "_check_empty", overtake)
    with pytest.raises(QueryRefused, match=r"source 'shop/orders/lake', wanted is 'shop/customers/lake'"):
        ChangeLog("s3a://lake/log", source="shop/customers/lake")(BATCH, 0)
    assert table.batches == []
