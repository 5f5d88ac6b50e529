"""`spark.read.format("ots")` in a real session."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel.protocol.plainbuffer.codec import decode_row
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


@pytest.mark.parametrize(
    ("options", "schema", "message"),
    [
        ({"accessKeySecret": "hush"}, None, "option 'accesskeysecret' is unknown"),
        ({"mode": "fast"}, None, "option 'mode': found 'fast', allowed are typed and raw"),
        ({"splitBytes": "10"}, None, "option 'splitBytes': found '10', allowed are 1048576 and more"),
        ({"table": ""}, None, "option 'table' is missing"),
        ({}, "delay DECIMAL(10,2)", "column 'delay': found type decimal"),
        ({}, "remark BIGINT", "column 'remark': found a str, the schema says bigint"),
    ],
)
def test_mistakes_are_named(
    spark: Any, instance: Instance, options: dict[str, str], schema: str | None, message: str
) -> None:
    asked = reader(spark, instance, **{"splitBytes": "104857600", **options})

    with pytest.raises(Exception, match=r"ots_tunnel\.errors") as caught:
        (asked.schema(schema) if schema else asked).load().collect()
    assert message in str(caught.value)
    assert "hush" not in str(caught.value)
