"""One cell of a row: the Python class, or its compiled twin if the package has one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ots_tunnel.model import CellOp, Value
from ots_tunnel.protocol.plainbuffer.compiled import native


@dataclass(frozen=True, slots=True)
class Column:
    """One cell of a row or of a change.

    `value` is None for deletions. `timestamp_ms` is None where the server chooses it or does not return it.
    """

    name: str
    value: Value | None
    timestamp_ms: int | None = None
    op: CellOp = CellOp.PUT


if not TYPE_CHECKING and native is not None:
    # A page makes thousands of them; the compiled class costs a tenth.
    Column = native.Column
