"""Checked options of a query. `source` describes every option."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ots_tunnel.errors import ConfigError
from ots_tunnel.spark.place import PLACE_OPTIONS, Place, known_options
from ots_tunnel.spark.reader.ddl import parse_columns, parse_names
from ots_tunnel.spark.reader.key_filters import Condition
from ots_tunnel.spark.reader.option_values import MAX_VERSIONS, choice, number, version_range
from ots_tunnel.spark.reader.where import parse_where

#: Unit and minimum of the service (docs/data-plane.md 2.7).
DEFAULT_SPLIT_BYTES = 104_857_600
MIN_SPLIT_BYTES = 1_048_576
DEFAULT_DIRECTORY = "/etc/ots/secrets/source"
#: Rows that tell the columns of a query without `columns`; own choice.
DEFAULT_SAMPLE_ROWS = 1_000
_OPTIONS = (
    *PLACE_OPTIONS,
    "columns",
    "where",
    "pushFilters",
    "sampleRows",
    "onTypeConflict",
    "splitBytes",
    "rowsPerSecond",
    "startVersion",
    "endVersion",
    "maxVersions",
    "mode",
)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Checked options of a query."""

    place: Place
    raw: bool
    columns: tuple[tuple[str, str], ...] | None
    """Attribute columns as name and type, in raw mode without types; None without the option."""
    where: tuple[Condition, ...]
    """Conditions on the key that every row of the query fulfils."""
    push_filters: bool
    sample_rows: int
    on_conflict: str
    """What becomes of a value of another type than its column: `error`, `string` or `null`."""
    split_bytes: int
    rows_per_second: int
    versions: tuple[int, int] | None
    """Versions of cells in milliseconds, the second exclusive; None for all."""
    max_versions: int
    """Most versions of a cell in raw mode; 0 for all that the table keeps."""

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SourceOptions:
        """Check the options of a query.

        Raises:
            ConfigError: an option is missing, unknown or out of range; names it.
        """
        given = known_options(options, _OPTIONS)
        place = Place.parse(given, DEFAULT_DIRECTORY)
        raw = choice(given, "mode", ("typed", "raw")) == "raw"
        columns = given.get("columns")
        if not raw and given.get("maxversions", "1") != "1":
            raise ConfigError(f"option 'maxVersions': found {given['maxversions']!r}, allowed is 1 in mode typed")
        return cls(
            place=place,
            raw=raw,
            columns=None if columns is None else (parse_names(columns) if raw else parse_columns(columns)),
            where=parse_where(given.get("where", "")),
            push_filters=choice(given, "pushFilters", ("false", "true")) == "true",
            sample_rows=number(given, "sampleRows", DEFAULT_SAMPLE_ROWS, 0),
            on_conflict=choice(given, "onTypeConflict", ("error", "string", "null")),
            split_bytes=number(given, "splitBytes", DEFAULT_SPLIT_BYTES, MIN_SPLIT_BYTES),
            rows_per_second=number(given, "rowsPerSecond", 0, 0),
            versions=version_range(given),
            max_versions=number(given, "maxVersions", 0, 1, MAX_VERSIONS) if "maxversions" in given else 0,
        )
