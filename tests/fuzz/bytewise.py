"""Mutations of bytes without any format, and of protobuf fields by the wire format alone."""

from __future__ import annotations

import random
from collections.abc import Callable

_VARINTS = (0, 1, 2, 127, 128, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)
_TEXTS = (b"", b"\xff\xfe", b"\xed\xa0\x80", b"a\0b", b"x" * 255, b"x" * 256, "\N{SNOWMAN}".encode(), b"../../x")

Field = tuple[int, int, bytes]
"""Field number, wire type and content; the content of a length-delimited field is without its length."""


def mutate_bytes(rng: random.Random, body: bytes) -> bytes:
    """Flip, cut, repeat or insert some bytes."""
    data = bytearray(body)
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(data) + 1)
        match rng.randrange(5):
            case 0 if place < len(data):
                data[place] ^= 1 << rng.randrange(8)
            case 1:
                del data[place:]
            case 2:
                del data[place : place + rng.randint(1, 8)]
            case 3:
                data[place:place] = rng.randbytes(rng.randint(1, 8))
            case _:
                data[place:place] = data[place : place + rng.randint(1, 40)]
    return bytes(data)


def varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*encoded, value))


def split(body: bytes) -> list[Field] | None:
    """Parse the fields of a message; None if the bytes are not one."""
    fields: list[Field] = []
    place = 0
    while place < len(body):
        tag, place = _read_varint(body, place)
        start = place
        match tag & 7:
            case 0:
                place = _read_varint(body, place)[1]
            case 1:
                place += 8
            case 5:
                place += 4
            case 2:
                length, start = _read_varint(body, place)
                place = start + length
            case _:
                return None
        if place > len(body) or place < 0 or tag >> 3 == 0:
            return None
        fields.append((tag >> 3, tag & 7, body[start:place]))
    return fields


def join(fields: list[Field]) -> bytes:
    return b"".join(
        varint(number << 3 | kind) + (varint(len(content)) if kind == 2 else b"") + content
        for number, kind, content in fields
    )


def mutate_fields(rng: random.Random, body: bytes, depth: int = 0) -> bytes:
    """Change one field of a message, or of one of its messages."""
    fields = split(body)
    if not fields:
        return mutate_bytes(rng, body)
    place = rng.randrange(len(fields))
    number, kind, content = fields[place]
    if kind == 2 and depth < 4 and split(content) and rng.random() < 0.6:
        fields[place] = (number, kind, mutate_fields(rng, content, depth + 1))
        return join(fields)
    return join(fields[:place]) + _CHANGES[rng.randrange(len(_CHANGES))](rng, fields[place]) + join(fields[place + 1 :])


#: Mutations of one field.
_CHANGES: tuple[Callable[[random.Random, Field], bytes], ...] = (
    lambda rng, field: b"",
    lambda rng, field: join([field, field]),
    lambda rng, field: join([field] * rng.choice((10, 300))),
    lambda rng, field: join([(field[0], 0, varint(rng.choice(_VARINTS)))]),
    lambda rng, field: join([(field[0], 2, rng.choice(_TEXTS))]),
    lambda rng, field: join([(rng.choice((1, 2, 3, 15, 16, 2**29 - 1)), *field[1:])]),
    lambda rng, field: join([(field[0], rng.choice((1, 5)), rng.randbytes(8))]),
    lambda rng, field: join([field]) + _odd_field(rng, field[0]),
    lambda rng, field: _odd_field(rng, field[0]),
)


def _odd_field(rng: random.Random, number: int) -> bytes:
    match rng.randrange(5):
        case 0:  # groups within groups
            depth = rng.choice((1, 50, 150, 2000))
            return varint(number << 3 | 3) * depth + varint(number << 3 | 4) * rng.choice((depth, 0))
        case 1:  # messages within messages
            nested = b""
            for _ in range(rng.choice((5, 99, 200))):
                nested = b"\x0a" + varint(len(nested)) + nested
            return nested
        case 2:  # a number that takes more bytes than it needs, or never ends
            return varint(number << 3) + b"\x80" * rng.choice((3, 9, 10, 30)) + b"\x00"
        case 3:  # a length beyond the end
            return varint(number << 3 | 2) + varint(rng.choice((2**31 - 1, 2**32, 2**63, 1000)))
        case _:  # wire types that do not exist, field number 0
            return bytes((rng.choice((6, 7, 0, number << 3 & 0xFF | 6)),))


def _read_varint(body: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(body) and shift < 70:
        byte = body[place]
        place += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, place
    return 0, len(body) + 1
