"""What an Iceberg table tells of batches, and how it is named."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError

from ots_tunnel.errors import ConfigError, QueryRefused
from ots_tunnel.spark.lake import ChangeLog, Delta, Iceberg
from ots_tunnel.spark.lake.growth import new_columns
from ots_tunnel.spark.lake.tables.iceberg import EXTENSION, IcebergTable


class Conf(dict[str, str]):
    """Settings of a session."""

    def set(self, key: str, value: str) -> None:
        self[key] = value

    def unset(self, key: str) -> None:
        del self[key]


class Java:
    """A table in Java: its snapshots from the oldest to the newest, and its properties."""

    def __init__(self, *notes: tuple[str, int] | None, properties: dict[str, str] | None = None) -> None:
        self._notes, self._properties = notes, properties or {}

    def properties(self) -> dict[str, str]:
        return self._properties

    def currentSnapshot(self) -> Any:
        return self.snapshot(len(self._notes) - 1) if self._notes else None

    def snapshot(self, number: int) -> Any:
        note = self._notes[number]
        summary = {} if note is None else {"ots-query": note[0], "ots-batch": str(note[1])}
        return SimpleNamespace(summary=lambda: summary, parentId=lambda: number - 1 if number else None)


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


def test_the_newest_snapshot_of_a_query_tells_its_last_batch() -> None:
    # compaction, and another query, have snapshots as well
    found = table(Java(("q", 3), ("q", 4), None, ("other", 9), None))

    assert found.last_batch("q") == 4
    assert found.last_batch("other") == 9
    assert found.last_batch("new") is None
    assert table(Java()).last_batch("q") is None


def test_the_last_batch_outlasts_the_snapshots_that_expire() -> None:
    noted = {"ots-tunnel.batch.q": "7"}

    assert table(Java(None, properties=noted)).last_batch("q") == 7
    assert table(Java(("q", 8), properties=noted)).last_batch("q") == 8  # killed behind the commit


@pytest.mark.parametrize(("number", "is_new"), [(4, False), (3, False), (5, True)])
def test_statements_count_once_and_leave_no_setting(number: int, is_new: bool) -> None:
    found = table(Java(("q", 4)))

    with found.once("q", number) as told:
        inside = {key: value for key, value in found.spark.conf.items() if "snapshot-property" in key}
    assert told is is_new
    prefix = "spark.sql.iceberg.snapshot-property."
    assert inside == ({f"{prefix}ots-query": "q", f"{prefix}ots-batch": str(number)} if is_new else {})
    assert not any("snapshot-property" in key for key in found.spark.conf)
    note = f"ALTER TABLE {found.place} SET TBLPROPERTIES ('ots-tunnel.batch.q' = '{number}')"
    assert found.spark.ran == ([note] if is_new else [])


def test_a_failed_statement_is_not_noted() -> None:
    found = table(Java(("q", 4)))

    with pytest.raises(ValueError, match="refused"), found.once("q", 5):
        raise ValueError("refused")

    assert found.spark.ran == []
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


@pytest.mark.parametrize("place", ["orders", "shop.orders", "lake/orders", "own..orders", "", "/", "own.shop.`orders`"])
def test_another_text_is_refused(place: str) -> None:
    with pytest.raises(ConfigError, match=f"path: found '{place}', allowed is"):
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
