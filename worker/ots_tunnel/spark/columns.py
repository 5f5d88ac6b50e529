"""Arrow columns, built from buffers: from Python values, or by the compiled twin from the rows of a page. Pure.

`pyarrow.array(list)` would import pandas. Spark's Python worker forces a full garbage collection after every task, and
the objects of an imported pandas make each of them slower (docs/architecture.md 7).

Functions import pyarrow when they run, because the driver pickles their callers.
"""

from __future__ import annotations

from array import array
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from ots_tunnel.errors import CodecError
from ots_tunnel.protocol.plainbuffer.compiled import native
from ots_tunnel.protocol.plainbuffer.tags import BLOB, BOOLEAN, DOUBLE, INTEGER, STRING

if TYPE_CHECKING:
    import pyarrow as pa

#: Arrow's offsets into the values of a variable-sized column are signed and have 32 bits.
MAX_COLUMN_BYTES = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ColumnType:
    """One column type: its name, the Python types it accepts, and how its values are packed."""

    name: str
    accepts: tuple[type, ...]
    pack: Callable[[Sequence[Any]], list[bytes]]
    """Packs values, without None, into the data buffers."""
    empty: Any
    """Replaces None in the data buffer."""
    arrow: str
    """Name of the factory in pyarrow."""
    tag: int
    """Tag of the wire (`tags`)."""


def _pack_integers(values: Sequence[int]) -> list[bytes]:
    return [array("q", values).tobytes()]


def _pack_doubles(values: Sequence[float]) -> list[bytes]:
    return [array("d", values).tobytes()]


def _pack_bits(values: Sequence[object]) -> list[bytes]:
    if not values:
        return [b""]
    bits = int("".join("1" if value else "0" for value in reversed(values)), 2)
    return [bits.to_bytes((len(values) + 7) // 8, "little")]


def _pack_bytes(values: Sequence[bytes]) -> list[bytes]:
    offsets = array("q", accumulate(map(len, values), initial=0))
    if offsets[-1] > MAX_COLUMN_BYTES:
        raise CodecError(f"one batch of a column holds {offsets[-1]} bytes, allowed are {MAX_COLUMN_BYTES}")
    return [array("i", offsets).tobytes(), b"".join(values)]


def _pack_strings(values: Sequence[str]) -> list[bytes]:
    return _pack_bytes([value.encode() for value in values])


#: By the type's name in Spark's DDL. Tablestore has no other types of columns (docs/data-plane.md 2.1).
COLUMN_TYPES = {
    kind.name: kind
    for kind in (
        ColumnType("bigint", (int,), _pack_integers, 0, "int64", INTEGER),
        ColumnType("double", (float, int), _pack_doubles, 0.0, "float64", DOUBLE),
        ColumnType("boolean", (bool,), _pack_bits, False, "bool_", BOOLEAN),
        ColumnType("string", (str,), _pack_strings, "", "string", STRING),
        ColumnType("binary", (bytes,), _pack_bytes, b"", "binary", BLOB),
    )
}


#: Names in `COLUMN_TYPES` by the type of a value in Python.
KIND_OF: dict[type, str] = {int: "bigint", float: "double", bool: "boolean", str: "string", bytes: "binary"}


def first_misfit(kind: ColumnType, values: Sequence[Any]) -> int | None:
    """Place of the first value of another type than the column; None where all fit. None as a value always does."""
    return next((place for place, value in enumerate(values) if value is not None and not _fits(kind, value)), None)


def converted(kind: ColumnType, values: list[Any], on_conflict: str) -> list[Any]:
    """The values with those of another type replaced, as `batches.typed_batches` describes it."""
    if on_conflict == "null":
        return [value if value is None or _fits(kind, value) else None for value in values]
    if on_conflict == "string" and kind.tag == STRING:
        return [value if value is None or isinstance(value, str) else text_of(value) for value in values]
    return values


def text_of(value: float | bool | bytes) -> str:
    """A value as text: true and false, numbers as Python writes them, binaries in base64."""
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return str(value).lower() if isinstance(value, bool) else str(value)


def build_array(kind: ColumnType, name: str, values: Sequence[Any]) -> pa.Array:
    """One Arrow array; None becomes null.

    Raises:
        CodecError: a value has another type; names the column and both types, never the value.
    """
    import pyarrow as pa

    misfit = first_misfit(kind, values)
    if misfit is not None:
        raise CodecError(f"column {name!r}: found {KIND_OF[type(values[misfit])]}, the schema says {kind.name}")
    validity, present = None, values
    if None in values:
        validity = pa.py_buffer(_pack_bits([value is not None for value in values])[0])
        present = [kind.empty if value is None else value for value in values]
    buffers = [validity, *(pa.py_buffer(data) for data in kind.pack(present))]
    return pa.Array.from_buffers(getattr(pa, kind.arrow)(), len(values), buffers)


def build_batch(columns: Sequence[tuple[str, ColumnType, Sequence[Any]]]) -> pa.RecordBatch:
    """One record batch of columns of equal length.

    Raises:
        CodecError: see `build_array`.
    """
    import pyarrow as pa

    arrays = [build_array(kind, name, values) for name, kind, values in columns]
    return pa.RecordBatch.from_arrays(arrays, names=[name for name, _, _ in columns])


def compiled_batch(columns: Sequence[tuple[str, str]], rows: bytes) -> pa.RecordBatch | None:
    """The wanted columns of a page's rows by the compiled twin, without an object per row or cell.

    None where only the reference can decide: rows that are not well-formed, a value of another type than its column, or
    nothing was compiled. A cell that no column wants is verified by its checksum, and not decoded.

    Args:
        columns: name and type of each, the type by its name in `COLUMN_TYPES`.
        rows: PlainBuffer with a header; empty bytes have no rows.
    """
    import pyarrow as pa

    if native is None:
        return None
    kinds = [COLUMN_TYPES[kind] for _, kind in columns]
    wanted = tuple((name.encode(), kind.tag) for (name, _), kind in zip(columns, kinds, strict=True))
    found = native.typed_columns(rows, wanted)
    if found is None:
        return None
    count, blocks = found
    arrays = []
    for kind, (present, values, data) in zip(kinds, blocks, strict=True):
        buffers = [present, values, data] if kind.tag in (STRING, BLOB) else [present, values]
        arrays.append(pa.Array.from_buffers(getattr(pa, kind.arrow)(), count, [pa.py_buffer(each) for each in buffers]))
    return pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in columns])


def _fits(kind: ColumnType, value: object) -> bool:
    # bool is a subclass of int in Python, but another type in a table.
    return isinstance(value, kind.accepts) and (not isinstance(value, bool) or bool in kind.accepts)
