"""Primary keys in the order of the service.

A key is a tuple with one element per key column: an int, or the bytes of a string or binary value, so tuples compare
as the service compares (integers by number, strings and binaries by bytes; docs/data-plane.md 2.6). A bound is a key
that may be cut short. A short tuple sorts before every longer one with the same start, like INF_MIN; `TOP` sorts after
every element, like INF_MAX.

    key cell := 03  04 len32 name  05 len32 type payload  0A crc8
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ots_emulator.refusal import Refusal
from ots_emulator.tables.sent_keys import KEY_VALUE_BYTES, check_key_values, is_text, key_columns
from ots_tunnel.model import KeyColumn, KeyType, KeyValue, Marker, PrimaryKey
from ots_tunnel.protocol.plainbuffer.codec import decode_value, encode_primary_key
from ots_tunnel.protocol.plainbuffer.tags import (
    BLOB,
    CELL,
    CELL_NAME,
    CELL_START,
    CELL_VALUE,
    I64,
    INTEGER,
    STRING,
    U32,
)

#: The highest integer of a key.
INT_MAX: Final = (1 << 63) - 1
#: Most bytes of a value in the bound right after a key (`KeySchema.after`).
BOUND_VALUE_BYTES: Final = KEY_VALUE_BYTES + 1

#: PlainBuffer type byte of each key type, and how messages print it.
TYPE_BYTE = {KeyType.INTEGER: INTEGER, KeyType.STRING: STRING, KeyType.BINARY: BLOB}
TYPE_NAME = {KeyType.INTEGER: "VT_INTEGER", KeyType.STRING: "VT_STRING", KeyType.BINARY: "VT_BLOB"}


class _Top:
    """Greater than every key element."""

    def __lt__(self, other: object) -> bool:
        return False

    def __le__(self, other: object) -> bool:
        return other is self

    def __gt__(self, other: object) -> bool:
        return other is not self

    def __ge__(self, other: object) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return other is self

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "TOP"


TOP: Final = _Top()

Key = tuple[Any, ...]
BOTTOM_KEY: Final[Key] = ()
TOP_KEY: Final[Key] = (TOP,)


class KeySchema:
    """Reads and writes the keys of one table."""

    def __init__(self, columns: Sequence[KeyColumn]) -> None:
        self.columns = tuple(columns)
        self.names = frozenset(column.name.encode() for column in columns)
        #: Position of the auto-increment column, None without.
        self.auto_increment = next((place for place, column in enumerate(columns) if column.auto_increment), None)
        self._cells = tuple((_cell_start(column.name), TYPE_BYTE[column.type]) for column in columns)

    def parse(self, cells: bytes) -> Key:
        """Parse the wire bytes of a row's key cells.

        Raises:
            Refusal: the key does not fit the table, in the service's order: size, name, type (docs/data-plane.md 2.3).
        """
        position = 0
        key = []
        for start, type_byte in self._cells:
            if not cells.startswith(start, position):
                return self._refuse(cells)
            position += len(start)
            # Here: the value's length in four bytes, the type byte, then the payload; of a text its length comes first.
            end = position + 4 + U32.unpack_from(cells, position)[0]
            if cells[position + 4] != type_byte:
                return self._refuse(cells)
            if type_byte == INTEGER:
                if end != position + 13:
                    return self._refuse(cells)
                key.append(I64.unpack_from(cells, position + 5)[0])
            else:
                value = cells[position + 9 : end]
                if cells[position + 5 : position + 9] != U32.pack(len(value)) or len(value) > KEY_VALUE_BYTES:
                    return self._refuse(cells)
                if type_byte == STRING and not value.isascii() and not is_text(value):
                    return self._refuse(cells)
                key.append(value)
            position = end + 2
        if position != len(cells):
            return self._refuse(cells)
        return tuple(key)

    def _refuse(self, cells: bytes) -> Key:
        self.check(key_columns(cells))
        raise Refusal("OTSInvalidPK", "Validate PK fail.")

    def check(self, primary_key: PrimaryKey, *, bounds: bool = False, longest: int = KEY_VALUE_BYTES) -> None:
        """Compare a key with the schema; `bounds` allows INF_MIN and INF_MAX, `longest` is the most bytes of a value.

        Raises:
            Refusal: OTSInvalidPK, or OTSParameterInvalid for a key that no table can have.
        """
        check_key_values(primary_key, bounds=bounds, longest=longest)
        self.check_names(primary_key)
        for (_, value), column in zip(primary_key, self.columns, strict=True):
            if isinstance(value, Marker):
                continue
            found = type_of(value)
            if found is not column.type:
                text = f"Validate PK type fail. Input: {TYPE_NAME[found]}, Meta: {TYPE_NAME[column.type]}."
                raise Refusal("OTSInvalidPK", text)

    def check_names(self, primary_key: PrimaryKey) -> None:
        """Compare number and names of a key's columns with the schema.

        Raises:
            Refusal: OTSInvalidPK.
        """
        if len(primary_key) != len(self.columns):
            text = f"Validate PK size fail. Input: {len(primary_key)}, Meta: {len(self.columns)}."
            raise Refusal("OTSInvalidPK", text)
        for (name, _), column in zip(primary_key, self.columns, strict=True):
            if name != column.name:
                raise Refusal("OTSInvalidPK", f"Validate PK name fail. Input: {name}, Meta: {column.name}.")

    def bound(self, primary_key: PrimaryKey, *, longest: int = KEY_VALUE_BYTES) -> Key:
        """Convert a range limit to a bound; `longest` is the most bytes of a value.

        Raises:
            Refusal: it does not fit the table.
        """
        self.check(primary_key, bounds=True, longest=longest)
        elements: list[Any] = []
        for _, value in primary_key:
            if value is Marker.INF_MIN:
                break
            if value is Marker.INF_MAX:
                elements.append(TOP)
                break
            elements.append(value.encode() if isinstance(value, str) else value)
        return tuple(elements)

    def primary_key(self, key: Key) -> PrimaryKey:
        """Convert a key or bound to names and values; missing elements become INF_MIN."""
        values: list[tuple[str, KeyValue]] = []
        for index, column in enumerate(self.columns):
            element = key[index] if index < len(key) else Marker.INF_MIN
            if element is TOP:
                element = Marker.INF_MAX
            elif column.type is KeyType.STRING and isinstance(element, bytes):
                element = element.decode()
            values.append((column.name, element))
            if isinstance(element, Marker):
                values.extend((rest.name, element) for rest in self.columns[index + 1 :])
                break
        return tuple(values)

    def encode(self, key: Key) -> bytes:
        """Encode a key or bound as a PlainBuffer row with header."""
        return encode_primary_key(self.primary_key(key))

    def after(self, key: Key) -> Key:
        """Return the bound right after a key: no key fits between the two.

        It is `BOUND_VALUE_BYTES` long where the key's last value is as long as it may be.
        """
        last = key[-1]
        if isinstance(last, bytes):
            return (*key[:-1], last + b"\0")
        return (*key[:-1], TOP if last == INT_MAX else last + 1)


def cut_element(cut: str) -> Any:
    """Return the key element of a PlainBuffer value in hexadecimal."""
    value = decode_value(bytes.fromhex(cut))
    return value.encode() if isinstance(value, str) else value


def _cell_start(name: str) -> bytes:
    encoded = name.encode()
    return CELL_START.pack(CELL, CELL_NAME, len(encoded)) + encoded + bytes((CELL_VALUE,))


def type_of(value: KeyValue) -> KeyType:
    """Return the type of a key value, which must not be a marker."""
    if isinstance(value, int):
        return KeyType.INTEGER
    return KeyType.STRING if isinstance(value, str) else KeyType.BINARY
