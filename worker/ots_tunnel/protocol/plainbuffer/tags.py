"""The grammar of PlainBuffer: its tags and sizes (docs/protocol.md 3.1, docs/data-plane.md 3.1).

    buffer    := 75000000 row*
    row       := 01 cell*                            primary key: name, value and checksum only
                 [ 02 cell+ ]                        attributes; the tag is omitted when there are none
                 [ 08 ]                              the row is deleted
                 [ 0B len32 block* ]                 extension of stream records; the row checksum skips it
                 09 crc8
    cell      := 03 04 len32 name
                 [ 05 len32 value ] [ 06 op8 ] [ 07 ms64 ]
                 0A crc8
    value     := variant8 payload                    len32 counts both
    block     := 0C len32 0D epoch32 0E us64 0F index32   the sequence; blocks with other tags are skipped

All integers are little-endian. A cell's checksum covers name, value, timestamp and op, in this order and not in the
wire's. A row's checksum covers the checksum bytes of its cells, then 01 with a delete marker or 00 without one.
"""

from __future__ import annotations

import struct
from typing import Final

HEADER: Final = b"\x75\x00\x00\x00"

ROW_KEY: Final = 0x01
ROW_DATA: Final = 0x02
CELL: Final = 0x03
CELL_NAME: Final = 0x04
CELL_VALUE: Final = 0x05
CELL_OP: Final = 0x06
CELL_TIMESTAMP: Final = 0x07
DELETE_MARKER: Final = 0x08
ROW_CHECKSUM: Final = 0x09
CELL_CHECKSUM: Final = 0x0A
EXTENSION: Final = 0x0B
SEQUENCE: Final = 0x0C
SEQUENCE_EPOCH: Final = 0x0D
SEQUENCE_TIMESTAMP: Final = 0x0E
SEQUENCE_ROW_INDEX: Final = 0x0F

INTEGER: Final = 0x00
DOUBLE: Final = 0x01
BOOLEAN: Final = 0x02
STRING: Final = 0x03
BLOB: Final = 0x07

#: Ops that a cell can carry; a put carries none.
CELL_OPS: Final = frozenset((1, 3, 4))

#: Sizes on the wire, in bytes: the header, a tag, a tag with a length, the tags and the length in front of a name.
HEADER_BYTES: Final = 4
TAG_BYTES: Final = 1
TAG_LENGTH_BYTES: Final = 5
CELL_START_BYTES: Final = 6
#: Each with its tag: a cell's op, a cell's timestamp, the checksum of a cell or a row.
OP_BYTES: Final = 2
TIMESTAMP_BYTES: Final = 9
CHECKSUM_BYTES: Final = 2

U32: Final = struct.Struct("<I")
I64: Final = struct.Struct("<q")
DOUBLE_BITS: Final = struct.Struct("<d")
#: Tag and length: of a value, an extension or a block.
TAG_LENGTH: Final = struct.Struct("<BI")
#: Two tags and the length of the name: the beginning of every cell.
CELL_START: Final = struct.Struct("<BBI")
#: What follows tag 07 in a cell: milliseconds, tag 0A, checksum.
TIMESTAMP_END: Final = struct.Struct("<qBB")
#: Payload of a sequence block with its tags.
SEQUENCE_BODY: Final = struct.Struct("<BiBqBi")
SEQUENCE_LENGTH: Final = 19
#: A whole extension that holds a sequence block and nothing else.
FULL_EXTENSION: Final = struct.Struct("<BIBIBiBqBi")
FULL_EXTENSION_BYTES: Final = 29
#: The end of a stream record: such an extension, then the row's checksum.
SEQUENCE_TAIL_BYTES: Final = FULL_EXTENSION_BYTES + CHECKSUM_BYTES
