"""The data source's own classes, called as Spark calls them: schema, splits, rows, refusals."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, DecimalType, LongType, StringType, StructField, StructType

from ots_tunnel.client.table import SyncTableClient
from ots_tunnel.client.table_calls import RangePage
from ots_tunnel.errors import ConfigError
from ots_tunnel.spark.source import RAW_SCHEMA, TablestoreDataSource

from .conftest import ROWS, Instance

RAW = StructType([StructField("split", LongType()), StructField("row", BinaryType())])


def source(instance: Instance, **options: str) -> TablestoreDataSource:
    place = {"endpoint": instance.endpoint, "instance": "demo", "table": "flights"}
    return TablestoreDataSource({**place, "credentialsDirectory": str(instance.secrets), **options})


def rows(source: TablestoreDataSource, schema: StructType) -> list[dict[str, Any]]:
    reader = source.reader(schema)
    batches = [batch for partition in reader.partitions() for batch in reader.read(partition)]
    return list(pa.Table.from_batches(batches).to_pylist())


def test_the_schema_is_raw_or_the_key_with_the_named_columns(instance: Instance) -> None:
    assert source(instance, mode="raw").schema() == RAW_SCHEMA
    assert source(instance).schema() == "`carrier` STRING, `flight` BIGINT"
    assert source(instance, columns="delay BIGINT").schema() == "`carrier` STRING, `flight` BIGINT, delay BIGINT"
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
    ],
)
def test_a_wrong_option_is_named(instance: Instance, options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        source(instance, **options).schema()


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
