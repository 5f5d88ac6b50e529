"""Checked options of a query that follows a tunnel. `source` describes every option."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ots_tunnel.errors import ConfigError
from ots_tunnel.spark.place import PLACE_OPTIONS, Place, known_options
from ots_tunnel.spark.reader.ddl import parse_columns
from ots_tunnel.spark.reader.option_values import choice, number
from ots_tunnel.spark.reader.options import DEFAULT_DIRECTORY

#: The option that tells a stream from a read of the table.
TUNNEL: Final = "tunnel"
_OPTIONS = (
    *PLACE_OPTIONS,
    TUNNEL,
    "columns",
    "maxBytesPerBatch",
    "heartbeatIntervalSeconds",
    "heartbeatTimeoutSeconds",
    "onPossibleGap",
    "clientTag",
    "reportFile",
)
#: What a service is certain to take in the tag of a client; own choice.
_TAG: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
#: Bytes of records in a batch. Spark takes several times as much memory in the JVM of the driver; a task with 128 MiB
#: would be refused (`spark.rpc.message.maxSize`), and a page comes on top.
DEFAULT_BATCH_BYTES, LEAST_BATCH_BYTES, MOST_BATCH_BYTES = 16 << 20, 1 << 20, 64 << 20
#: Seconds; the least interval is the service's (docs/protocol.md 5.5).
DEFAULT_INTERVAL, LEAST_INTERVAL, DEFAULT_TIMEOUT = 10, 5, 30
#: Heartbeats that a timeout has to last for, as in the object.
INTERVALS_OF_TIMEOUT = 3
#: Columns of the rows, beside those of `columns` (docs/sinks.md).
OWN_COLUMNS: Final = frozenset(
    ("action", "channel", "sequence", "key", "deleted", "others", "version", "versions", "cells")
)


def is_stream(options: Mapping[str, str]) -> bool:
    """Whether options name a tunnel."""
    return any(name.lower() == TUNNEL for name in options)


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """Checked options of a query that follows a tunnel."""

    place: Place
    tunnel: str
    columns: tuple[tuple[str, str], ...] | None
    """Attributes with a column of their own, by name and type; None: all cells of a record are in one column."""
    batch_bytes: int
    interval: int
    timeout: int
    goes_on_behind_gaps: bool
    client_tag: str = ""
    """What the ids of the query's clients begin with, before its own tag; empty is nothing."""
    report_file: str = ""
    """Path of a file that gets the figures of the query where Spark has no place for them; empty is none."""

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> StreamOptions:
        """Check the options of a query.

        Raises:
            ConfigError: an option is missing, unknown or out of range; names it.
        """
        given = known_options(options, _OPTIONS)
        place = Place.parse(given, DEFAULT_DIRECTORY)
        if not given.get(TUNNEL):
            raise ConfigError(f"option {TUNNEL!r} is missing: spark.readStream follows a tunnel of the table")
        interval = number(given, "heartbeatIntervalSeconds", DEFAULT_INTERVAL, LEAST_INTERVAL)
        default = max(DEFAULT_TIMEOUT, INTERVALS_OF_TIMEOUT * interval)
        return cls(
            place=place,
            tunnel=given[TUNNEL],
            columns=None if given.get("columns") is None else _columns(given["columns"]),
            batch_bytes=number(given, "maxBytesPerBatch", DEFAULT_BATCH_BYTES, LEAST_BATCH_BYTES, MOST_BATCH_BYTES),
            interval=interval,
            timeout=number(given, "heartbeatTimeoutSeconds", default, INTERVALS_OF_TIMEOUT * interval),
            goes_on_behind_gaps=choice(given, "onPossibleGap", ("stop", "continue")) == "continue",
            client_tag=_tag(given),
            report_file=given.get("reportfile", ""),
        )

    def tag_of(self, query_id: str) -> str:
        """The tag of the clients of a query."""
        own = own_tag(query_id)
        return f"{self.client_tag}-{own}" if self.client_tag else own


def own_tag(query_id: str) -> str:
    """The part of the tag that all clients of a query have, whatever the option says."""
    return f"spark-{query_id}"


def _tag(given: Mapping[str, str]) -> str:
    found = given.get("clienttag", "")
    if found and _TAG.fullmatch(found) is None:
        raise ConfigError(f"option 'clientTag': found {found!r}, allowed are up to 64 letters, digits and dashes")
    return found


def _columns(text: str) -> tuple[tuple[str, str], ...]:
    columns = parse_columns(text)
    if not columns:
        raise ConfigError("option 'columns': found none, allowed is one or more; without the option there is no column")
    taken = [name for name, _ in columns if name.lower() in OWN_COLUMNS]
    if taken:
        raise ConfigError(
            f"option 'columns': found {taken[0]!r}, which each row has by itself; its values are in column 'others'"
        )
    return columns
