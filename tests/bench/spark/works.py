"""What is measured in Spark, and the goals (docs/performance.md)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from tests.bench.bench_scene import declared_columns
from tests.bench.spark.passes import WARM, WARM_STREAM

#: Columns of the key, and types of all columns in Spark's words.
KEYS: Final = {"device": "STRING", "reading": "BIGINT"}
_TYPES: Final = {"string": "STRING", "double": "DOUBLE", "integer": "BIGINT", "boolean": "BOOLEAN"}
ALL: Final = {**KEYS, **{name: _TYPES[kind] for name, kind in declared_columns()}}
TWO: Final = ("amount", "customer")


@dataclass(frozen=True, slots=True)
class SparkWork:
    """One kind of run.

    Args:
        name: on the command line.
        words: in tables.
        kind: of the program (`tests.bench.programs.spark_program`).
        columns: that are read; the stream's attributes, or all columns of a table.
        most: CPU seconds per million rows that it may take.
        most_python: the same of interpreters alone, where there is such a goal.
        most_growth: how many times as much it may take with two tasks at a time, where that is measured.
        has_peers: whether loops around GetRange of the vendor's SDKs read the same.
    """

    name: str
    words: str
    kind: str
    columns: tuple[str, ...]
    most: float
    most_python: float | None = None
    most_growth: float | None = None
    has_peers: bool = False

    @property
    def source(self) -> Literal["table", "tunnel"]:
        """What a run reads."""
        return "tunnel" if self.kind.startswith("follow") else "table"

    @property
    def warm(self) -> int:
        """Runs that warm the just-in-time compiler."""
        return WARM_STREAM if self.source == "tunnel" else WARM

    @property
    def schema(self) -> str:
        """Of a table, in Spark's words."""
        return schema_of(self.columns)

    @property
    def declared(self) -> tuple[tuple[str, str], ...]:
        """The attributes of a stream, with their types."""
        return tuple((name, ALL[name]) for name in self.attributes)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The columns that are no part of the key."""
        return tuple(name for name in self.columns if name not in KEYS)


def schema_of(columns: Iterable[str]) -> str:
    """Some of the columns, in Spark's words."""
    return ", ".join(f"{name} {ALL[name]}" for name in columns)


WORKS: Final = (
    SparkWork("read", "read 10 columns into nothing", "read_into_noop", tuple(ALL), 4.5, 2.0, 1.4, has_peers=True),
    SparkWork("two", "read 2 of 10 columns into nothing", "read_into_noop", TWO, 3.0, has_peers=True),
    SparkWork("parquet", "read 10 columns into Parquet", "read_into_parquet", tuple(ALL), 6.0),
    SparkWork("delta", "read 10 columns into Delta", "read_into_delta", tuple(ALL), 6.0),
    SparkWork("copy", "copy a table into another one", "copy_table", tuple(ALL), 5.5),
    SparkWork("stream", "follow a tunnel into nothing", "follow_into_noop", tuple(ALL), 5.0),
    SparkWork("stream-parquet", "follow a tunnel into Parquet", "follow_into_parquet", tuple(ALL), 6.0),
    SparkWork("stream-delta", "follow a tunnel into a change log in Delta", "follow_into_delta", tuple(ALL), 7.0),
)
