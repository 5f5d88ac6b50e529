"""What options and filters make of a query, with the data source's classes called as Spark calls them."""

from __future__ import annotations

import pickle
import time
from typing import Any

import pytest
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import Action, KeyColumn, KeyType, Marker
from ots_tunnel.protocol.plainbuffer.codec import decode_row, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.tables import TableAdmin, TableSchema

from .conftest import CREDENTIALS, KEYS, ROWS, Instance
from .test_source_alone import KEY, RAW, rows, source

DELAY, REMARK = StructField("delay", LongType()), StructField("remark", StringType())
FIRST, LAST = 1_700_000_000_000, 1_700_000_000_002


def put(instance: Instance, number: int, *columns: Column) -> None:
    change = RowChange(Action.PUT, encode_row((("carrier", "c00"), ("flight", number)), columns))
    assert [outcome.code for outcome in instance.client.batch_write("flights", [change])] == [None]


@pytest.mark.parametrize(
    ("options", "attributes"),
    [({}, [DELAY, REMARK]), ({"sampleRows": "2"}, [DELAY, REMARK]), ({"sampleRows": "1"}, [])],
)
def test_without_a_schema_some_rows_tell_the_columns(
    instance: Instance, options: dict[str, str], attributes: list[StructField]
) -> None:
    # the first row has its key alone
    assert source(instance, **options).schema() == StructType([*KEY, *attributes])
    assert source(instance, **options).schema() == source(instance, **options).schema()


def test_columns_that_the_table_defines_need_no_rows(instance: Instance) -> None:
    admin = TableAdmin(instance.endpoint, "demo", CREDENTIALS)
    admin.create(TableSchema("defined", KEYS, defined_columns=(("photo", "BINARY"), ("delay", "INTEGER"))))
    admin.close()

    schema = source(instance, table="defined", sampleRows="0").schema()

    assert schema == StructType([*KEY, StructField("photo", BinaryType()), DELAY])


def test_types_in_conflict_are_an_error_a_text_or_null(instance: Instance) -> None:
    put(instance, 0, Column("delay", "late", FIRST))
    put(instance, 13, Column("delay", True, FIRST), Column("photo", b"\xff", FIRST))
    put(instance, 26, Column("photo", "none", FIRST))
    put(instance, 39, Column("delay", -61, FIRST))

    with pytest.raises(ConfigError, match="column 'delay': found values of types bigint and boolean and string"):
        source(instance).schema()
    found: dict[str, dict[int, Any]] = {}
    for policy in ("string", "null"):
        asked = source(instance, onTypeConflict=policy)
        schema: Any = asked.schema()
        found[policy] = {row["flight"]: (row["delay"], row["photo"]) for row in rows(asked, schema)}
    assert [found["string"][number] for number in (0, 13, 26, 39)] == [
        ("late", None),
        ("true", "/w=="),
        (None, "none"),
        ("-61", None),
    ]
    assert [found["null"][number] for number in (0, 13, 26, 39)] == [
        (None, None),
        (None, None),
        (None, "none"),
        (-61, None),
    ]
    assert len(found["null"]) == ROWS


def test_versions_of_a_range_alone(instance: Instance) -> None:
    latest = {row["flight"]: row["remark"] for row in rows(source(instance), StructType([*KEY, REMARK]))}
    asked = source(instance, startVersion=str(FIRST), endVersion=str(FIRST + 1))
    oldest = {row["flight"]: row["remark"] for row in rows(asked, StructType([*KEY, REMARK]))}
    late = rows(source(instance, startVersion=str(LAST)), StructType([*KEY, REMARK, DELAY]))

    expected = {
        dict(row.primary_key)["flight"]: [column.value for column in row.columns if column.name == "remark"]
        for row in instance.rows("flights")
    }
    assert latest == {number: values[0] if values else None for number, values in expected.items()}
    assert oldest == {number: values[-1] if values else None for number, values in expected.items()}
    assert len(late) == ROWS
    assert {row["delay"] for row in late} == {None}
    assert sum(row["remark"] is not None for row in late) == sum(len(values) == 3 for values in expected.values())


def test_raw_rows_have_so_many_versions(instance: Instance) -> None:
    found = [decode_row(row["row"]) for row in rows(source(instance, mode="raw", maxVersions="1"), RAW) if row["row"]]

    assert len(found) == ROWS
    assert all(len({column.name for column in row.columns}) == len(row.columns) for row in found)


def test_rows_per_second_of_a_task(instance: Instance) -> None:
    began = time.monotonic()

    assert len(rows(source(instance, rowsPerSecond="3000"), StructType([*KEY]))) == ROWS

    assert time.monotonic() - began >= ROWS / 3_000


def test_keys_that_the_service_counts_are_read_as_long(instance: Instance) -> None:
    key = (KEYS[0], KeyColumn("number", KeyType.INTEGER, auto_increment=True))
    admin = TableAdmin(instance.endpoint, "demo", CREDENTIALS)
    admin.create(TableSchema("counted", key))
    admin.close()
    change = RowChange(Action.PUT, encode_row((("carrier", "c"), ("number", Marker.AUTO_INCREMENT)), [Column("d", 1)]))
    assert [outcome.code for outcome in instance.client.batch_write("counted", [change] * 2)] == [None] * 2

    schema: Any = source(instance, table="counted").schema()
    found = rows(source(instance, table="counted"), schema)

    assert schema["number"].dataType == LongType()
    assert len({row["number"] for row in found}) == 2


@pytest.mark.parametrize("mode", ["typed", "raw"])
def test_conditions_of_the_key_read_their_rows_alone(instance: Instance, mode: str) -> None:
    asked = source(instance, where="carrier IN ('c01', 'c12') AND 1400 < flight", splitBytes="1048576", mode=mode)
    found = rows(asked, RAW if mode == "raw" else StructType([*KEY]))

    keys: list[Any] = [
        dict(decode_row(row["row"]).primary_key)["flight"] if mode == "raw" else row["flight"]
        for row in found
        if mode == "typed" or row["row"]
    ]
    assert sorted(keys) == [number for number in range(1_401, ROWS) if number % 13 in (1, 12)]


def test_the_sample_is_of_the_rows_that_are_read(instance: Instance) -> None:
    assert source(instance, where="carrier = 'c00' AND flight = 0").schema() == StructType(KEY)


def test_neither_reader_nor_partitions_carry_a_secret(instance: Instance) -> None:
    reader = source(instance).reader(StructType([*KEY]))

    sent = pickle.dumps((reader, reader.partitions()))

    assert b"flights" in sent
    assert b"test-secret" not in sent
    assert b"test-id" not in sent


def test_credentials_of_the_environment(instance: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTS_ACCESS_KEY_ID", "test-id")
    monkeypatch.setenv("OTS_ACCESS_KEY_SECRET", "test-secret")
    options = {"endpoint": instance.endpoint, "instance": "demo", "table": "flights"}
    asked = type(source(instance))({**options, "credentialsProvider": "environment"})

    assert len(rows(asked, StructType([*KEY]))) == ROWS


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"credentialsProvider": "environment"}, "option 'credentialsProvider': found with 'credentialsDirectory'"),
        ({"maxVersions": "2"}, "option 'maxVersions': found '2', allowed is 1 in mode typed"),
        ({"maxVersions": "0", "mode": "raw"}, "option 'maxVersions': found '0', allowed are 1 and more"),
        ({"startVersion": "5", "endVersion": "5"}, "option 'endVersion': found '5', allowed are 6 and more"),
        ({"startVersion": "-1"}, "option 'startVersion': found '-1', allowed are 0 and more"),
        ({"rowsPerSecond": "fast"}, "option 'rowsPerSecond': found 'fast', allowed are 0 and more"),
        ({"sampleRows": "²"}, "option 'sampleRows': found '²', allowed are 0 and more"),
        ({"where": "flight = 5"}, "option 'where': column 'flight': allowed are single values"),
        ({"where": "flight = "}, "option 'where': found 'flight = ', not understood behind 'flight ='"),
        ({"pushFilters": "yes"}, "option 'pushFilters': found 'yes', allowed are false and true"),
        ({"onTypeConflict": "skip"}, "option 'onTypeConflict': found 'skip', allowed are error, string and null"),
    ],
)
def test_a_wrong_option_is_named(instance: Instance, options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        source(instance, **options).schema()
