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
                                DOUBLE, BOOLEAN, STRING and BINARY. With `.schema(...)` instead, exactly its columns
                                are read, and it may leave out key columns
    splitBytes                  size of a split by the service's estimate, default 104857600, at least 1048576
    mode                        typed (default): the latest version of each column, NULL if the row has none
                                raw: see below

Only the schema's columns travel, up to 128 of them; of a wider schema all columns do.
A value of another type than the schema's fails the query; Tablestore keeps types per cell, not per column. The one
conversion is BIGINT to DOUBLE.

Raw mode is lossless. Its schema is `split BIGINT, row BINARY`; `row` is one PlainBuffer row with its header and every
version of every cell, in the form that a write takes (`ots_tunnel.protocol.plainbuffer.codec.decode_row` reads it). The
last row of each split has an empty `row`: it proves that the split was read to its end, even if the split is empty.
Every version is one of those that the table keeps when the query is planned. If it keeps more by the end of a split,
the snapshot's tasks get the rows of that split again, with all of them.

docs/architecture.md 7 says where each part runs. The client retries calls, Spark retries tasks; both read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from ots_tunnel.errors import ConfigError
from ots_tunnel.model import KeyType, PrimaryKey
from ots_tunnel.spark.batches import asked_columns, pages_of_all_versions, raw_batches, read_pages, typed_batches

if TYPE_CHECKING:
    import pyarrow as pa

    from ots_tunnel.client.table import SyncTableClient

RAW_SCHEMA = "split BIGINT, row BINARY"

#: Unit and minimum of the service (docs/data-plane.md 2.7).
DEFAULT_SPLIT_BYTES = 104_857_600
MIN_SPLIT_BYTES = 1_048_576
_KEY_DDL = {KeyType.INTEGER: "BIGINT", KeyType.STRING: "STRING", KeyType.BINARY: "BINARY"}
_OPTIONS = ("endpoint", "instance", "table", "credentialsDirectory", "columns", "splitBytes", "mode", "splitsDirectory")


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Checked options of a query."""

    endpoint: str
    instance: str
    table: str
    credentials_directory: str
    raw: bool
    columns: str
    split_bytes: int
    splits_directory: str
    """For the snapshot's driver: a folder with the frozen list and the splits to read (`pending`)."""

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SourceOptions:
        """Check the options of a query.

        Raises:
            ConfigError: an option is missing, unknown or out of range; names it.
        """
        given = {key.lower(): value for key, value in options.items()}
        unknown = sorted(set(given) - {name.lower() for name in _OPTIONS})
        if unknown:
            raise ConfigError(f"option {unknown[0]!r} is unknown, allowed are {', '.join(_OPTIONS[:-1])}")
        missing = [name for name in ("endpoint", "instance", "table") if not given.get(name)]
        if missing:
            raise ConfigError(f"option {missing[0]!r} is missing")
        mode = given.get("mode", "typed").lower()
        if mode not in ("typed", "raw"):
            raise ConfigError(f"option 'mode': found {mode!r}, allowed are typed and raw")
        split_bytes = given.get("splitbytes", str(DEFAULT_SPLIT_BYTES))
        if not split_bytes.isdecimal() or int(split_bytes) < MIN_SPLIT_BYTES:
            raise ConfigError(f"option 'splitBytes': found {split_bytes!r}, allowed are {MIN_SPLIT_BYTES} and more")
        return cls(
            endpoint=given["endpoint"],
            instance=given["instance"],
            table=given["table"],
            credentials_directory=given.get("credentialsdirectory", "/etc/ots/secrets/source"),
            raw=mode == "raw",
            columns=given.get("columns", ""),
            split_bytes=int(split_bytes),
            splits_directory=given.get("splitsdirectory", ""),
        )

    def client(self) -> SyncTableClient:
        """A client that reads the credentials from files of this machine."""
        from ots_tunnel.client.table import SyncTableClient
        from ots_tunnel.credentials import FileCredentials

        return SyncTableClient(self.endpoint, self.instance, FileCredentials(Path(self.credentials_directory)))


class TablestoreDataSource(DataSource):  # type: ignore[misc]  # pyspark has no types we follow
    """The format `ots`; the module's docstring describes its options."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        """Name for `format(...)`."""
        return "ots"

    def schema(self) -> str:
        """Schema of a query without `.schema(...)`: raw, or the key columns and those of option `columns`."""
        options = SourceOptions.parse(self.options)
        if options.raw:
            return RAW_SCHEMA
        client = options.client()
        try:
            key = client.describe_table(options.table).primary_key
        finally:
            client.close()
        names = [f"`{column.name}` {_KEY_DDL[column.type]}" for column in key]
        return ", ".join([*names, options.columns] if options.columns else names)

    def reader(self, schema: StructType) -> TablestoreReader:
        """Check the schema and return its reader."""
        from ots_tunnel.spark.columns import COLUMN_TYPES

        options = SourceOptions.parse(self.options)
        columns = tuple((field.name, field.dataType.simpleString()) for field in schema.fields)
        if not columns:
            # rows without a column do not reach Spark: it would count none
            raise ConfigError("the schema: found no columns, allowed is one or more, such as a column of the key")
        wrong = [column for column in columns if column[1] not in COLUMN_TYPES]
        if wrong:
            name, found = wrong[0]
            raise ConfigError(f"column {name!r}: found type {found}, allowed are {', '.join(COLUMN_TYPES)}")
        strict = [field.name for field in schema.fields if not field.nullable]
        if strict:
            raise ConfigError(f"column {strict[0]!r}: found NOT NULL, allowed are columns that may hold NULL")
        if options.raw and columns != (("split", "bigint"), ("row", "binary")):
            raise ConfigError(f"mode raw has only the schema {RAW_SCHEMA}")
        return TablestoreReader(options, columns)


class SplitPartition(InputPartition):  # type: ignore[misc]  # pyspark has no types we follow
    """One split with all that `read` needs, pickled to an executor."""

    def __init__(self, index: int, start: PrimaryKey, end: PrimaryKey, max_versions: int) -> None:
        super().__init__(index)
        self.start = start
        self.end = end
        self.max_versions = max_versions


class TablestoreReader(DataSourceReader):  # type: ignore[misc]  # pyspark has no types we follow
    """Reads splits. Spark pickles the reader before it plans the job, so the constructor makes no call."""

    def __init__(self, options: SourceOptions, columns: Sequence[tuple[str, str]]) -> None:
        self._options = options
        self._columns = tuple(columns)

    def partitions(self) -> list[InputPartition]:
        """One partition per split; runs on the driver's machine."""
        from ots_tunnel.snapshot.splits import split_list
        from ots_tunnel.spark.pending import read_pending

        options = self._options
        client = options.client()
        try:
            versions = client.describe_table(options.table).max_versions if options.raw else 1
            if options.splits_directory:
                splits = read_pending(Path(options.splits_directory))
            else:
                splits = split_list(client.compute_splits(options.table, unit_bytes=options.split_bytes)).splits()
        finally:
            client.close()
        return [SplitPartition(split.index, split.start, split.end, versions) for split in splits]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Arrow batches of one split, one per page; runs on an executor."""
        assert isinstance(partition, SplitPartition)
        client = self._options.client()
        try:
            split = self._options.table, partition.start, partition.end, partition.max_versions
            if not self._options.raw:
                asked = asked_columns(partition.start, self._columns)
                yield from typed_batches(self._columns, read_pages(client, *split, columns=asked))
            elif self._options.splits_directory:
                yield from raw_batches(partition.value, pages_of_all_versions(client, *split))
            else:
                yield from raw_batches(partition.value, read_pages(client, *split))
        finally:
            client.close()
