"""What a table is created with: what can be changed later, and what is only remembered (docs/data-plane.md 2.4)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TableOptions:
    """What can be changed on a table; `time_to_live` in seconds, -1 is for ever.

    Reserved throughput, when it was increased and decreased (seconds), and `update_full_row` are only remembered.
    """

    time_to_live: int = -1
    max_versions: int = 1
    max_deviation: int = 86_400
    allow_update: bool = True
    update_full_row: bool = False
    reserved_read: int = 0
    reserved_write: int = 0
    increased_s: int | None = None
    decreased_s: int | None = None


@dataclass(frozen=True, slots=True)
class DefinedColumn:
    """A predefined column; the store only remembers it."""

    name: str
    type: int


@dataclass(frozen=True, slots=True)
class TableTraits:
    """What is chosen when a table is created and only remembered afterwards.

    `encryption` is (key type, key id, role), None without; `cuts` are the partition key values at which the table was
    split in advance, as PlainBuffer values in hexadecimal. A table has local transactions unless they are ruled out:
    not every client can ask for them.
    """

    local_transactions: bool = True
    encryption: tuple[int | None, str | None, str | None] | None = None
    cuts: tuple[str, ...] = ()


DEFAULT_TRAITS = TableTraits()
