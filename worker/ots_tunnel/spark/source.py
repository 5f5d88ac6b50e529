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
`pushFilters` Spark's own filters do as well, in PySpark 4.1 and newer. It is no default, because Spark (seen in 4.2.1)
plans the reading once for a DataFrame that was loaded: a second query of it reads the rows of the first one's filters.

Raw mode is lossless; with `columns` it has these columns alone. Its schema is `split BIGINT, row BINARY`; `row` is one
PlainBuffer row with its header and every version of every cell, in the form that a write takes
(`ots_tunnel.protocol.plainbuffer.codec.decode_row` reads it). The last row of each split has an empty `row`: it proves
that the split was read to its end, even if the split is empty.
Every version is one of those that the table keeps when the query is planned. If it keeps more by the end of a split,
the snapshot's tasks get the rows of that split again, with all of them.

docs/architecture.md 7 says where each part runs. The client retries calls, Spark retries tasks; both read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import BinaryType, BooleanType, DoubleType, LongType, StringType, StructType

from ots_tunnel.errors import TunnelError
from ots_tunnel.spark.batches import Observed, pages_of_all_versions, raw_batches, typed_batches
from ots_tunnel.spark.reader.key_filters import push
from ots_tunnel.spark.reader.key_ranges import KeyBounds
from ots_tunnel.spark.reader.occurrence import Scan, SplitSeen, report
from ots_tunnel.spark.reader.options import SourceOptions
from ots_tunnel.spark.reader.planning import RAW_SCHEMA, checked_columns, columns_of, plan_splits, reading_of
from ots_tunnel.spark.reader.reading import paced, read_ahead

if TYPE_CHECKING:
    import pyarrow as pa

    from ots_tunnel.client.table import RangePage, SyncTableClient

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
        """Schema of a query without `.schema(...)`: raw, or the key and the columns of the option or of some rows."""
        try:
            options = SourceOptions.parse(self.options)
            return RAW_SCHEMA if options.raw else _struct(columns_of(options))
        except TunnelError as error:
            raise error.with_traceback(None) from None

    def reader(self, schema: StructType) -> TablestoreReader:
        """Check the schema and return its reader."""
        try:
            options = SourceOptions.parse(self.options)
            kind = PushingReader if options.push_filters and not options.raw else TablestoreReader
            return kind(options, checked_columns(options, schema), self.occurrences)
        except TunnelError as error:
            raise error.with_traceback(None) from None


class SplitPartition(InputPartition):  # type: ignore[misc]  # pyspark has no types we follow
    """One split with all that `read` needs, pickled to an executor."""

    def __init__(self, index: int, ranges: Sequence[KeyBounds], max_versions: int, scan: Scan) -> None:
        super().__init__(index)
        self.ranges = tuple(ranges)
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
        self._pushed: list[KeyBounds] | None = None
        """Ranges of the filters that Spark leaves to this reader."""

    def partitions(self) -> list[InputPartition]:
        """One partition per split; runs on the driver's machine."""
        try:
            return self._copied_splits() if self._options.splits_directory else self._splits()
        except TunnelError as error:
            raise error.with_traceback(None) from None

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Arrow batches of one split, one per page; runs on an executor."""
        if not isinstance(partition, SplitPartition):
            return  # Spark's own, where there is no partition: no row fits the filters
        try:
            client = self._options.client()
            try:
                yield from self._batches(client, partition)
            finally:
                client.close()
        except TunnelError as error:
            raise error.with_traceback(None) from None

    def _batches(self, client: SyncTableClient, partition: SplitPartition) -> Iterator[pa.RecordBatch]:
        table, versions = self._options.table, partition.max_versions
        start, end = partition.ranges[0]
        if self._options.splits_directory:
            yield from raw_batches(partition.value, pages_of_all_versions(client, table, start, end, versions))
            return
        # closed here: an error keeps the frames below, and the thread must not use a client that is closed
        reading = reading_of(self._options, self._columns, start, versions)
        with closing(read_ahead(reading.pages(client, partition.ranges))) as pages:
            yield from paced(self._decoded(pages, partition), self._options.rows_per_second)

    def _decoded(self, pages: Iterator[RangePage], partition: SplitPartition) -> Iterator[pa.RecordBatch]:
        if self._options.raw:
            yield from raw_batches(partition.value, pages)
            return
        observed = Observed(typed_batches(self._columns, pages, self._options.on_conflict))
        yield from observed
        seen = SplitSeen(observed.rows, frozenset(observed.columns))
        report(self._occurrences, partition.scan, partition.value, seen)

    def _splits(self) -> list[InputPartition]:
        plan = plan_splits(self._options, self._columns, self._pushed)
        return [SplitPartition(index, ranges, plan.max_versions, plan.scan) for index, ranges in plan.splits]

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
        return [SplitPartition(split.index, [(split.start, split.end)], versions, scan) for split in splits]


class PushingReader(TablestoreReader):
    """Takes filters. A class of its own, because PySpark refuses one with this method where its setting is off."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Take the filters that ranges of keys express; return those that are left to Spark."""
        try:
            client = self._options.reachable_client()
            try:
                key = client.describe_table(self._options.table).primary_key
            finally:
                client.close()
        except TunnelError as error:
            raise error.with_traceback(None) from None
        left, self._pushed = push(filters, key, [name for name, _ in self._columns])
        return left


def _struct(columns: Sequence[tuple[str, str]]) -> StructType:
    schema = StructType()
    for name, kind in columns:
        schema.add(name, _SPARK_TYPES[kind])
    return schema
