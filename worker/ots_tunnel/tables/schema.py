"""Tables and row changes in the vocabulary of the model."""

from __future__ import annotations

from dataclasses import dataclass

from ots_tunnel.model import Action, KeyColumn, PrimaryKey
from ots_tunnel.protocol.plainbuffer.column import Column

#: Default deviation of a new table, seconds (docs/data-plane.md 2.4).
DEFAULT_DEVIATION = 86_400


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A table: its keys in order, its predefined columns and its options (docs/data-plane.md 2.4).

    `ttl_seconds` -1 means without end. `deviation_seconds` limits how far a cell's version is from the server's time.
    `defined_columns` are (name, type) with the service's type names, such as ``("price", "DOUBLE")``.
    """

    name: str
    keys: tuple[KeyColumn, ...]
    defined_columns: tuple[tuple[str, str], ...] = ()
    ttl_seconds: int = -1
    max_versions: int = 1
    deviation_seconds: int = DEFAULT_DEVIATION
    allow_update: bool = True


@dataclass(frozen=True, slots=True)
class RowWrite:
    """One row change in the vocabulary of the model; deletions carry no columns."""

    action: Action
    primary_key: PrimaryKey
    columns: tuple[Column, ...] = ()

    def __repr__(self) -> str:
        return f"RowWrite({self.action.name}, {len(self.columns)} columns)"
