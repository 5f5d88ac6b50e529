"""Options of a table: those that UpdateTable changes, and those fixed at its creation (docs/data-plane.md 2.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Options that UpdateTable changes; `time_to_live` in seconds, -1 keeps cells without end.

    Reserved throughput, when it was increased and decreased (seconds), and `update_full_row` are only remembered.
    """

    time_to_live: int = -1
    max_versions: int = 1
    max_deviation: int = 86_400
    """Seconds between a cell's version and the server's time; the service's default is one day."""
    allow_update: bool = True
    update_full_row: bool = False
    reserved_read: int = 0
    reserved_write: int = 0
    increased_s: int | None = None
    decreased_s: int | None = None


@dataclass(frozen=True, slots=True)
class DefinedColumn:
    """A predefined column; the table only remembers it."""

    name: str
    type: int


@dataclass(frozen=True, slots=True)
class FixedOptions:
    """Options that are chosen when a table is created and never change.

    A table has local transactions unless the request rules them out: not every client can ask for them.
    """

    defined: tuple[DefinedColumn, ...] = ()
    local_transactions: bool = True
    encryption: tuple[int | None, str | None, str | None] | None = None
    """Key type, key id and role; None without encryption."""
    cuts: tuple[str, ...] = ()
    """Partition key values at which the table was split in advance, as PlainBuffer values in hexadecimal."""


NO_FIXED_OPTIONS: Final = FixedOptions()


@dataclass(frozen=True, slots=True)
class Partitioning:
    """How a table splits itself as rows arrive."""

    aim: int = 1
    """Partitions it aims at."""
    rows: int = 64
    """Rows the largest partition must have before it is split under a running log."""


ONE_PARTITION: Final = Partitioning()
