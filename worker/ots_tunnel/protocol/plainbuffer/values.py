"""Single values of PlainBuffer: one variant byte, then the payload (docs/protocol.md 3.1)."""

from __future__ import annotations

from ots_tunnel.errors import CodecError
from ots_tunnel.model import KeyValue, Marker, Value
from ots_tunnel.protocol.plainbuffer.tags import BLOB, BOOLEAN, DOUBLE, DOUBLE_BITS, I64, INTEGER, STRING, U32

_INT_MIN = -(1 << 63)
_INT_MAX = (1 << 63) - 1
_INTEGER = bytes((INTEGER,))
_DOUBLE = bytes((DOUBLE,))
_STRING = bytes((STRING,))
_BLOB = bytes((BLOB,))
_TRUE = bytes((BOOLEAN, 1))
_FALSE = bytes((BOOLEAN, 0))
#: Bytes of a value with its variant: of an integer or a double, a boolean, a marker.
_NUMBER_BYTES = 1 + 8
_BOOLEAN_BYTES = 1 + 1
_MARKER_BYTES = 1
#: Variant and inner length, before the bytes of a text or a blob.
_TEXT_AT = 1 + 4
_MARKERS = {marker.value: marker for marker in Marker}


def encode_value(value: Value | Marker | bytearray | memoryview) -> bytes:
    """Encode one value without length prefix.

    Raises:
        CodecError: an integer beyond 64 bits, text that UTF-8 cannot express, or a type without a variant.
    """
    match value:
        case bool():
            return _TRUE if value else _FALSE
        case int():
            if not _INT_MIN <= value <= _INT_MAX:
                raise CodecError(f"integer of {value.bit_length()} bits does not fit 64 bits with sign")
            return _INTEGER + I64.pack(value)
        case str():
            return _encode_text(value)
        case float():
            return _DOUBLE + DOUBLE_BITS.pack(value)
        case bytes() | bytearray() | memoryview():
            return _BLOB + U32.pack(len(value)) + bytes(value)
        case Marker():
            return bytes((value.value,))
        case _:
            raise CodecError(f"{type(value).__name__} has no wire form, use int, float, bool, str or bytes")


def _encode_text(value: str) -> bytes:
    try:
        text = value.encode()
    except UnicodeEncodeError as error:
        raise CodecError("text holds a lone surrogate, which UTF-8 cannot express") from error
    return _STRING + U32.pack(len(text)) + text


def decode_value(buf: bytes) -> Value | Marker:
    """Decode one value without length prefix.

    Raises:
        CodecError: the variant is unknown, or the payload has the wrong length for it.
    """
    return decode_value_at(bytes(buf), 0, len(buf))


def decode_value_at(buf: bytes, start: int, end: int) -> Value | Marker:
    """Decode the value in ``buf[start:end]``; the slice must lie inside the buffer.

    Raises:
        CodecError: as `decode_value`; the offset counts from the start of the buffer.
    """
    size = end - start
    if size < 1 or end > len(buf):
        raise CodecError("value is empty or truncated", start)
    kind = buf[start]
    if kind == STRING:
        return _decode_text(buf, start, end)
    if kind == INTEGER and size == _NUMBER_BYTES:
        value: int = I64.unpack_from(buf, start + 1)[0]
        return value
    if kind == DOUBLE and size == _NUMBER_BYTES:
        double: float = DOUBLE_BITS.unpack_from(buf, start + 1)[0]
        return double
    if kind == BOOLEAN and size == _BOOLEAN_BYTES and buf[start + 1] < 2:
        return buf[start + 1] == 1
    if kind == BLOB:
        return buf[_payload(buf, start, end) : end]
    if kind in _MARKERS and size == _MARKER_BYTES:
        return _MARKERS[kind]
    raise CodecError(f"no value has variant 0x{kind:02x} and {size} bytes", start)


def decode_key_value_at(buf: bytes, start: int, end: int) -> KeyValue:
    """Decode a primary key value in ``buf[start:end]``.

    Raises:
        CodecError: as `decode_value`, or the type is not one of a key.
    """
    value = decode_value_at(buf, start, end)
    if isinstance(value, bool | float):
        raise CodecError(f"a primary key cannot be a {type(value).__name__}", start)
    return value


def decode_column_value_at(buf: bytes, start: int, end: int) -> Value:
    """Decode an attribute's value in ``buf[start:end]``.

    Raises:
        CodecError: as `decode_value`, or the value is a marker.
    """
    value = decode_value_at(buf, start, end)
    if isinstance(value, Marker):
        raise CodecError(f"a column cannot hold {value.name}", start)
    return value


def _decode_text(buf: bytes, start: int, end: int) -> str:
    try:
        return str(buf[_payload(buf, start, end) : end], "utf-8")
    except UnicodeDecodeError as error:
        raise CodecError("text is not UTF-8", start + _TEXT_AT + error.start) from error


def _payload(buf: bytes, start: int, end: int) -> int:
    if end - start < _TEXT_AT or U32.unpack_from(buf, start + 1)[0] != end - start - _TEXT_AT:
        raise CodecError("inner length does not match the value's length", start + 1)
    return start + _TEXT_AT
