"""Bytes on which clients and service agree (docs/protocol.md 2.4, 3.5; docs/data-plane.md 3.3).

A to D and F were read and written by the vendor's Go and Java clients, E was recorded from the live service.
"""

from __future__ import annotations

from typing import NamedTuple

from ots_tunnel.model import CellOp, PrimaryKey, SequenceInfo
from ots_tunnel.protocol.plainbuffer.column import Column

MS = 1700000000123
KEY: PrimaryKey = (("pk1", "user-001"), ("pk2", 42))


class Vector(NamedTuple):
    name: str
    wire: bytes
    primary_key: PrimaryKey
    columns: tuple[Column, ...] = ()
    delete: bool = False
    sequence: SequenceInfo | None = None


_KEY_HEX = (
    "7500000001030403000000706b31050d0000000308000000757365722d3030310a52"
    "030403000000706b320509000000002a000000000000000a2b"
)
_PK_V = "75000000 01030402000000706b05060000000301000000760ab1"

STREAM_PUT = Vector(
    "A",
    bytes.fromhex(
        _KEY_HEX
        + "02"
        + "0304040000006e616d6505080000000303000000416e6e077b68e5cf8b0100000a03"
        + "0304030000006167650509000000001e00000000000000077b68e5cf8b0100000ac1"
        + "03040500000073636f72650509000000010000000000e05840077b68e5cf8b0100000aed"
        + "03040300000076697005020000000201077b68e5cf8b0100000ad3"
        + "0304030000007261770508000000070300000000ff10077b68e5cf8b0100000aed"
        + "0b180000000c130000000d000000000e40222018240a06000f000000000904"
    ),
    KEY,
    (
        Column("name", "Ann", MS),
        Column("age", 30, MS),
        Column("score", 99.5, MS),
        Column("vip", True, MS),
        Column("raw", b"\x00\xff\x10", MS),
    ),
    sequence=SequenceInfo(0, 1700000000123456, 0),
)
STREAM_UPDATE = Vector(
    "B",
    bytes.fromhex(
        _KEY_HEX
        + "02"
        + "0304030000006167650509000000001f0000000000000007636ce5cf8b0100000a19"
        + "0304040000006e616d650603077b68e5cf8b0100000a27"
        + "03040300000072617706010a7e"
        + "0b180000000c130000000d000000000e80642f18240a06000f070000000981"
    ),
    KEY,
    (
        Column("age", 31, MS + 1000),
        Column("name", None, MS, CellOp.DELETE_ONE_VERSION),
        Column("raw", None, None, CellOp.DELETE_ALL_VERSIONS),
    ),
    sequence=SequenceInfo(0, 1700000001123456, 7),
)
STREAM_DELETE = Vector(
    "C",
    bytes.fromhex(_KEY_HEX + "080b180000000c130000000d010000000ec0a63e18240a06000f0000000009cc"),
    KEY,
    delete=True,
    sequence=SequenceInfo(1, 1700000002123456, 0),
)
BASE_PUT = Vector(
    "D",
    bytes.fromhex(
        "75000000010304030000006b657905060000000301000000350a20"
        "02030401000000760509000000000700000000000000077b68e5cf8b0100000a040917"
    ),
    (("key", "5"),),
    (Column("v", 7, MS),),
)
KEY_ONLY = Vector("E", bytes.fromhex("75000000010304030000006b657905060000000301000000350a2009ae"), (("key", "5"),))
ORIGIN = Vector(
    "F",
    bytes.fromhex("7500000001020304030000006167650509000000001e00000000000000077b68e5cf8b0100000ac109f8"),
    (),
    (Column("age", 30, MS),),
)

_V: PrimaryKey = (("pk", "v"),)
WRITES = (
    Vector("put", bytes.fromhex(_PK_V + "02030401000000630506000000030100000078 0af4 09c1"), _V, (Column("c", "x"),)),
    Vector("delete", bytes.fromhex(_PK_V + "08095d"), _V, delete=True),
    Vector(
        "delete one version",
        bytes.fromhex(_PK_V + "020304010000006306030700 68e5cf8b010000 0a0e 0957"),
        _V,
        (Column("c", None, 1700000000000, CellOp.DELETE_ONE_VERSION),),
    ),
    Vector(
        "delete all versions",
        bytes.fromhex(_PK_V + "0203040100000063 0601 0acd 0985"),
        _V,
        (Column("c", None, None, CellOp.DELETE_ALL_VERSIONS),),
    ),
    Vector(
        "increment",
        bytes.fromhex(_PK_V + "0203040100000063 0509000000000100000000000000 0604 0a78 098b"),
        _V,
        (Column("c", 1, None, CellOp.INCREMENT),),
    ),
    Vector(
        "stream",
        bytes.fromhex(
            "7500000001030402000000706b05060000000301000000760ab102030401000000630506000000030100000078070068e5cf8b0100000aeb"
            "030401000000640603070068e5cf8b0100000a110304010000006506010ab3"
            "0b180000000c130000000d000000000e40222018240a06000f0200000009f4"
        ),
        _V,
        (
            Column("c", "x", 1700000000000),
            Column("d", None, 1700000000000, CellOp.DELETE_ONE_VERSION),
            Column("e", None, None, CellOp.DELETE_ALL_VERSIONS),
        ),
        sequence=SequenceInfo(0, 1700000000123456, 2),
    ),
)

RECORDS = (STREAM_PUT, STREAM_UPDATE, STREAM_DELETE, BASE_PUT)
ALL = (*RECORDS, KEY_ONLY, ORIGIN, *WRITES)
