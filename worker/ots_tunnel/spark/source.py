"""The format `ots`: `spark.read` reads a table by its splits, with GetRange on the executors; `df.write` writes rows.

    register(spark)
    orders = (
        spark.read.format("ots")
        .option("endpoint", "https://shop.cn-hangzhou.ots.aliyuncs.com")
        .option("instance", "shop")
        .option("table", "orders")
        .option("columns", "price DOUBLE, customer STRING")
        .load()
    )

Options of a query:
    endpoint, instance, table   required
    credentialsDirectory        folder with accessKeyId and accessKeySecret, on driver and executors, default
                                /etc/ots/secrets/source; keys are never options, because Spark's UI shows options
    credentialsProvider         instead: `environment` (OTS_ACCESS_KEY_ID, OTS_ACCESS_KEY_SECRET, OTS_SECURITY_TOKEN of
                                driver and executors), or the dotted name of a class: it is created without arguments,
                                and called for `ots_tunnel.model.Credentials`
    columns                     attribute columns as DDL; the key columns precede them automatically. Types are BIGINT,
                                DOUBLE, BOOLEAN, STRING and BINARY; raw mode needs none. With `.schema(...)` instead,
                                exactly its columns are read, and it may leave out key columns
    where                       conditions on the first columns of the key, such as `id = 5` or `id BETWEEN 5 AND 9`
    pushFilters                 `true`: Spark's filters become ranges of keys; see below. Default `false`
    sampleRows                  without `columns` and `.schema(...)`: rows, in the order of the keys, that tell the
                                columns beside those that the table defines (`inference`); default 1000
    onTypeConflict              a value of another type than its column: `error` (default), `null`, or `string`: text in
                                a column of strings, an error in others
    splitBytes                  size of a split by the service's estimate, default 104857600, at least 1048576
    rowsPerSecond               most rows of one task; 0 (default) is no limit
    startVersion, endVersion    cells whose version is in this range alone: milliseconds, the end exclusive
    maxVersions                 raw mode: most versions of a cell, default those that the table keeps
    mode                        typed (default): the latest version of each column, NULL if the row has none
                                raw: see below

Only the schema's columns travel, up to 128 of them; of a wider schema all columns do. Tablestore keeps types per cell,
not per column. The one conversion without `onTypeConflict` is BIGINT to DOUBLE. While a page is decoded, the next one
is fetched (`reading`).

Names are checked where the query is planned: keys by their exact names and types, and by a first look at some rows what
else would fail every task. A column that no row of the scan has is a warning in the driver's log (`occurrence`).

Conditions of `where` become ranges of keys, and only their rows are read (`where`, `key_filters`, `key_ranges`). With
`pushFilters` Spark's own filters do as well, in PySpark 4.1 and newer. It is no default, because Spark (seen in 4.2.1
and 4.3.0) plans the reading once for a DataFrame that was loaded: a second query of it reads the rows of the first
one's filters.

Raw mode is lossless; with `columns` it has these columns alone. Its schema is `split BIGINT, row BINARY`; `row` is one
PlainBuffer row with its header and every version of every cell, in the form that a write takes
(`ots_tunnel.protocol.plainbuffer.codec.decode_row` reads it). The last row of each split has an empty `row`: it proves
that the split was read to its end, even if the split is empty.
Every version is one of those that the table keeps when the query is planned.

Options of a write, `df.write.format("ots").mode("append")`:
    endpoint, instance, table   required
    credentialsDirectory        as above, default /etc/ots/secrets/sink
    credentialsProvider         as above
    actionColumn                column of strings with the action of each row: put, update or delete; without it each is
                                a put. A put replaces the row, an update leaves columns that are NULL as they are
    versionColumn               column of BIGINT with the version of the cells of each row, in milliseconds; without it,
                                or where it is NULL, the service takes its time
    onRefused                   a row that the table cannot have, or the service refuses: `fail` (default); `skip`,
                                which counts it in a warning; or `deadLetter`, which stores it with the error as well
    deadLetterUrl               place for dead letters: file:///path or s3://bucket/prefix (`dead_letters`); of a bucket
                                also deadLetterEndpoint, deadLetterRegion, deadLetterBucketInHost,
                                deadLetterCredentialsDirectory and deadLetterCaFile

The other columns are the key, each by its exact name and type, and attributes; NULL is no cell. Names and types are
checked beside the table before a task starts (`layout`). Changes of one key are written in their order if they are in
one partition.

Options of a stream, `spark.readStream.format("ots")`, which follows a tunnel (`stream`):
    endpoint, instance, table   required
    tunnel                      required: name of a tunnel of the table, which nothing else may consume
    credentialsDirectory        as above, on the driver alone
    credentialsProvider         as above
    columns                     attributes with a column of their own, as DDL; without it all cells are in one column
    maxBytesPerBatch            bytes of records in a batch, default 16777216, from 1048576 to 67108864; whole pages
    heartbeatIntervalSeconds    default 10, at least 5
    heartbeatTimeoutSeconds     default 30, at least three intervals
    onPossibleGap               changes that may be missing fail the query (`stop`, default), or are passed (`continue`)
    clientTag                   what the ids of the query's clients begin with, default nothing
    reportFile                  a file beside the driver that gets channels, lag and passed gaps as JSON, default none:
                                PySpark before 4.2 shows no figures of a source

docs/architecture.md 7 says where each part runs. The client retries calls, Spark retries tasks; both read again.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import closing
from typing import Any, ClassVar

import pyspark

from ots_tunnel.errors import ConfigError, TunnelError
from ots_tunnel.spark.versions import Ability, bounds_streams, require

try:
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, DataSourceStreamWriter
except ImportError:
    require(Ability.BATCH, pyspark.__version__)
    raise
from pyspark.sql.types import BinaryType, BooleanType, DoubleType, LongType, StringType, StructType

from ots_tunnel.spark.interpreters import settle
from ots_tunnel.spark.reader.options import SourceOptions
from ots_tunnel.spark.reader.planning import RAW_SCHEMA, checked_columns, columns_of
from ots_tunnel.spark.reader.readers import PushingReader, TablestoreReader
from ots_tunnel.spark.reader.schemas import key_columns
from ots_tunnel.spark.stream.options import StreamOptions, is_stream
from ots_tunnel.spark.stream.rows import StreamRows
from ots_tunnel.spark.writer.layout import Layout, layout_of
from ots_tunnel.spark.writer.options import WriteOptions
from ots_tunnel.spark.writer.writers import TablestoreWriter

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
        """Schema of a query without `.schema(...)`: raw, or the key and the columns of the option or of some rows.

        That of a stream is the change log's, whose key is the table's.
        """
        try:
            if is_stream(self.options):
                return _stream_schema(StreamOptions.parse(self.options))
            options = _options_of(self.options)
            return RAW_SCHEMA if options.raw else _struct(columns_of(options))
        except TunnelError as error:
            raise error.with_traceback(None) from None

    def reader(self, schema: StructType) -> TablestoreReader:
        """Check the schema and return its reader."""
        try:
            if is_stream(self.options):
                raise ConfigError("option 'tunnel': found in spark.read, which reads the table; allowed in readStream")
            options = _options_of(self.options)
            kind = PushingReader if options.push_filters and not options.raw else TablestoreReader
            return kind(options, checked_columns(options, schema), self.occurrences)
        except TunnelError as error:
            raise error.with_traceback(None) from None

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Check the options and the schema, and return the reader of a tunnel's changes."""
        try:
            options = StreamOptions.parse(self.options)
            reader = _change_reader(options, StreamRows.of(schema, options.columns))
        except TunnelError as error:
            raise error.with_traceback(None) from None
        settle()  # for each batch Spark asks an interpreter that does nothing else
        return reader

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Refuse: a frame of changes is written batch by batch."""
        raise ConfigError(
            "writeStream: format 'ots' has no sink of its own; use foreachBatch with df.write.format('ots')"
        )

    def writer(self, schema: StructType, overwrite: bool) -> TablestoreWriter:
        """Check the frame beside the table and return the writer."""
        try:
            if overwrite:
                raise ConfigError("mode: found overwrite, allowed is append: a put replaces the row of its key")
            options = WriteOptions.parse(self.options)
            writer = TablestoreWriter(options, _layout(options, schema))
            writer.check()
            return writer
        except TunnelError as error:
            raise error.with_traceback(None) from None


def _stream_schema(options: StreamOptions) -> StructType:
    with closing(options.place.reachable_client()) as client:
        key = key_columns(client.describe_table(options.place.table))
    return StreamRows(key, options.columns).schema()


def _change_reader(options: StreamOptions, rows: StreamRows) -> DataSourceStreamReader:
    # each module imports what other minors of PySpark lack
    if bounds_streams(pyspark.__version__):
        from ots_tunnel.spark.stream.bounded_reader import BoundedReader

        return BoundedReader(options, rows)
    from ots_tunnel.spark.stream.remembering_reader import RememberingReader

    return RememberingReader(options, rows)


def _options_of(given: Mapping[str, str]) -> SourceOptions:
    options = SourceOptions.parse(given)
    if options.push_filters:
        require(Ability.PUSH_DOWN, pyspark.__version__)
    return options


def _layout(options: WriteOptions, schema: StructType) -> Layout:
    with closing(options.place.reachable_client()) as client:
        table = client.describe_table(options.place.table)
    return layout_of(options, [(field.name, field.dataType.simpleString()) for field in schema.fields], table)


def _struct(columns: Sequence[tuple[str, str]]) -> StructType:
    schema = StructType()
    for name, kind in columns:
        schema.add(name, _SPARK_TYPES[kind])
    return schema
