"""`df.write.format("ots")` in a real session."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ots_emulator.server.faults import FaultRule
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.spark import register

from .conftest import Instance

# one process: one session
pytestmark = [pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.xdist_group("spark"), pytest.mark.lasts(3)]
VERSION = 1_700_000_000_000
SCHEMA = "carrier STRING, flight BIGINT, delay BIGINT, remark STRING, what STRING, at BIGINT"


def writer(frame: Any, instance: Instance, **options: str) -> Any:
    settings = {
        "endpoint": instance.endpoint,
        "instance": "demo",
        "table": "flights_copy",
        "credentialsDirectory": str(instance.secrets),
        **options,
    }
    return frame.write.format("ots").mode("append").options(**settings)


def stored(instance: Instance) -> dict[Any, dict[str, Any]]:
    return {
        tuple(value for _, value in row.primary_key): {column.name: column.value for column in reversed(row.columns)}
        for row in instance.rows("flights_copy")
    }


def test_a_frame_is_written_and_read_back(spark: Any, instance: Instance) -> None:
    register(spark)
    source = spark.read.format("ots").options(
        endpoint=instance.endpoint, instance="demo", table="flights", credentialsDirectory=str(instance.secrets)
    )
    frame = source.load()

    writer(frame.repartition(3), instance).save()

    latest = {}
    for row in instance.rows("flights"):
        newest = {column.name: column.value for column in reversed(row.columns)}
        latest[tuple(value for _, value in row.primary_key)] = newest
    assert stored(instance) == latest


def test_rows_put_update_and_delete_with_their_versions(spark: Any, instance: Instance) -> None:
    register(spark)
    options = {"actionColumn": "what", "versionColumn": "at"}
    first = [("a", number, number, "old", "put", VERSION) for number in range(4)]
    writer(spark.createDataFrame(first, SCHEMA), instance, **options).save()
    changes = [
        ("a", 0, 10, None, "put", VERSION + 1),
        ("a", 1, 11, None, "update", VERSION + 1),
        ("a", 2, None, None, "delete", None),
    ]

    writer(spark.createDataFrame(changes, SCHEMA).coalesce(1), instance, **options).save()

    assert stored(instance) == {
        ("a", 0): {"delay": 10},
        ("a", 1): {"delay": 11, "remark": "old"},
        ("a", 3): {"delay": 3, "remark": "old"},
    }
    [row] = [row for row in instance.rows("flights_copy") if row.primary_key[1] == ("flight", 0)]
    assert row.columns == (Column("delay", 10, VERSION + 1),)


def test_changes_of_one_key_keep_their_order(spark: Any, instance: Instance) -> None:
    register(spark)
    changes = [("a", number % 3, number, None, "put", None) for number in range(600)]

    writer(spark.createDataFrame(changes, SCHEMA).drop("at").coalesce(1), instance, actionColumn="what").save()

    assert {key: cells["delay"] for key, cells in stored(instance).items()} == {
        ("a", 0): 597,
        ("a", 1): 598,
        ("a", 2): 599,
    }


def test_a_batch_that_is_written_again_changes_nothing(spark: Any, instance: Instance) -> None:
    register(spark)
    rows = [("a", number, number, "x", "put", VERSION + number) for number in range(50)]
    frame = spark.createDataFrame(rows, SCHEMA).drop("what")

    writer(frame, instance, versionColumn="at").save()
    once = instance.rows("flights_copy")
    writer(frame, instance, versionColumn="at").save()

    assert instance.rows("flights_copy") == once
    assert len(once) == 50


def test_a_refused_row_fails_the_write_once_with_one_line(spark: Any, instance: Instance, emulator: Any) -> None:
    register(spark)
    rule = FaultRule("BatchWriteRow", count=20, row_code="OTSParameterInvalid")
    emulator.faults.add(rule)
    frame = spark.createDataFrame([("a", number) for number in range(5)], "carrier STRING, flight BIGINT").coalesce(1)

    with pytest.raises(Exception, match="the destination refuses carrier='a', flight=0: OTSParameterInvalid") as caught:
        writer(frame, instance).save()

    lines = str(caught.value).splitlines()
    assert len([line for line in lines if line.startswith("ots_tunnel.errors.")]) == 1
    assert len(lines) <= 8
    assert rule.count == 19, "the row was written more than once"


def test_refused_rows_are_skipped(spark: Any, instance: Instance, emulator: Any) -> None:
    register(spark)
    emulator.faults.add(FaultRule("BatchWriteRow", count=1, row_code="OTSParameterInvalid"))
    rows = [("a", number) for number in range(5)] + [(None, 9)]
    frame = spark.createDataFrame(rows, "carrier STRING, flight BIGINT").coalesce(1)

    writer(frame, instance, onRefused="skip").save()

    assert set(stored(instance)) == {("a", number) for number in range(1, 5)}


def test_refused_rows_become_dead_letters(spark: Any, instance: Instance, emulator: Any, tmp_path: Any) -> None:
    register(spark)
    emulator.faults.add(FaultRule("BatchWriteRow", count=1, row_code="OTSParameterInvalid"))
    rows = [("a", number) for number in range(5)] + [(None, 9)]
    frame = spark.createDataFrame(rows, "carrier STRING, flight BIGINT").coalesce(1)

    writer(frame, instance, onRefused="deadLetter", deadLetterUrl=(tmp_path / "dead").as_uri()).save()

    assert set(stored(instance)) == {("a", number) for number in range(1, 5)}
    [file] = [path for path in (tmp_path / "dead").rglob("*") if path.is_file()]
    letters = [json.loads(line) for line in file.read_text().splitlines()]
    assert {letter["error"]["code"]: letter["key"] for letter in letters} == {
        "OTSParameterInvalid": {"carrier": "a", "flight": 0},
        "NullKey": {"carrier": None, "flight": 9},
    }


@pytest.mark.parametrize(
    ("schema", "options", "message"),
    [
        ("carrier STRING", {}, "column 'flight': found no such column, table 'flights_copy' has the keys"),
        ("carrier STRING, flight INT", {}, "column 'flight': found type int, allowed are bigint"),
        ("carrier STRING, flight BIGINT, d DATE", {}, "column 'd': found type date"),
        ("carrier STRING, flight BIGINT", {"actionColumn": "what"}, "option 'actionColumn': column 'what': found none"),
        ("carrier STRING, flight BIGINT", {"onRefused": "drop"}, "option 'onRefused': found 'drop'"),
        ("carrier STRING, flight BIGINT", {"table": "nowhere"}, "OTSObjectNotExist"),
        ("carrier STRING, flight BIGINT", {"endpoint": "http://127.0.0.1:1"}, "no connection to it"),
    ],
)
def test_mistakes_are_named_in_one_line_before_a_task_starts(
    spark: Any, instance: Instance, schema: str, options: dict[str, str], message: str
) -> None:
    register(spark)
    frame = spark.createDataFrame([], schema)

    with pytest.raises(Exception, match=r"ots_tunnel\.errors") as caught:
        writer(frame, instance, **options).save()

    [line] = [line for line in str(caught.value).splitlines() if line.startswith("ots_tunnel.errors.")]
    assert message in line
    assert len(str(caught.value).splitlines()) <= 8


def test_an_overwrite_is_refused(spark: Any, instance: Instance) -> None:
    register(spark)
    frame = spark.createDataFrame([("a", 1)], "carrier STRING, flight BIGINT")

    with pytest.raises(Exception, match="mode: found overwrite, allowed is append"):
        writer(frame, instance).mode("overwrite").save()


def test_each_micro_batch_of_a_stream_is_written(spark: Any, instance: Instance, tmp_path: Any) -> None:
    register(spark)
    folder = tmp_path / "in"
    spark.createDataFrame([("a", 1, 5), ("b", 2, 6)], "carrier STRING, flight BIGINT, delay BIGINT").write.json(
        str(folder)
    )
    stream = spark.readStream.schema("carrier STRING, flight BIGINT, delay BIGINT").json(str(folder))

    def write(frame: Any, batch: int) -> None:
        writer(frame, instance).save()

    query = (
        stream.writeStream.foreachBatch(write)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert stored(instance) == {("a", 1): {"delay": 5}, ("b", 2): {"delay": 6}}
