"""What a query reads: its columns, its splits, and a first look at its rows. Runs on the driver's machine.

Whatever would fail every task is found here, so that it fails the query once and starts no task.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ots_tunnel.errors import ConfigError
from ots_tunnel.model import PrimaryKey
from ots_tunnel.spark.batches import asked_columns, typed_batches
from ots_tunnel.spark.reader.ddl import check_repeated, check_type
from ots_tunnel.spark.reader.inference import infer_columns
from ots_tunnel.spark.reader.key_filters import selected
from ots_tunnel.spark.reader.key_ranges import KeyBounds, within
from ots_tunnel.spark.reader.occurrence import Scan
from ots_tunnel.spark.reader.options import SourceOptions
from ots_tunnel.spark.reader.reading import Reading
from ots_tunnel.spark.reader.schemas import Columns, check_keys, check_misspelt, key_columns

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ots_tunnel.client.sync_table import SyncTableClient
    from ots_tunnel.client.table_calls import TableDescription
    from ots_tunnel.protocol.plainbuffer.codec import DecodedRow

RAW_SCHEMA = "split BIGINT, row BINARY"
#: Rows of the first look, on the driver; own choice: the tasks read them again.
LOOK_ROWS = 40


@dataclass(frozen=True, slots=True)
class Plan:
    """The splits of a query with rows to read: index and ranges of keys of each."""

    splits: list[tuple[int, list[KeyBounds]]]
    max_versions: int
    scan: Scan


def plan_splits(options: SourceOptions, columns: Columns, pushed: list[KeyBounds] | None) -> Plan:
    """Check the query beside the table, look at its first rows, and cut its ranges at the splits of the service.

    Args:
        columns: those of the schema.
        pushed: ranges of the filters that Spark leaves to the reader; None without filters.

    Raises:
        ConfigError: see `schemas`. CodecError: a value of the first rows has another type than its column.
        ServiceError, TransportError: the service refuses a call, or does not answer.
    """
    from ots_tunnel.snapshot.splits import split_list

    client = options.place.reachable_client()
    try:
        table = client.describe_table(options.place.table)
        splits = split_list(client.compute_splits(options.place.table, unit_bytes=options.split_bytes)).splits()
        whole = splits[0].start, splits[-1].end
        wanted = selected(options.where, table.primary_key)
        if pushed is not None:
            wanted = [part for low, high in wanted for part in within(pushed, low, high)]
        parts = [(split.index, within(wanted, split.start, split.end)) for split in splits]
        parts = [(index, ranges) for index, ranges in parts if ranges]
        if options.raw:
            _check_raw_columns(options.columns or (), table)
        else:
            check_keys(columns, table)
        _look(client, options, columns, table, parts[0][1][0] if parts else whole)
    finally:
        client.close()
    keys = dict(key_columns(table))
    attributes = () if options.raw else tuple(name for name, _ in columns if name not in keys)
    versions = (options.max_versions or table.max_versions) if options.raw else 1
    return Plan(parts, versions, Scan(uuid.uuid4().hex, options.place.table, len(parts), attributes))


def reading_of(options: SourceOptions, columns: Columns, start: PrimaryKey, max_versions: int) -> Reading:
    """What the calls of a query ask for.

    Args:
        start: a key of the table, for the names of its columns.
    """
    wanted = (options.columns or ()) if options.raw else columns
    asked = asked_columns(start, wanted) if wanted else ()
    # a page of one second's rows at most, so that a task does not stand still for long
    return Reading(options.place.table, asked, max_versions, options.versions, options.rows_per_second)


def columns_of(options: SourceOptions) -> list[tuple[str, str]]:
    """The columns of a query without a schema: the key, and those of the option or of some rows.

    Raises:
        ConfigError: a name or a type is wrong; names it. ServiceError, TransportError: the service does not answer.
    """
    client = options.place.reachable_client()
    try:
        table = client.describe_table(options.place.table)
        if options.columns is None:
            return infer_columns(table, _sample(client, options, table), options.on_conflict)
    finally:
        client.close()
    keys = key_columns(table)
    repeated = [name for name, _ in options.columns if name in dict(keys)]
    if repeated:
        raise ConfigError(f"option 'columns': found the key column {repeated[0]!r}, which precedes them by itself")
    check_keys(options.columns, table)
    return [*keys, *options.columns]


def checked_columns(options: SourceOptions, schema: StructType) -> tuple[tuple[str, str], ...]:
    """Names and types of a query's schema, each type one of `ddl.TYPES`.

    Raises:
        ConfigError: a column comes twice or cannot be read; names it.
    """
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


def _look(
    client: SyncTableClient, options: SourceOptions, columns: Columns, table: TableDescription, bounds: KeyBounds
) -> None:
    """Read a few rows as the tasks will: a missing right or a wrong type fails here once, and not in each task."""
    page = next(replace(reading_of(options, columns, bounds[0], 1), page_rows=LOOK_ROWS).pages(client, [bounds]))

    if options.raw:
        return

    def seen() -> set[str]:
        from ots_tunnel.protocol.plainbuffer.codec import decode_rows

        return {column.name for row in decode_rows(page.rows) for column in row.columns}

    check_misspelt(columns, table, seen)
    for _ in typed_batches(columns, [page], options.on_conflict):
        pass


def _sample(client: SyncTableClient, options: SourceOptions, table: TableDescription) -> Iterator[DecodedRow]:
    """The first rows that the query may read, in the order of the keys."""
    from ots_tunnel.protocol.plainbuffer.codec import decode_rows

    reading = Reading(table.name, versions=options.versions, page_rows=options.sample_rows)
    left = options.sample_rows
    pages = reading.pages(client, selected(options.where, table.primary_key)) if left else iter(())
    for page in pages:
        for row in decode_rows(page.rows)[:left]:
            left -= 1
            yield row
        if not left:
            return


def _check_raw_columns(columns: Sequence[tuple[str, str]], table: TableDescription) -> None:
    from ots_tunnel.client.table_calls import MAX_COLUMNS

    # with the key column that is always asked for; without it rows would be missing
    if len(columns) >= MAX_COLUMNS:
        raise ConfigError(f"option 'columns': found {len(columns)} names, allowed are {MAX_COLUMNS - 1} in mode raw")
    check_keys([(name, dict(key_columns(table)).get(name, "")) for name, _ in columns], table)
