"""`spark.read.format("ots")` in a real session."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.model import Action
from ots_tunnel.protocol.plainbuffer.codec import decode_row, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.spark import register

from .conftest import ROWS, Instance

# one process: one session
pytestmark = [pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.xdist_group("spark"), pytest.mark.lasts(3)]


def reader(spark: Any, instance: Instance, **options: str) -> Any:
    register(spark)
    options = {
        "endpoint": instance.endpoint,
        "instance": "demo",
        "table": "flights",
        "credentialsDirectory": str(instance.secrets),
        "splitBytes": "1048576",
        **options,
    }
    return spark.read.format("ots").options(**options)


def test_raw_rows_are_those_of_the_table(spark: Any, instance: Instance) -> None:
    frame = reader(spark, instance, mode="raw").load()
    found = frame.collect()

    splits = frame.rdd.getNumPartitions()
    assert splits > 1
    assert [decode_row(bytes(item.row)) for item in found if item.row] == instance.rows("flights")
    assert sorted(item.split for item in found if not item.row) == list(range(splits))


def test_typed_rows_are_the_latest_versions(spark: Any, instance: Instance) -> None:
    frame = reader(spark, instance, columns="remark STRING, delay BIGINT, missing DOUBLE").load()
    found = {(item.carrier, item.flight): (item.remark, item.delay, item.missing) for item in frame.collect()}

    expected = {}
    for row in instance.rows("flights"):
        latest: dict[str, Any] = {}
        for column in sorted(row.columns, key=lambda column: column.timestamp_ms or 0):
            latest[column.name] = column.value
        carrier, flight = (value for _, value in row.primary_key)
        expected[carrier, flight] = (latest.get("remark"), latest.get("delay"), None)
    assert len(found) == ROWS
    assert found == expected
    assert (
        frame.schema.simpleString() == "struct<carrier:string,flight:bigint,remark:string,delay:bigint,missing:double>"
    )


def test_a_schema_of_the_user_decides_the_columns(spark: Any, instance: Instance) -> None:
    frame = reader(spark, instance).schema("delay DOUBLE, carrier STRING").load()

    total = frame.where("carrier = 'c01'").groupBy().sum("delay").collect()[0][0]
    assert total == sum(n - 100 for n in range(ROWS) if n % 13 == 1 and n % 500)


@pytest.fixture
def pushing(spark: Any) -> Iterator[dict[str, str]]:
    """The option that takes filters, with the setting that Spark wants for it."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    yield {"pushFilters": "true"}
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


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
    every = reader(spark, instance, columns="delay BIGINT").load()
    frame = reader(spark, instance, columns="delay BIGINT", **pushing).load()

    # without filters of the source: Spark's own judgement
    spark.createDataFrame(every.collect(), every.schema).createOrReplaceTempView("held")
    expected = spark.sql(f"SELECT * FROM held WHERE {condition}").collect()
    assert sorted(frame.where(condition).collect()) == sorted(expected)


def test_filters_of_the_key_leave_splits_out(spark: Any, instance: Instance, pushing: dict[str, str]) -> None:
    def frame(**options: str) -> Any:
        return reader(spark, instance, columns="delay BIGINT", **options).load()

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
    frame = reader(spark, instance, columns="delay BIGINT", **pushing).load()
    kept = reader(spark, instance, columns="delay BIGINT").load()

    for one, wrong in ((frame, True), (kept, False)):
        assert one.where("carrier = 'c01'").count() < ROWS
        assert (one.count() < ROWS) == wrong


def plan_of(frame: Any) -> str:
    text = io.StringIO()
    with redirect_stdout(text):
        frame.explain(extended=True)
    return text.getvalue()


class Told(logging.Handler):
    """The first warning of the driver's log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.line = ""
        self.came = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.line = record.getMessage()
        self.came.set()


def test_columns_in_no_row_are_named_once_in_the_drivers_log(spark: Any, instance: Instance) -> None:
    told, logger = Told(), logging.getLogger("ots_tunnel.spark.reader.occurrence")
    logger.addHandler(told)
    try:
        frame = reader(spark, instance, columns="remrak STRING, delay BIGINT").load()
        assert frame.rdd.getNumPartitions() > 1
        frame.collect()
        assert told.came.wait(30)
    finally:
        logger.removeHandler(told)
    assert told.line == f"table 'flights': none of {ROWS} rows has column 'remrak': NULL in every row"


def test_without_a_schema_the_columns_are_those_of_rows(spark: Any, instance: Instance) -> None:
    frame = reader(spark, instance).load()

    assert frame.schema.simpleString() == "struct<carrier:string,flight:bigint,delay:bigint,remark:string>"
    assert frame.count() == ROWS


def test_no_secret_is_in_plans_event_logs_and_errors_of_tasks(spark: Any, instance: Instance, event_logs: Path) -> None:
    # of this carrier's rows one behind those of the first look
    wrong = encode_row((("carrier", "c00"), ("flight", 1_404)), [Column("delay", "late", 1_700_000_000_000)])
    assert [outcome.code for outcome in instance.client.batch_write("flights", [RowChange(Action.PUT, wrong)])] == [
        None
    ]
    frame = reader(spark, instance, columns="delay BIGINT").load().where("carrier <= 'c01'")

    with pytest.raises(Exception, match="column 'delay': found a str") as caught:
        frame.collect()
    logged = "".join(path.read_text() for path in event_logs.rglob("*") if path.is_file())

    assert "column 'delay': found a str" in logged
    for text in (plan_of(frame), str(caught.value), logged):
        assert text
        assert "test-secret" not in text
    # the last line of Spark's is not ours
    assert len(str(caught.value).splitlines()) <= 8


@pytest.mark.parametrize(
    ("options", "schema", "message"),
    [
        ({"accessKeySecret": "hush"}, None, "option 'accesskeysecret' is unknown"),
        ({"mode": "fast"}, None, "option 'mode': found 'fast', allowed are typed and raw"),
        ({"splitBytes": "10"}, None, "option 'splitBytes': found '10', allowed are 1048576 and more"),
        ({"table": ""}, None, "option 'table' is missing"),
        ({}, "delay DECIMAL(10,2)", "column 'delay': found type decimal"),
        ({}, "remark BIGINT", "column 'remark': found a str, the schema says bigint"),
        ({"columns": "flight BIGINT"}, None, "option 'columns': found the key column 'flight'"),
        ({"columns": "delay BIGINT, delay BIGINT"}, None, "column 'delay': found twice"),
        ({"columns": "delay VARCHAR(9)"}, None, "column 'delay': found type varchar(9), allowed are bigint"),
        ({}, "delay INT", "column 'delay': found type int, allowed are bigint"),
        ({}, "Carrier STRING", "column 'Carrier': the key is named 'carrier'"),
        ({"endpoint": "127.0.0.1:1"}, None, "option 'endpoint': found '127.0.0.1:1'"),
        ({"endpoint": "http://127.0.0.1:1"}, None, "option 'endpoint': found 'http://127.0.0.1:1', no connection"),
    ],
)
def test_mistakes_are_named_in_one_line(
    spark: Any, instance: Instance, options: dict[str, str], schema: str | None, message: str
) -> None:
    asked = reader(spark, instance, **{"splitBytes": "104857600", **options})

    with pytest.raises(Exception, match=r"ots_tunnel\.errors") as caught:
        (asked.schema(schema) if schema else asked).load().collect()
    lines = str(caught.value).splitlines()
    [ours] = [line for line in lines if line.startswith("ots_tunnel.errors.")]
    assert message in ours
    assert "hush" not in str(caught.value)
    # with Spark's own, and those of this package that raise
    assert len(lines) <= 8
