"""The part of a query's document that names its files: a folder of them, or a Delta table.

format      mode         what the folder holds
JsonLines   ChangeLog    every change, by Spark's file sink
Parquet     ChangeLog    the same, typed
Delta       ChangeLog    every change, as rows of a Delta table
Delta       Mirror       the present rows of the source table, as a Delta table
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal, Self
from urllib.parse import unquote, urlsplit

from pydantic import Field, model_validator

from ots_tunnel.config import ConfigModel
from ots_tunnel.config.allowed import Words
from ots_tunnel.config.files import MOST_COLUMNS, OWN_COLUMNS, FileColumnConfig
from ots_tunnel.config.problems import Contradiction
from ots_tunnel.query.spelling import OTHERS, VERSIONS, is_of_delta, spelled

#: Format whose files are a table with transactions.
DELTA: Final = "Delta"


class QueryFilesConfig(ConfigModel):
    """A folder of files of changes, or a Delta table, which Spark writes."""

    url: Annotated[str, Field(pattern=r"^file:///[^?#\s]+$"), Words("file:///path, without spaces, ? and #")]
    """file:///path of a folder that driver and executors share."""
    format: Literal["JsonLines", "Parquet", "Delta"] = "JsonLines"
    """JsonLines: one JSON object per record. Parquet: the same, typed. Delta: a table of Delta Lake."""
    mode: Literal["ChangeLog", "Mirror"] = "ChangeLog"
    """ChangeLog: every change is a row. Mirror: the table has the present rows of the source; only with Delta."""
    columns: Annotated[tuple[FileColumnConfig, ...], Field(min_length=1, max_length=MOST_COLUMNS)] | None = None
    """Attribute columns that have a column of their own in Parquet and Delta; empty means that all cells of a record
    are in one column, and that a mirror has the columns that unknownColumns adds. In files a value of another type ends
    the query, and so it does in a Delta change log; in a mirror it is in the column `_others`."""
    unknown_columns: Literal["Add", "Map", "Error"] | None = None
    """Attribute columns that columns does not name, with Delta; of a change log, only with columns. Add, also where it
    is empty: the table gets a column. Map: they are in one column. Error: a record with one of them ends the query."""
    compression: Literal["none", "gzip", "zstd"] = "none"
    """Compression of whole files (JsonLines) or of their pages (Parquet, Delta). Spark has no zstd for JsonLines."""

    @model_validator(mode="after")
    def _fits_its_format(self) -> Self:
        if self.compression == "zstd" and self.format == "JsonLines":
            raise Contradiction("compression", "found zstd with format JsonLines, allowed are none and gzip with it")
        if self.columns is not None and self.format == "JsonLines":
            raise Contradiction("columns", f"found with format {self.format}, allowed are Parquet and Delta with it")
        if self.mode == "Mirror" and self.format != DELTA:
            raise Contradiction("mode", f"found Mirror with format {self.format}, allowed is Delta with it")
        if self.unknown_columns is not None and self.format != DELTA:
            raise Contradiction("unknownColumns", f"found with format {self.format}, allowed is Delta with it")
        if self.unknown_columns is not None and self.mode == "ChangeLog" and self.columns is None:
            raise Contradiction("unknownColumns", "found without columns, allowed is with them, or with mode Mirror")
        return self

    @model_validator(mode="after")
    def _columns_differ(self) -> Self:
        is_mirror = self.mode == "Mirror"
        taken = {spelled(name): name for name in (*OWN_COLUMNS, *((OTHERS, VERSIONS) if is_mirror else ()))}
        for column in self.columns or ():
            if is_mirror and is_of_delta(column.name):
                raise Contradiction("columns", f"found {column.name!r} with mode Mirror, where Delta needs it itself")
            if spelled(column.name) in taken:
                found = f"found {column.name!r} beside {taken[spelled(column.name)]!r}"
                raise Contradiction("columns", f"{found}, allowed are names that differ in more than case")
            taken[spelled(column.name)] = column.name
        return self


def files_folder(files: QueryFilesConfig) -> Path:
    """Path of the folder."""
    return Path(unquote(urlsplit(files.url).path))
