"""The data source's own classes, called as Spark calls them: schema, splits, rows, refusals."""

from __future__ import annotations

import logging
import socket
import time
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from ots_emulator import Emulator
from ots_emulator.server.faults import FaultRule
from ots_tunnel.client.sync_table import SyncTableClient
from ots_tunnel.client.table_calls import RangePage, RowChange
from ots_tunnel.errors import ConfigError, PermissionDenied, TunnelError
from ots_tunnel.model import Action
from ots_tunnel.protocol.plainbuffer.codec import decode_row, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.spark.reader.planning import RAW_SCHEMA
from ots_tunnel.spark.source import TablestoreDataSource

from .conftest import ROWS, Instance

KEY = [StructField("carrier", StringType()), StructField("flight", LongType())]
RAW = StructType([StructField("split", LongType()), StructField("row", BinaryType())])


def source(instance: Instance, /, **options: str) -> TablestoreDataSource:
    place = {"endpoint": instance.endpoint, "instance": "demo", "table": "flights"}
    return TablestoreDataSource({**place, "credentialsDirectory": str(instance.secrets), **options})


def rows(source: TablestoreDataSource, schema: StructType) -> list[dict[str, Any]]:
    reader = source.reader(schema)
    batches = [batch for partition in reader.partitions() for batch in reader.read(partition)]
    return list(pa.Table.from_batches(batches).to_pylist())


def test_the_schema_is_raw_or_the_key_with_the_named_columns(instance: Instance) -> None:
    assert source(instance, mode="raw").schema() == RAW_SCHEMA
    assert source(instance, columns="").schema() == StructType([*KEY])
    assert source(instance, columns="delay BIGINT").schema() == StructType([*KEY, StructField("delay", LongType())])
    assert source(instance).name() == "ots"


def test_the_splits_together_are_the_table(instance: Instance) -> None:
    small = {"splitBytes": "1048576", "mode": "raw"}

    assert len(source(instance, **small).reader(RAW).partitions()) > 1
    assert sum(bool(row["row"]) for row in rows(source(instance, **small), RAW)) == ROWS


def test_typed_rows_have_the_schemas_columns(instance: Instance) -> None:
    schema = StructType([StructField("flight", LongType()), StructField("remark", StringType())])

    found = {row["flight"]: row["remark"] for row in rows(source(instance), schema)}

    assert set(found) == set(range(ROWS))
    assert found[500] is None
    assert isinstance(found[1], str)


def test_rows_without_any_of_the_columns_are_there(instance: Instance) -> None:
    schema = StructType([StructField("remark", StringType()), StructField("never", StringType())])

    found = rows(source(instance), schema)

    assert len(found) == ROWS
    assert {"remark": None, "never": None} in found


def test_only_the_wanted_columns_travel(instance: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    read, sizes = SyncTableClient.get_range, [0]

    def measured(*arguments: Any, **options: Any) -> RangePage:
        page = read(*arguments, **options)
        sizes[-1] += len(page.rows)
        return page

    monkeypatch.setattr(SyncTableClient, "get_range", measured)
    fields = [StructField("flight", LongType()), StructField("remark", StringType())]
    found = []
    for count in (2, 1):
        found.append([row["flight"] for row in rows(source(instance), StructType(fields[:count]))])
        sizes.append(0)

    assert found[0] == found[1]
    assert 0 < sizes[1] < sizes[0] / 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"accessKeySecret": "hush"}, "option 'accesskeysecret' is unknown"),
        ({"table": ""}, "option 'table' is missing"),
        ({"mode": "fast"}, "option 'mode': found 'fast', allowed are typed and raw"),
        ({"splitBytes": "10"}, "option 'splitBytes': found '10', allowed are 1048576 and more"),
        ({"endpoint": "127.0.0.1:99"}, "option 'endpoint': found '127.0.0.1:99', allowed is http"),
        ({"endpoint": "http://user:hush@127.0.0.1"}, "option 'endpoint': found a user name or password"),
        ({"instance": "-"}, "option 'instance': found '-'"),
        ({"columns": "delay BIGINT, delay DOUBLE"}, "column 'delay': found twice"),
        ({"columns": "delay BIGINT, flight BIGINT"}, "option 'columns': found the key column 'flight'"),
        ({"columns": "delay BIGINT, Flight BIGINT"}, "column 'Flight': the key is named 'flight', table 'flights' has"),
        ({"columns": "delay INT"}, "column 'delay': found type int, allowed are .*; use bigint"),
        ({"credentialsDirectory": "/nowhere"}, "option 'credentialsDirectory': /nowhere/accessKeyId: missing"),
    ],
)
def test_a_wrong_option_is_named_in_one_line(instance: Instance, options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        source(instance, **options).schema()
    assert "hush" not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_port_that_speaks_no_tls_fails_at_once(instance: Instance) -> None:
    endpoint = instance.endpoint.replace("http://", "https://")
    began = time.monotonic()

    with pytest.raises(
        ConfigError, match=f"option 'endpoint': found '{endpoint}', no connection to it: .*SSL"
    ) as caught:
        source(instance, endpoint=endpoint).schema()
    assert time.monotonic() - began < 10
    assert len(str(caught.value).splitlines()) == 1
    assert caught.value.__cause__ is None


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_a_port_where_nothing_listens_fails_at_once(instance: Instance) -> None:
    endpoint = f"http://127.0.0.1:{closed_port()}"
    began = time.monotonic()

    with pytest.raises(ConfigError, match=f"option 'endpoint': found '{endpoint}', no connection to it") as caught:
        source(instance, endpoint=endpoint).schema()
    assert time.monotonic() - began < 10
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"Carrier": StringType()},
            "column 'Carrier': the key is named 'carrier', .* keys carrier STRING, flight BIGINT; an attribute",
        ),
        ({"carier": StringType()}, "column 'carier': no sampled row has it, and it is almost the key 'carrier'"),
        ({"flight": StringType()}, "column 'flight': found type string, table 'flights' has the keys carrier STRING"),
        ({"flight": DoubleType()}, "column 'flight': found type double, table 'flights' has the keys carrier STRING"),
        (
            {"remark": LongType()},
            "column 'remark': found string in the row carrier='c00', flight=.*, the schema says bigint",
        ),
    ],
)
def test_names_and_types_are_checked_before_any_task(
    instance: Instance, fields: dict[str, DataType], message: str
) -> None:
    reader = source(instance).reader(StructType([StructField(name, kind) for name, kind in fields.items()]))

    with pytest.raises(TunnelError, match=message) as caught:
        reader.partitions()
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["delay", "flights", "remrak"])
def test_a_name_that_may_be_an_attribute_is_read(instance: Instance, name: str) -> None:
    schema = StructType([StructField(name, LongType()), StructField("flight", LongType())])

    assert len(rows(source(instance), schema)) == ROWS


def test_an_attribute_named_almost_like_a_key_is_read(instance: Instance) -> None:
    change = encode_row((("carrier", "c00"), ("flight", 0)), [Column("fligth", 5, 1_700_000_000_000)])
    assert [each.code for each in instance.client.batch_write("flights", [RowChange(Action.PUT, change)])] == [None]

    found = rows(source(instance), StructType([StructField("fligth", LongType())]))

    assert [row["fligth"] for row in found if row["fligth"]] == [5]


@pytest.mark.parametrize(("mode", "schema"), [("typed", StructType([StructField("delay", LongType())])), ("raw", RAW)])
def test_a_missing_right_fails_once_where_the_query_is_planned(
    instance: Instance, emulator: Emulator, mode: str, schema: StructType
) -> None:
    emulator.faults.add(FaultRule("GetRange", code="OTSNoPermissionAccess", message="no"))
    reader = source(instance, mode=mode).reader(schema)
    calls = emulator.calls

    with pytest.raises(PermissionDenied):
        reader.partitions()
    assert emulator.calls - calls == 3  # description, split points, first look


@pytest.mark.parametrize("columns", ["delay", "delay BIGINT, never STRING", "`delay`, flight"])
def test_raw_rows_hold_the_named_columns_alone(instance: Instance, columns: str) -> None:
    found = [decode_row(row["row"]) for row in rows(source(instance, mode="raw", columns=columns), RAW) if row["row"]]

    assert [row.primary_key for row in found] == [row.primary_key for row in instance.rows("flights")]
    assert {column.name for row in found for column in row.columns} == {"delay"}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("Flight", "column 'Flight': the key is named 'flight'"),
        (",".join(f"c{number}" for number in range(128)), "option 'columns': found 128 names, allowed are 127"),
    ],
)
def test_wrong_columns_of_raw_rows_are_named(instance: Instance, columns: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        source(instance, mode="raw", columns=columns).reader(RAW).partitions()


def test_columns_in_no_row_are_named_in_the_log(instance: Instance, caplog: pytest.LogCaptureFixture) -> None:
    fields = [StructField(name, LongType()) for name in ("never", "delay", "nor_this", "flight")]

    rows(source(instance), StructType(fields))

    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f"split 0 of table 'flights': none of {ROWS} rows has column 'never', 'nor_this': NULL in every row"
    ]


@pytest.mark.parametrize("mode", ["typed", "raw"])
def test_what_each_task_read_is_told_in_the_log(
    instance: Instance, caplog: pytest.LogCaptureFixture, mode: str
) -> None:
    caplog.set_level(logging.INFO, "ots_tunnel.spark")

    rows(source(instance, mode=mode, splitBytes="1048576"), RAW if mode == "raw" else StructType([*KEY]))

    told = [vars(record) for record in caplog.records if vars(record).get("action") == "scan_read"]
    assert len(told) > 1
    assert {each["table"] for each in told} == {"flights"}
    assert sum(each["rows"] for each in told) == ROWS
    assert all(each["pages"] and each["bytes"] and each["seconds"] >= 0 for each in told)


def test_a_wrong_schema_is_named(instance: Instance) -> None:
    with pytest.raises(ConfigError, match=r"column 'delay': found type decimal\(10,2\)"):
        source(instance).reader(StructType([StructField("delay", DecimalType(10, 2))]))
    with pytest.raises(ConfigError, match="mode raw has only the schema"):
        source(instance, mode="raw").reader(StructType([StructField("row", BinaryType())]))


def test_a_schema_without_columns_is_refused(instance: Instance) -> None:
    """Spark would count no rows."""
    with pytest.raises(ConfigError, match="found no columns"):
        source(instance).reader(StructType([]))


def test_a_column_that_may_not_be_null_is_refused(instance: Instance) -> None:
    """No column of a table is in every row, and Spark would fail on the executors, without a name."""
    strict = StructType([StructField("flight", LongType()), StructField("delay", LongType(), nullable=False)])

    with pytest.raises(ConfigError, match="column 'delay': found NOT NULL"):
        source(instance).reader(strict)
