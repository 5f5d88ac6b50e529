"""One row change as a tunnel delivers it, decoded on access.

The class here is the reference; where the package was built with a compiler, the compiled twin replaces it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action, CellOp, PrimaryKey, SequenceInfo
from ots_tunnel.protocol.plainbuffer.codec import DecodedRow, decode_key_cells, decode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.plainbuffer.compiled import native
from ots_tunnel.protocol.plainbuffer.offsets import read_sequence, scan_key, strip_extension
from ots_tunnel.protocol.plainbuffer.spans import check_header, scan_whole_row


class Record:
    """One row change.

    Args:
        action: what happened to the row.
        body: PlainBuffer with header and exactly one row.
        origin: PlainBuffer with the previous values of the stream's origin columns, None if the record has none.
    """

    __slots__ = ("_key", "_origin_row", "_row", "action", "body", "origin")

    def __init__(self, action: Action, body: bytes, origin: bytes | None = None) -> None:
        self.action = action
        self.body = body
        self.origin = origin
        self._key: bytes | None = None
        self._row: DecodedRow | None = None
        self._origin_row: DecodedRow | None = None

    @property
    def key(self) -> bytes:
        """Wire bytes of the key cells: equal exactly for equal keys; nothing is decoded.

        Raises:
            CodecError: the body is not a row.
        """
        if self._key is None:
            self._key = scan_key(self.body, check_header(self.body))
        return self._key

    @property
    def primary_key(self) -> PrimaryKey:
        """The key columns in the table's order.

        Raises:
            CodecError: the body is not a row, or a checksum is wrong.
        """
        if self._row is not None:
            return self._row.primary_key
        # The whole row is verified: a damaged tag may shorten the key, which no checksum of a cell detects.
        return decode_key_cells(scan_whole_row(self.body).key)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The cells: all of a put, the touched ones of an update, none of a delete.

        Raises:
            CodecError: the body is not a row, a checksum is wrong, or a put has no value.
        """
        if self._row is None:
            row = decode_row(self.body)
            _check_columns(row.columns)
            self._row = row
        return self._row.columns

    def decode_columns(self) -> tuple[Column, ...]:
        """The cells, as `columns`, but not kept with the record: they take several times the memory of its bytes.

        Raises:
            CodecError: as `columns`.
        """
        if self._row is not None:
            return self._row.columns
        columns = decode_row(self.body).columns
        _check_columns(columns)
        return columns

    def column(self, name: str) -> Column | None:
        """The first cell of this name, the newest version of its column; None if there is no such cell.

        Raises:
            CodecError: the body is not a row, a checksum is wrong, or a put has no value.
        """
        return next((column for column in self.columns if column.name == name), None)

    @property
    def write_body(self) -> bytes:
        """The row without its extension, as a write needs it.

        Raises:
            CodecError: the body is not a row.
        """
        return strip_extension(self.body)

    @property
    def sequence(self) -> SequenceInfo | None:
        """Position in the stream, None for base data.

        Raises:
            CodecError: the body is not a row.
        """
        return read_sequence(self.body)

    @property
    def origin_columns(self) -> tuple[Column, ...]:
        """Previous values of the stream's origin columns; empty if the record has none.

        Raises:
            CodecError: the bytes are not a row, or a checksum is wrong.
        """
        if not self.origin:
            return ()
        if self._origin_row is None:
            self._origin_row = decode_row(self.origin)
        return self._origin_row.columns

    @property
    def size(self) -> int:
        """Bytes of the record on the wire."""
        return len(self.body) + (len(self.origin) if self.origin else 0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return (self.action, self.body, self.origin) == (other.action, other.body, other.origin)

    def __hash__(self) -> int:
        return hash((self.action, self.body, self.origin))

    # Row contents never reach a log (house rule), so the text has none.
    def __repr__(self) -> str:
        return f"Record({self.action.name}, {self.size} bytes)"


def _check_columns(columns: tuple[Column, ...]) -> None:
    for column in columns:
        if column.op is CellOp.PUT and column.value is None:
            raise CodecError("a cell is put without a value")


#: The reference, whichever class `Record` is.
PythonRecord = Record

if not TYPE_CHECKING and native is not None:
    Record = native.Record
