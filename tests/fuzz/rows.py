"""Parsing and building PlainBuffer rows, valid or not, independently of the package's codec."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace

HEADER = b"\x75\0\0\0"
#: Fields of requests that hold a row or a key.
ROW_FIELDS = frozenset(
    ("row", "row_change", "primary_key", "inclusive_start_primary_key", "exclusive_end_primary_key", "key")
)
INT_MAX, INT_MIN = 2**63 - 1, -(2**63)
LIMIT_MS = INT_MAX // 1000


def _shifted(crc: int) -> int:
    for _ in range(8):
        crc = (crc << 1 ^ 0x07) & 0xFF if crc & 0x80 else crc << 1
    return crc


_SHIFTED = [_shifted(byte) for byte in range(256)]


def crc8(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc = _SHIFTED[crc ^ byte]
    return crc


@dataclass(frozen=True)
class WireCell:
    """One cell; `value` is type byte and payload, `value_length` the length on the wire."""

    name: bytes
    value: bytes | None = None
    op: int | None = None
    timestamp_ms: int | None = None
    value_length: int | None = None
    name_length: int | None = None
    checksum: int | None = None

    @property
    def true_checksum(self) -> int:
        stamp = b"" if self.timestamp_ms is None else struct.pack("<q", self.timestamp_ms)
        return crc8(self.name + (self.value or b"") + stamp + (b"" if self.op is None else bytes((self.op,))))

    @property
    def shown_checksum(self) -> int:
        return self.true_checksum if self.checksum is None else self.checksum

    def encode(self) -> bytes:
        parts = [b"\x03\x04", struct.pack("<I", _claim(self.name_length, self.name)), self.name]
        if self.value is not None:
            parts += [b"\x05", struct.pack("<I", _claim(self.value_length, self.value)), self.value]
        if self.op is not None:
            parts.append(bytes((0x06, self.op)))
        if self.timestamp_ms is not None:
            parts += [b"\x07", struct.pack("<q", self.timestamp_ms)]
        return b"".join([*parts, b"\x0a", bytes((self.shown_checksum,))])


@dataclass(frozen=True)
class WireRow:
    """One row; `extra` stands between cells and row checksum."""

    key: tuple[WireCell, ...]
    cells: tuple[WireCell, ...] = ()
    delete: bool = False
    extra: bytes = b""
    header: bytes = HEADER
    checksum: int | None = None
    tail: bytes = field(default=b"", repr=False)

    def encode(self) -> bytes:
        checksums = bytes(cell.shown_checksum for cell in (*self.key, *self.cells))
        checksum = crc8(checksums + bytes((self.delete,))) if self.checksum is None else self.checksum
        parts = [self.header, b"\x01", *(cell.encode() for cell in self.key)]
        if self.cells:
            parts += [b"\x02", *(cell.encode() for cell in self.cells)]
        parts += [b"\x08" if self.delete else b"", self.extra, b"\x09", bytes((checksum,)), self.tail]
        return b"".join(parts)


def _claim(claimed: int | None, content: bytes) -> int:
    return len(content) if claimed is None else claimed % 2**32


def integer(value: int) -> bytes:
    return b"\x00" + struct.pack("<q", value)


def text(value: bytes) -> bytes:
    return b"\x03" + struct.pack("<I", len(value)) + value


def blob(value: bytes) -> bytes:
    return b"\x07" + struct.pack("<I", len(value)) + value


def double(value: float) -> bytes:
    return b"\x01" + struct.pack("<d", value)


#: Values that are right, odd or wrong, in a key or a cell.
VALUES: tuple[bytes, ...] = (
    integer(0),
    integer(1),
    integer(-1),
    integer(INT_MAX),
    integer(INT_MIN),
    double(1.5),
    double(float("nan")),
    double(float("inf")),
    double(-0.0),
    b"\x02\x00",
    b"\x02\x01",
    b"\x02\x02",
    text(b""),
    text(b"a"),
    text("ключ \N{GRINNING FACE}".encode()),
    text(b"\xff\xfe"),
    text(b"\xed\xa0\x80"),
    text(b"right\xc3"),
    text(b"\0"),
    text(b"x" * 1024),
    text(b"x" * 1025),
    blob(b""),
    blob(b"\0\xff"),
    blob(b"y" * 1025),
    b"",
    b"\x00",
    b"\x00\x01",
    b"\x01\0\0\0",
    b"\x02",
    b"\x03",
    b"\x03\xff\xff\xff\xff",
    b"\x03\x05\0\0\0ab",
    b"\x03\x01\0\0\0abc",
    b"\x07\xff\xff\xff\x7fab",
    b"\x06",
    b"\x09",
    b"\x0a",
    b"\x0b",
    b"\x0b\0",
    b"\x0a\0",
    b"\x04\0",
    b"\xff",
)
NAMES: tuple[bytes, ...] = (
    b"",
    b"a",
    b"b",
    b"c",
    b"k",
    b"s",
    b"n",
    b"#hidden",
    b"x" * 255,
    b"x" * 256,
    b"\xff",
    b"\xed\xa0\x80",
    "имя".encode(),
    b"a\0b",
    b"a\nb",
)
TIMES: tuple[int | None, ...] = (
    None,
    0,
    1,
    -1,
    INT_MAX,
    INT_MIN,
    LIMIT_MS,
    LIMIT_MS - 1,
    1_700_000_000_000,
    1_700_000_000_001,
    1_699_999_999_000,
)
_LENGTHS = (0, 1, 2**31 - 1, 2**31, 2**32 - 1, 100)
_EXTRAS = (
    b"\x08",
    b"\x0b\x18\0\0\0\x0c\x13\0\0\0\x0d\0\0\0\0\x0e" + bytes(8) + b"\x0f\0\0\0\0",
    b"\x0b\xff\xff\xff\xff",
    b"\x0b\0\0\0\0",
    b"\x02",
    b"\x01",
    b"\x0c",
)


def _resembling(rng: random.Random, value: bytes | None) -> bytes:
    """Another value of the same type, valid or not."""
    alike = [other for other in VALUES if other[:1] == (value or b"\x00")[:1]]
    return rng.choice(alike or VALUES)


def mutate_row(rng: random.Random, row: WireRow) -> WireRow:
    """One change of a row; checksums stay correct unless they are what is changed."""
    return rng.choice(_ROW_CHANGES)(rng, row)


def _change_cell(rng: random.Random, row: WireRow) -> WireRow:
    in_key = not row.cells or rng.random() < 0.3
    cells = list(row.key if in_key else row.cells)
    if not cells:
        return replace(row, cells=(WireCell(rng.choice(NAMES), rng.choice(VALUES), None, rng.choice(TIMES)),))
    place = rng.randrange(len(cells))
    cells[place] = rng.choice(_CELL_CHANGES)(rng, cells[place])
    return replace(row, key=tuple(cells)) if in_key else replace(row, cells=tuple(cells))


def _change_count(rng: random.Random, row: WireRow) -> WireRow:
    cells = list(row.cells)
    match rng.randrange(7):
        case 0:
            cells = []
        case 1 if cells:
            del cells[rng.randrange(len(cells))]
        case 2 if cells:
            cells.insert(rng.randrange(len(cells)), rng.choice(cells))
        case 3:
            rng.shuffle(cells)
        case 4 if rng.random() < 0.05:
            cells = [WireCell(b"c%d" % number, integer(number)) for number in range(rng.choice((1024, 1025)))]
        case _:
            cells.append(
                WireCell(rng.choice(NAMES), rng.choice(VALUES), rng.choice((None, 1, 3, 4)), rng.choice(TIMES))
            )
    return replace(row, cells=tuple(cells))


def _change_key(rng: random.Random, row: WireRow) -> WireRow:
    key = list(row.key)
    match rng.randrange(4):
        case 0:
            key = []
        case 1:
            key = key + key
        case 2:
            rng.shuffle(key)
        case _:
            key = key[:-1] if rng.random() < 0.5 else [*key, WireCell(rng.choice(NAMES), rng.choice(VALUES))]
    return replace(row, key=tuple(key))


_CELL_CHANGES: tuple[Callable[[random.Random, WireCell], WireCell], ...] = (
    lambda rng, cell: replace(cell, name=rng.choice(NAMES)),
    lambda rng, cell: replace(cell, value=rng.choice(VALUES)),
    lambda rng, cell: replace(cell, value=rng.choice(VALUES)),
    lambda rng, cell: replace(cell, value=_resembling(rng, cell.value)),
    lambda rng, cell: replace(cell, value=_resembling(rng, cell.value)),
    lambda rng, cell: replace(cell, value=_resembling(rng, cell.value)),
    lambda rng, cell: replace(cell, value=_resembling(rng, cell.value)),
    lambda rng, cell: replace(cell, value=_resembling(rng, cell.value)),
    lambda rng, cell: replace(cell, value=_resembling(rng, cell.value)),
    lambda rng, cell: replace(cell, value=None if rng.random() < 0.5 else rng.randbytes(rng.randrange(12))),
    lambda rng, cell: replace(cell, op=rng.choice((None, 0, 1, 2, 3, 4, 5, 255))),
    lambda rng, cell: replace(cell, op=rng.choice((1, 3)), value=None, timestamp_ms=rng.choice(TIMES)),
    lambda rng, cell: replace(cell, op=4, value=integer(rng.choice((1, INT_MAX, INT_MIN))), timestamp_ms=None),
    lambda rng, cell: replace(cell, timestamp_ms=rng.choice(TIMES)),
    lambda rng, cell: replace(cell, value_length=rng.choice(_LENGTHS)),
    lambda rng, cell: replace(cell, name_length=rng.choice(_LENGTHS)),
    lambda rng, cell: replace(cell, checksum=cell.true_checksum ^ 1 << rng.randrange(8)),
)
_ROW_CHANGES: tuple[Callable[[random.Random, WireRow], WireRow], ...] = (
    _change_cell,
    _change_cell,
    _change_cell,
    _change_cell,
    _change_count,
    _change_key,
    lambda rng, row: replace(row, delete=not row.delete),
    lambda rng, row: replace(row, extra=rng.choice(_EXTRAS)),
    lambda rng, row: replace(row, header=rng.choice((b"", b"\x75\0\0", b"\0\0\0\x75", HEADER * 2))),
    lambda rng, row: replace(row, checksum=rng.randrange(256)),
    lambda rng, row: replace(row, tail=rng.choice((b"\0", row.encode(), row.encode()[4:], HEADER))),
)
