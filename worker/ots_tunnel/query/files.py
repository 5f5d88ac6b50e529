"""The part of a query's document that names its files: a folder of them, or a table of Delta or Iceberg.

format      mode         what the place holds                                  file:///path   s3://bucket/prefix
JsonLines   ChangeLog    every change, by Spark's file sink                    yes            no
Parquet     ChangeLog    the same, typed                                       yes            no
Delta       ChangeLog    every change, as rows of a Delta table                yes            yes
Delta       Mirror       the present rows of the source table, as a table      yes            yes
Iceberg     ChangeLog    as Delta, with a session of Spark 4.0 or 4.1          yes            no
Iceberg     Mirror       as Delta, with a session of Spark 4.0 or 4.1          yes            no

Spark's file sink is for folders alone: its log of batches needs files that appear whole and only if there is none of
their name, which a bucket's driver in Hadoop does not give it, and neither does a table of Iceberg by its path find it
there. Delta has a way of its own to write to buckets.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, Self
from urllib.parse import unquote, urlsplit

from pydantic import Field, model_validator

from ots_tunnel.config.base import NonEmptyPath
from ots_tunnel.config.files import MOST_COLUMNS, OWN_COLUMNS, FileColumnConfig, FileStoreConfig
from ots_tunnel.config.problems import Contradiction
from ots_tunnel.config.words import Words
from ots_tunnel.query.spelling import OTHERS, VERSIONS, is_of_delta, is_of_iceberg, spelled

#: Formats whose files are a table with transactions, and that of the two for buckets.
DELTA, ICEBERG = "Delta", "Iceberg"
TABLES: Final = (DELTA, ICEBERG)
#: Names that a format needs itself.
_TAKEN: Final = {DELTA: is_of_delta, ICEBERG: is_of_iceberg}


class QueryFilesConfig(FileStoreConfig):
    """A folder of files of changes, or a table of Delta or Iceberg, which Spark writes."""

    url: Annotated[
        str,
        # a table at the root of a bucket would take everything in it for its own, and remove it in time
        Field(pattern=r"^(file:///[^?#\s]+|s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/[^?#\s]+)$"),
        Words("file:///path, or s3://bucket/prefix with small letters, digits, . and - in bucket; no spaces, ? and #"),
    ]
    """file:///path of a folder that driver and executors share, or s3://bucket/prefix, with Delta."""
    profile_file: NonEmptyPath | None = None
    """File that tells Hadoop where the credentials of a bucket are, the same path in driver and executors
    (`query.bucket`); empty means one that the driver writes, for executors on its machine."""
    format: Literal["JsonLines", "Parquet", "Delta", "Iceberg"] = "JsonLines"
    """JsonLines: one JSON object per record. Parquet: the same, typed. Delta, Iceberg: a table of this format."""
    mode: Literal["ChangeLog", "Mirror"] = "ChangeLog"
    """ChangeLog: every change is a row. Mirror: the table has the present rows of the source; only with Delta and
    Iceberg."""
    columns: Annotated[tuple[FileColumnConfig, ...], Field(min_length=1, max_length=MOST_COLUMNS)] | None = None
    """Attribute columns that have a column of their own, not with JsonLines; empty means that all cells of a record are
    in one column, and that a mirror has the columns that unknownColumns adds. In files a value of another type ends
    the query, and so it does in the change log of a table; in a mirror it is in the column `_others`."""
    unknown_columns: Literal["Add", "Map", "Error"] | None = None
    """Attribute columns that columns does not name, with Delta and Iceberg; of a change log, only with columns. Add,
    also where it is empty: the table gets a column. Map: they are in one column. Error: a record with one of them ends
    the query."""
    compression: Literal["none", "gzip", "zstd"] = "none"
    """Compression of whole files (JsonLines) or of their pages (the others). Spark has no zstd for JsonLines."""

    _only_for_buckets: ClassVar[tuple[str, ...]] = (*FileStoreConfig._only_for_buckets, "profileFile")
    #: Without them the session's own settings of Hadoop tell them, or the machine's role.
    _needs_credentials: ClassVar[bool] = False

    @property
    def is_bucket(self) -> bool:
        """Whether the place is a bucket."""
        return self.url.startswith("s3:")

    @model_validator(mode="after")
    def _is_a_table_in_a_bucket(self) -> Self:
        if self.is_bucket and self.format != DELTA:
            found = f"found {self.url!r} with format {self.format}"
            raise Contradiction("url", f"{found}, allowed is file:///path with it, or format Delta")
        if self.place[1] == "/":
            # as of the pattern: s3://bucket// is the root as well
            raise Contradiction("url", f"found {self.url!r}, allowed is a place below the root")
        if self.ca_file is not None:
            raise Contradiction("caFile", "found a file, allowed is none: Java trusts the authorities of its own store")
        if self.profile_file is not None and self.credentials is None:
            raise Contradiction("profileFile", "found without credentials, allowed is with them")
        return self

    @model_validator(mode="after")
    def _fits_its_format(self) -> Self:
        if self.compression == "zstd" and self.format == "JsonLines":
            raise Contradiction("compression", "found zstd with format JsonLines, allowed are none and gzip with it")
        if self.columns is not None and self.format == "JsonLines":
            raise Contradiction("columns", f"found with format {self.format}, allowed are Parquet, Delta and Iceberg")
        if self.mode == "Mirror" and self.format not in TABLES:
            raise Contradiction(
                "mode", f"found Mirror with format {self.format}, allowed are Delta and Iceberg with it"
            )
        if self.unknown_columns is not None and self.format not in TABLES:
            raise Contradiction("unknownColumns", f"found with format {self.format}, allowed are Delta and Iceberg")
        if self.unknown_columns is not None and self.mode == "ChangeLog" and self.columns is None:
            raise Contradiction("unknownColumns", "found without columns, allowed is with them, or with mode Mirror")
        return self

    @model_validator(mode="after")
    def _columns_differ(self) -> Self:
        is_mirror = self.mode == "Mirror"
        taken = {spelled(name): name for name in (*OWN_COLUMNS, *((OTHERS, VERSIONS) if is_mirror else ()))}
        for column in self.columns or ():
            # a change log of Delta merges nothing, so that Delta needs no name for that
            if (is_mirror or self.format == ICEBERG) and self.format in TABLES and _TAKEN[self.format](column.name):
                raise Contradiction("columns", f"found {column.name!r}, a name that {self.format} needs itself")
            if spelled(column.name) in taken:
                found = f"found {column.name!r} beside {taken[spelled(column.name)]!r}"
                raise Contradiction("columns", f"{found}, allowed are names that differ in more than case")
            taken[spelled(column.name)] = column.name
        return self


def files_folder(files: QueryFilesConfig) -> Path:
    """Path of the folder, of a place that is no bucket."""
    return Path(unquote(urlsplit(files.url).path))


def table_place(files: QueryFilesConfig) -> str:
    """The place of a table as Spark has it; without its scheme it would be one of `spark.hadoop.fs.defaultFS`."""
    return f"s3a:{files.url.removeprefix('s3:')}" if files.is_bucket else f"file://{files_folder(files)}"
