"""Filters of Spark as ranges of keys, with the classes called as Spark calls them, and in a real session.

A module of its own, because PySpark 4.0 has neither filters nor their classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.datasource import DataSourceReader, EqualTo, GreaterThan, In, InputPartition, Not
from pyspark.sql.types import StructType

from ots_emulator import Emulator
from ots_tunnel.client.sync_table import SyncTableClient
from ots_tunnel.client.table_calls import RangePage
from ots_tunnel.protocol.plainbuffer.offsets import split_rows
from ots_tunnel.spark import register
from ots_tunnel.spark.versions import PUSH_DOWN_SETTING

from .conftest import ROWS, Instance
from .test_options_alone import DELAY
from .test_source import reader as read
from .test_source_alone import KEY, RAW, source

# one process: one session
pytestmark = [pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.xdist_group("spark"), pytest.mark.lasts(3)]


def test_filters_of_the_key_read_their_rows_alone(instance: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    read, counted = SyncTableClient.get_range, [0]

    def measured(*arguments: Any, **options: Any) -> RangePage:
        page = read(*arguments, **options)
        counted[0] += len(split_rows(page.rows))
        return page

    monkeypatch.setattr(SyncTableClient, "get_range", measured)
    reader: Any = source(instance, splitBytes="1048576", pushFilters="true").reader(StructType([*KEY, DELAY]))
    filters = [
        Not(EqualTo(("flight",), 14)),
        In(("carrier",), ("c01", "c12", "none")),
        GreaterThan(("flight",), 1_400),
        EqualTo(("delay",), 5),
    ]

    left = list(reader.pushFilters(filters))
    parts = reader.partitions()
    looked, counted[0] = counted[0], 0
    found = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]

    assert left == [filters[0], filters[3]]
    assert len(parts) == 2
    assert looked <= 100
    assert counted[0] == len(found)
    assert {(row["carrier"], row["flight"]) for row in found} == {
        (f"c{number % 13:02}", number) for number in range(1_401, ROWS) if number % 13 in (1, 12)
    }


def test_filters_that_no_row_fits_read_nothing(instance: Instance, emulator: Emulator) -> None:
    reader: Any = source(instance, pushFilters="true").reader(StructType([*KEY, DELAY]))

    assert list(reader.pushFilters([EqualTo(("carrier",), "c01"), EqualTo(("carrier",), "c02")])) == []
    assert reader.partitions() == []
    calls = emulator.calls
    assert list(reader.read(InputPartition(None))) == []
    assert emulator.calls == calls


@pytest.mark.parametrize("options", [{}, {"pushFilters": "true", "mode": "raw"}])
def test_without_the_option_and_in_raw_mode_spark_keeps_its_filters(
    instance: Instance, options: dict[str, str]
) -> None:
    reader = source(instance, **options).reader(RAW if options else StructType([*KEY]))

    # PySpark refuses a method of its own where its setting is off
    assert type(reader).pushFilters is DataSourceReader.pushFilters


def test_conditions_and_filters_hold_together(instance: Instance) -> None:
    asked = source(instance, where="carrier IN ('c01', 'c12')", splitBytes="1048576", pushFilters="true")
    reader: Any = asked.reader(StructType([*KEY]))

    assert list(reader.pushFilters([In(("carrier",), ("c12", "c03"))])) == []
    found = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    assert {row["carrier"] for row in found} == {"c12"}


@pytest.fixture
def pushing(spark: Any) -> Iterator[dict[str, str]]:
    """The option that takes filters, with the setting that Spark wants for it."""
    register(spark, push_filters=True)
    yield {"pushFilters": "true"}
    spark.conf.unset(PUSH_DOWN_SETTING)


@pytest.mark.parametrize(
    "condition",
    [
        "carrier = 'c01'",
        "carrier IN ('c01', 'c12', 'none') AND flight > 1400",
        "'c11' <= carrier",
        "carrier LIKE 'c1%' AND 7 <> flight",
        "carrier = 'c07' AND flight BETWEEN 7 AND 500 AND delay > 0",
        "carrier = 'c01' OR flight = 2",
        "carrier = 'c01' AND carrier = 'c02'",
        "carrier IS NULL",
        "carrier <=> NULL",
        "carrier = NULL",
        "flight = 1.5",
        "carrier = '5'",
        "NOT carrier < 'c10'",
    ],
)
def test_filters_give_the_rows_that_spark_would(
    spark: Any, instance: Instance, pushing: dict[str, str], condition: str
) -> None:
    every = read(spark, instance, columns="delay BIGINT").load()
    frame = read(spark, instance, columns="delay BIGINT", **pushing).load()

    # without filters of the source: Spark's own judgement
    spark.createDataFrame(every.collect(), every.schema).createOrReplaceTempView("held")
    expected = spark.sql(f"SELECT * FROM held WHERE {condition}").collect()
    assert sorted(frame.where(condition).collect()) == sorted(expected)


def test_filters_of_the_key_leave_splits_out(spark: Any, instance: Instance, pushing: dict[str, str]) -> None:
    def frame(**options: str) -> Any:
        return read(spark, instance, columns="delay BIGINT", **options).load()

    one = "carrier = 'c01' AND flight = 1"
    assert frame(**pushing).where(one).rdd.getNumPartitions() == 1
    assert frame(where=one).rdd.getNumPartitions() == 1
    assert frame(where=one).count() == 1
    assert frame(where=one).where(one).rdd.getNumPartitions() == 1
    assert frame().where(one).rdd.getNumPartitions() > 1


def test_spark_reads_a_frame_again_with_the_filters_of_the_query_before(
    spark: Any, instance: Instance, pushing: dict[str, str]
) -> None:
    """Why `pushFilters` is no default; where this fails, Spark has learnt it."""
    frame = read(spark, instance, columns="delay BIGINT", **pushing).load()
    kept = read(spark, instance, columns="delay BIGINT").load()

    for one, wrong in ((frame, True), (kept, False)):
        assert one.where("carrier = 'c01'").count() < ROWS
        assert (one.count() < ROWS) == wrong
