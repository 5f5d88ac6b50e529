"""`spark.read.format("ots")` in a real session."""

from __future__ import annotations

import io
import logging
import threading
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


def test_an_attribute_that_equals_a_key_but_for_case_is_read_beside_it(spark: Any, instance: Instance) -> None:
    cells = [Column("Carrier", "X", 1_700_000_000_000), Column("price", 5, 1_700_000_000_000)]
    body = encode_row((("carrier", "a"), ("flight", 1)), cells)
    assert [outcome.code for outcome in instance.client.batch_write("flights", [RowChange(Action.PUT, body)])] == [None]

    frame = reader(spark, instance, where="carrier = 'a'").load()

    assert [tuple(row) for row in frame.collect()] == [("a", 1, "X", 5)]
    assert frame.schema.names == ["carrier", "flight", "Carrier", "price"]


def test_no_secret_is_in_plans_event_logs_and_errors_of_tasks(spark: Any, instance: Instance, event_logs: Path) -> None:
    # of this carrier's rows one behind those of the first look
    wrong = encode_row((("carrier", "c00"), ("flight", 1_404)), [Column("delay", "late", 1_700_000_000_000)])
    assert [outcome.code for outcome in instance.client.batch_write("flights", [RowChange(Action.PUT, wrong)])] == [
        None
    ]
    frame = reader(spark, instance, columns="delay BIGINT").load().where("carrier <= 'c01'")

    with pytest.raises(
        Exception, match="column 'delay': found string in the row carrier='c00', flight=1404, "
    ) as caught:
        frame.collect()
    logged = "".join(path.read_text() for path in event_logs.rglob("*") if path.is_file())

    assert "column 'delay': found string in the row carrier='c00', flight=1404, the schema says bigint" in logged
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
        (
            {},
            "remark BIGINT",
            "column 'remark': found string in the row carrier='c00', flight=13, the schema says bigint",
        ),
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
