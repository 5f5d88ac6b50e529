"""`spark.read.format("ots")`: reads a table by its splits, with GetRange on the executors.

    register(spark)
    orders = (
        spark.read.format("ots")
        .option("endpoint", "https://shop.cn-hangzhou.ots.aliyuncs.com")
        .option("instance", "shop")
        .option("table", "orders")
        .option("columns", "price DOUBLE, customer STRING")
        .load()
    )

Options:
    endpoint, instance, table   required
    credentialsDirectory        folder with accessKeyId and accessKeySecret, on driver and executors, default
                                /etc/ots/secrets/source; keys are never options, because Spark's UI shows options
    columns                     attribute columns as DDL; the key columns precede them automatically. Types are BIGINT,
                                DOUBLE, BOOLEAN, STRING and BINARY; raw mode needs none. With `.schema(...)` instead,
                                exactly its columns are read, and it may leave out key columns
    splitBytes                  size of a split by the service's estimate, default 104857600, at least 1048576
    mode                        typed (default): the latest version of each column, NULL if the row has none
                                raw: see below

Only the schema's columns travel, up to 128 of them; of a wider schema all columns do.
A value of another type than the schema's fails the query; Tablestore keeps types per cell, not per column. The one
conversion is BIGINT to DOUBLE.

Names are checked where the query is planned: keys by their exact names and types, and by a first look at some rows what
else would fail every task. A column that no row of the scan has is a warning in the driver's log (`occurrence`).

Raw mode is lossless; with `columns` it has these columns alone. Its schema is `split BIGINT, row BINARY`; `row` is one
PlainBuffer row with its header and every version of every cell, in the form that a write takes
(`ots_tunnel.protocol.plainbuffer.codec.decode_row` reads it). The last row of each split has an empty `row`: it proves
that the split was read to its end, even if the split is empty.
Every version is one of those that the table keeps when the query is planned. If it keeps more by the end of a split,
the snapshot's tasks get the rows of that split again, with all of them.

docs/architecture.md 7 says where each part runs. The client retries calls, Spark retries tasks; both read again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import BinaryType, BooleanType, DoubleType, LongType, StringType, StructType

from ots_tunnel.errors import ConfigError, TunnelError
from ots_tunnel.model import PrimaryKey
from ots_tunnel.spark.batches import (
    Observed,
    asked_columns,
    pages_of_all_versions,
    raw_batches,
    read_pages,
    typed_batches,
)
from ots_tunnel.spark.ddl import check_repeated, check_type
from ots_tunnel.spark.occurrence import Scan, SplitSeen, report
from ots_tunnel.spark.options import SourceOptions
from ots_tunnel.spark.schemas import check_keys, check_misspelt, key_columns

if TYPE_CHECKING:
    import pyarrow as pa

    from ots_tunnel.client.table import SyncTableClient
    from ots_tunnel.client.table_calls import TableDescription

RAW_SCHEMA = "split BIGINT, row BINARY"
#: Rows of the first look; own choice, one small page.
SAMPLE_ROWS = 100
_SPARK_TYPES = {
    "bigint": LongType(),
    "double": DoubleType(),
    "boolean": BooleanType(),
    "string": StringType(),
    "binary": BinaryType(),
}


class TablestoreDataSource(DataSource):  # type: ignore[misc]  # pyspark has no types we follow
    """The format `ots`; the module's docstring describes its options.

    An error leaves each method with the lines of this module alone (`with_traceback(None)`): Spark shows the whole
    traceback of its worker, and what helps is the last line.
    """

    #: Accumulator of `occurrence`; None where there is no SparkContext.
    occurrences: ClassVar[Any] = None

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        """Name for `format(...)`."""
        return "ots"

    def schema(self) -> StructType | str:
        """Schema of a query without `.schema(...)`: raw, or the key columns and those of option `columns`."""
        try:
            options = SourceOptions.parse(self.options)
            return RAW_SCHEMA if options.raw else _struct(_columns_of(options))
        except TunnelError as error:
            raise error.with_traceback(None) from None

    def reader(self, schema: StructType) -> TablestoreReader:
        """Check the schema and return its reader."""
        try:
            options = SourceOptions.parse(self.options)
            return TablestoreReader(options, _checked_columns(options, schema), self.occurrences)
        except TunnelError as error:
            raise error.with_traceback(None) from None


class SplitPartition(InputPartition):  # type: ignore[misc]  # pyspark has no types we follow
    """One split with all that `read` needs, pickled to an executor."""

    def __init__(self, index: int, start: PrimaryKey, end: PrimaryKey, max_versions: int, scan: Scan) -> None:
        super().__init__(index)
        self.start = start
        self.end = end
        self.max_versions = max_versions
        self.scan = scan


class TablestoreReader(DataSourceReader):  # type: ignore[misc]  # pyspark has no types we follow
    """Reads splits. Spark pickles the reader before it plans the job, so the constructor makes no call."""

    def __init__(
        self, options: SourceOptions, columns: Sequence[tuple[str, str]], occurrences: Any | None = None
    ) -> None:
        self._options = options
        self._columns = tuple(columns)
        self._occurrences = occurrences

    def partitions(self) -> list[InputPartition]:
        """One partition per split; runs on the driver's machine."""
        try:
            return self._copied_splits() if self._options.splits_directory else self._splits()
        except TunnelError as error:
            raise error.with_traceback(None) from None

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Arrow batches of one split, one per page; runs on an executor."""
        assert isinstance(partition, SplitPartition)
        try:
            client = self._options.client()
            try:
                yield from self._batches(client, partition)
            finally:
                client.close()
        except TunnelError as error:
            raise error.with_traceback(None) from None

    def _batches(self, client: SyncTableClient, partition: SplitPartition) -> Iterator[pa.RecordBatch]:
        split = self._options.table, partition.start, partition.end, partition.max_versions
        if self._options.splits_directory:
            yield from raw_batches(partition.value, pages_of_all_versions(client, *split))
            return
        pages = read_pages(client, *split, columns=self._asked(partition.start))
        if self._options.raw:
            yield from raw_batches(partition.value, pages)
            return
        observed = Observed(typed_batches(self._columns, pages))
        yield from observed
        seen = SplitSeen(observed.rows, frozenset(observed.columns))
        report(self._occurrences, partition.scan, partition.value, seen)

    def _copied_splits(self) -> list[InputPartition]:
        from ots_tunnel.spark.pending import read_pending

        options = self._options
        client = options.client()
        try:
            versions = client.describe_table(options.table).max_versions
        finally:
            client.close()
        splits = read_pending(Path(options.splits_directory))
        scan = Scan("", options.table, len(splits), ())
        return [SplitPartition(split.index, split.start, split.end, versions, scan) for split in splits]

    def _splits(self) -> list[InputPartition]:
        from ots_tunnel.snapshot.splits import split_list

        options = self._options
        client = options.reachable_client()
        try:
            table = client.describe_table(options.table)
            splits = split_list(client.compute_splits(options.table, unit_bytes=options.split_bytes)).splits()
            if options.raw:
                _check_raw_columns(options.columns or (), table)
            else:
                check_keys(self._columns, table)
                self._look(client, table, splits[0].start, splits[-1].end)
        finally:
            client.close()
        keys = dict(key_columns(table))
        attributes = tuple(name for name, _ in self._columns if name not in keys) if not options.raw else ()
        scan = Scan(uuid.uuid4().hex, options.table, len(splits), attributes)
        versions = table.max_versions if options.raw else 1
        return [SplitPartition(split.index, split.start, split.end, versions, scan) for split in splits]

    def _look(self, client: SyncTableClient, table: TableDescription, start: PrimaryKey, end: PrimaryKey) -> None:
        """Read a few rows as the tasks will: a missing right or a wrong type fails here once, and not in each task."""
        columns = self._asked(start)
        page = client.get_range(table.name, start, end, max_versions=1, limit=SAMPLE_ROWS, columns=columns)

        def seen() -> set[str]:
            from ots_tunnel.protocol.plainbuffer.codec import decode_rows

            return {column.name for row in decode_rows(page.rows) for column in row.columns}

        check_misspelt(self._columns, table, seen)
        for _ in typed_batches(self._columns, [page]):
            pass

    def _asked(self, start: PrimaryKey) -> tuple[str, ...]:
        if self._options.raw:
            return asked_columns(start, self._options.columns) if self._options.columns else ()
        return asked_columns(start, self._columns)


def _columns_of(options: SourceOptions) -> list[tuple[str, str]]:
    client = options.reachable_client()
    try:
        table = client.describe_table(options.table)
    finally:
        client.close()
    added = options.columns or ()
    keys = key_columns(table)
    repeated = [name for name, _ in added if name in dict(keys)]
    if repeated:
        raise ConfigError(f"option 'columns': found the key column {repeated[0]!r}, which precedes them by itself")
    check_keys(added, table)
    return [*keys, *added]


def _checked_columns(options: SourceOptions, schema: StructType) -> tuple[tuple[str, str], ...]:
    found = tuple((field.name, field.dataType.simpleString()) for field in schema.fields)
    if not found:
        # rows without a column do not reach Spark: it would count none
        raise ConfigError("the schema: found no columns, allowed is one or more, such as a column of the key")
    if options.raw and found != (("split", "bigint"), ("row", "binary")):
        raise ConfigError(f"mode raw has only the schema {RAW_SCHEMA}")
    check_repeated([name for name, _ in found])
    strict = [field.name for field in schema.fields if not field.nullable]
    if strict:
        raise ConfigError(f"column {strict[0]!r}: found NOT NULL, allowed are columns that may hold NULL")
    return tuple((name, check_type(name, kind)) for name, kind in found)


def _check_raw_columns(columns: Sequence[tuple[str, str]], table: TableDescription) -> None:
    from ots_tunnel.client.table_calls import MAX_COLUMNS

    # with the key column that is always asked for; without it rows would be missing
    if len(columns) >= MAX_COLUMNS:
        raise ConfigError(f"option 'columns': found {len(columns)} names, allowed are {MAX_COLUMNS - 1} in mode raw")
    check_keys([(name, dict(key_columns(table)).get(name, "")) for name, _ in columns], table)


def _struct(columns: Sequence[tuple[str, str]]) -> StructType:
    schema = StructType()
    for name, kind in columns:
        schema.add(name, _SPARK_TYPES[kind])
    return schema
