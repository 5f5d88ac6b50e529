"""What an Iceberg table tells of batches, and how it is named."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError

from ots_tunnel.errors import ConfigError, QueryRefused
from ots_tunnel.spark.lake import ChangeLog, Delta, Iceberg, change_log
from ots_tunnel.spark.lake.growth import new_columns
from ots_tunnel.spark.lake.tables.iceberg import EXTENSION, IcebergTable


class Conf(dict[str, str]):
    """Settings of a session."""

    def set(self, key: str, value: str) -> None:
        self[key] = value

    def unset(self, key: str) -> None:
        del self[key]


class Java:
    """A table in Java: its snapshots from the oldest to the newest, numbered from 1, and its properties.

    Args:
        expired: so many of the oldest snapshots are gone.
    """

    def __init__(
        self, *notes: tuple[str, int] | None, begun: Mapping[str, str] | None = None, expired: int = 0
    ) -> None:
        self._notes, self._expired = notes, expired
        self._properties = {f"ots-tunnel.begun.{query}": text for query, text in (begun or {}).items()}

    def properties(self) -> dict[str, str]:
        return self._properties

    def currentSnapshot(self) -> Any:
        return self.snapshot(len(self._notes))

    def snapshot(self, number: int) -> Any:
        if number <= self._expired:
            return None
        note = self._notes[number - 1]
        summary = {} if note is None else {"ots-query": note[0], "ots-batch": str(note[1])}
        return SimpleNamespace(
            summary=lambda: summary, snapshotId=lambda: number, parentId=lambda: number - 1 if number > 1 else None
        )


def session(table: Java | None = None, classes: Any = lambda name: object(), **settings: str) -> Any:
    loader = SimpleNamespace(Spark3Util=SimpleNamespace(loadIcebergTable=lambda spark, name: table))
    context = SimpleNamespace(
        _jvm=SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(iceberg=SimpleNamespace(spark=loader)))),
        _jsc=SimpleNamespace(hadoopConfiguration=lambda: SimpleNamespace(getClassByNameOrNull=classes)),
    )
    ran: list[str] = []
    return SimpleNamespace(
        sparkContext=context, _jsparkSession=None, conf=Conf(settings), version="4.1.4", sql=ran.append, ran=ran
    )


def table(found: Java) -> IcebergTable:
    return IcebergTable(session(found), "/lake/orders")


@pytest.mark.parametrize(
    ("java", "last"),
    [
        pytest.param(Java(), None, id="another query, or none"),
        pytest.param(Java(("q", 3), ("q", 4), None, ("other", 9), None, begun={"q": "4 behind 1"}), 4, id="written"),
        pytest.param(Java(("q", 3), None, begun={"q": "4 behind 2"}), 3, id="killed before the commit"),
        pytest.param(Java(("q", 3), None, begun={"q": "4 behind 1"}), 3, id="and others have written since"),
        pytest.param(Java(begun={"q": "0 behind none"}), None, id="killed before the first commit"),
        pytest.param(Java(None, begun={"q": "0 behind none"}), None, id="of a table that others write to"),
        pytest.param(Java(("q", 0), begun={"q": "0 behind none"}), 0, id="the first batch is written"),
        pytest.param(Java(None, None, None, begun={"q": "4 behind 2"}, expired=2), 3, id="nothing tells"),
    ],
)
def test_the_last_batch_is_told_by_what_was_begun_and_the_snapshots(java: Java, last: int | None) -> None:
    assert table(java).last_batch("q") == last


def test_where_nothing_tells_it_is_what_spark_asks_for() -> None:
    """Another program has compacted the table, and let the snapshots of the batch and of the one before expire."""
    found = table(Java(None, None, None, begun={"q": "4 behind 1"}, expired=2))

    # Spark goes on once a batch is written
    assert found.last_batch("q", 5) == 4
    with pytest.raises(QueryRefused, match="found batch 4 begun, and neither its snapshot nor the one before"):
        found.last_batch("q", 4)
    with pytest.raises(QueryRefused, match="nothing tells whether the batch is written"), found.once("q", 4):
        raise AssertionError("it may count twice")


@pytest.mark.parametrize(("number", "is_new"), [(4, False), (3, False), (5, True)])
def test_statements_count_once_and_leave_no_setting(number: int, is_new: bool) -> None:
    found = table(Java(("q", 4), None, begun={"q": "4 behind none"}))

    with found.once("q", number) as told:
        inside = {key: value for key, value in found.spark.conf.items() if "snapshot-property" in key}
        before = list(found.spark.ran)
    assert told is is_new
    prefix = "spark.sql.iceberg.snapshot-property."
    assert inside == ({f"{prefix}ots-query": "q", f"{prefix}ots-batch": str(number)} if is_new else {})
    assert not any("snapshot-property" in key for key in found.spark.conf)
    # told before it is written
    begun = f"ALTER TABLE {found.place} SET TBLPROPERTIES ('ots-tunnel.begun.q' = '{number} behind 2')"
    assert before == found.spark.ran == ([begun] if is_new else [])


def test_a_failed_statement_leaves_no_setting() -> None:
    found = table(Java(("q", 4), begun={"q": "4 behind none"}))

    with pytest.raises(ValueError, match="refused"), found.once("q", 5):
        raise ValueError("refused")

    assert not any("snapshot-property" in key for key in found.spark.conf)


def test_a_path_has_a_catalog_over_the_folder_above() -> None:
    found = table(Java())
    found.last_batch("q")

    catalog, _, name = found.place.partition(".")
    assert name == "`orders`"
    assert found.spark.conf[f"spark.sql.catalog.{catalog}.warehouse"] == "/lake"
    assert found.spark.conf[f"spark.sql.catalog.{catalog}.cache-enabled"] == "false"
    assert table(Java()).place.partition(".")[0] == catalog
    assert IcebergTable(session(), "/other/orders").place.partition(".")[0] != catalog


def test_a_name_is_of_a_catalog_of_the_session_and_is_looked_up_anew() -> None:
    found = IcebergTable(session(Java()), "own.shop.or-ders")
    found.last_batch("q")

    assert found.place == "`own`.`shop`.`or-ders`"
    assert found.spark.ran == ["REFRESH TABLE `own`.`shop`.`or-ders`"]
    assert not any("catalog" in key for key in found.spark.conf)


@pytest.mark.parametrize("place", ["/lake/orders", "file:///lake/orders/", "own.shop.orders", "own.a.b.orders"])
def test_paths_and_names_are_places(place: str) -> None:
    assert ChangeLog(Iceberg(place)).place == Iceberg(place)


@pytest.mark.parametrize(
    "place", ["orders", "shop.orders", "lake/orders", "own..orders", "", "/", "own.shop.`orders`", "/lake/${x}"]
)
def test_another_text_is_refused(place: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"path: found '{place}', allowed is")):
        Iceberg(place)


def test_a_name_is_no_place_of_delta() -> None:
    with pytest.raises(ConfigError, match=r"path: found 'own\.shop\.orders', allowed is an absolute path"):
        Delta("own.shop.orders")


def test_a_session_without_iceberg_is_told_what_to_set() -> None:
    wanted = r"allowed is one with the jar org\.apache\.iceberg:iceberg-spark-runtime-4\.1_2\.13"
    with pytest.raises(QueryRefused, match=wanted):
        IcebergTable(session(classes=lambda name: None), "/lake/orders").check_session()
    with pytest.raises(QueryRefused, match=wanted):
        IcebergTable(session(), "/lake/orders").check_session()
    IcebergTable(session(**{"spark.sql.extensions": f"other,{EXTENSION}"}), "/lake/orders").check_session()


def test_a_jar_of_another_minor_is_told() -> None:
    def misfit(name: str) -> Any:
        raise Py4JError("java.lang.IncompatibleClassChangeError: class SparkCatalog can not implement it")

    with pytest.raises(QueryRefused, match=r"found Iceberg's jar of another minor than that of Spark 4\.1\.4"):
        IcebergTable(session(classes=misfit), "/lake/orders").check_session()


def test_names_that_iceberg_has_itself_get_no_column() -> None:
    own = ("_file", "_POS", "_spec_id", "_row_id", "_partition", "_change_type")

    found = new_columns((), {name: {"integer"} for name in (*own, "_id", "file")}, IcebergTable.is_taken)

    assert found == (("_id", "bigint"), ("file", "bigint"))


def test_names_of_members_of_own_columns_get_no_column() -> None:
    own = ("_others.key", "_others.value.integer", "_versions.key", "key.flight", "sequence.epoch", "others.value")

    found = new_columns((), {name: {"integer"} for name in (*own, "a.b", "keys.x")}, IcebergTable.is_taken)

    assert found == (("a.b", "bigint"), ("keys.x", "bigint"))


def test_files_that_no_snapshot_has_stay_for_as_long_as_iceberg_wants() -> None:
    found = table(Java())

    found.clean(1)

    expire, remove = (re.search(r"TIMESTAMP '(.*)'", text) for text in found.spark.ran)
    assert expire is not None
    assert remove is not None
    ages = [(time.time() - datetime.fromisoformat(each[1]).timestamp()) / 3600 for each in (expire, remove)]
    assert ages == pytest.approx([1, 24], abs=0.01)


def test_a_folder_that_is_put_back_while_the_process_lives_on_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers: list[int] = []
    known = SimpleNamespace(
        path="/lake/log",
        spark=SimpleNamespace(),
        exists=True,
        check_session=lambda: None,
        create=lambda columns, properties: None,
        columns=lambda: (("id", "bigint"),),
        add_columns=lambda columns: None,
        last_batch=lambda query, asked: max(numbers, default=None),
        append=lambda rows, query, number: numbers.append(number),
    )
    monkeypatch.setattr(change_log, "query_of", lambda spark: "q")
    monkeypatch.setattr(change_log, "columns_in", lambda schema: (("id", "bigint"),))
    monkeypatch.setattr(Iceberg, "seen_by", lambda place, spark: known)
    batch: Any = SimpleNamespace(
        sparkSession=None, schema=None, columns=["id"], persist=lambda: None, unpersist=lambda: None
    )
    log = ChangeLog(Iceberg("/lake/log"))
    for number in range(6):
        log(batch, number)

    with pytest.raises(QueryRefused, match="the folder is older than the table"):
        log(batch, 3)


def test_a_name_inside_another_table_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IcebergTable, "exists", property(lambda table: table.path == "own.shop.orders"))

    with pytest.raises(QueryRefused, match=r"found a place inside the table 'own\.shop\.orders'"):
        IcebergTable(session(Java()), "own.shop.orders.eu").create([("id", "bigint")], {})
