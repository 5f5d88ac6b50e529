"""Interfaces through which tables and change logs report their changes; tables are named, so nothing here knows them.

The persistence layer implements them (`ots_emulator.journal`); `SILENT` is for a table that lives in memory only.
"""

from __future__ import annotations

from typing import Final, Protocol

from ots_emulator.tables.keys import Key
from ots_emulator.tables.partition import Partition


class LogListener(Protocol):
    """Receives the changes of change logs."""

    def entry_appended(self, partition: Partition, timestamp_us: int, entry: bytes) -> None:
        """Receive an entry at the end of a partition's log."""
        ...

    def partitions_changed(self, stream_id: str) -> None:
        """Receive that partitions of a log were added, closed, trimmed or removed."""
        ...


class TableListener(LogListener, Protocol):
    """Receives the changes of tables."""

    def row_changed(self, table: str, key: Key, image: bytes | None, versioned: bool) -> None:
        """Receive a stored row; an `image` of None is a removed one.

        Args:
            table: name of the table.
            key: key of the row.
            image: the row as it is stored.
            versioned: whether some column has several versions.
        """
        ...

    def table_touched(self, table: str) -> None:
        """Receive that a table's options or log may have changed."""
        ...


class SilentListener:
    """Ignores every change."""

    def entry_appended(self, partition: Partition, timestamp_us: int, entry: bytes) -> None:
        """Ignore an entry."""

    def partitions_changed(self, stream_id: str) -> None:
        """Ignore changed partitions."""

    def row_changed(self, table: str, key: Key, image: bytes | None, versioned: bool) -> None:
        """Ignore a row."""

    def table_touched(self, table: str) -> None:
        """Ignore a touched table."""


SILENT: Final = SilentListener()
