"""Our rows against the vendor's Python encoder and decoder.

Its defects are avoided: names are ASCII, blobs go in as bytearray, updates stay within the buffer that it
underestimates (docs/data-plane.md 3.4). It cannot read cells with an op, nor stream records.
"""

from __future__ import annotations

import struct
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ots_tunnel.model import CellOp, Marker, PrimaryKey, Value
from ots_tunnel.protocol.plainbuffer.codec import encode_primary_key, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its optional native module is built for another interpreter
    from tablestore.metadata import INF_MAX, INF_MIN
    from tablestore.plainbuffer.plain_buffer_builder import PlainBufferBuilder
    from tablestore.plainbuffer.plain_buffer_coded_stream import PlainBufferCodedInputStream
    from tablestore.plainbuffer.plain_buffer_stream import PlainBufferInputStream

pytestmark = pytest.mark.oracle
patient = settings(deadline=None)

int64 = st.integers(-(2**63), 2**63 - 1)
timestamps = st.integers(1, 2**53)
names = st.text("abcdefgh_0123456789", min_size=1, max_size=10)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
keys = st.lists(st.tuples(names, int64 | texts | st.binary(max_size=20)), min_size=1, max_size=4).map(tuple)
doubles = st.floats(allow_nan=False, allow_infinity=False)
values = int64 | doubles | st.booleans() | texts | st.binary(max_size=20)
puts = st.lists(st.builds(Column, names, values, st.none() | timestamps), max_size=8)


def theirs(value: Any) -> Any:
    """A value for the SDK, which treats bytes as text."""
    markers = {Marker.INF_MIN: INF_MIN, Marker.INF_MAX: INF_MAX}
    return markers[value] if isinstance(value, Marker) else bytearray(value) if isinstance(value, bytes) else value


def their_key(primary_key: PrimaryKey) -> list[tuple[str, Any]]:
    return [(name, theirs(value)) for name, value in primary_key]


def their_cell(column: Column) -> tuple[Any, ...]:
    cell = (column.name, theirs(column.value))
    return cell if column.timestamp_ms is None else (*cell, column.timestamp_ms)


@patient
@given(keys, puts)
def test_put_is_encoded_alike(primary_key: PrimaryKey, columns: list[Column]) -> None:
    expected = PlainBufferBuilder.serialize_for_put_row(their_key(primary_key), [their_cell(c) for c in columns])

    assert encode_row(primary_key, columns).hex() == bytes(expected).hex()


@patient
@given(keys)
def test_delete_is_encoded_alike(primary_key: PrimaryKey) -> None:
    expected = PlainBufferBuilder.serialize_for_delete_row(their_key(primary_key))

    assert encode_row(primary_key, delete=True).hex() == bytes(expected).hex()


@patient
@given(
    st.lists(
        st.tuples(names, int64 | texts | st.sampled_from([Marker.INF_MIN, Marker.INF_MAX])), min_size=1, max_size=4
    )
)
def test_range_bound_is_encoded_alike(bound: list[tuple[str, int | str | Marker]]) -> None:
    expected = PlainBufferBuilder.serialize_primary_key([(name, theirs(value)) for name, value in bound])

    assert encode_primary_key(tuple(bound)).hex() == bytes(expected).hex()


@pytest.mark.parametrize(
    ("change", "column"),
    [
        ({"PUT": [("c", "text", 1700000000000)]}, Column("c", "text", 1700000000000)),
        ({"DELETE": [("c", None, 1700000000000)]}, Column("c", None, 1700000000000, CellOp.DELETE_ONE_VERSION)),
        ({"DELETE_ALL": ["c"]}, Column("c", None, None, CellOp.DELETE_ALL_VERSIONS)),
        ({"INCREMENT": [("c", 7)]}, Column("c", 7, None, CellOp.INCREMENT)),
    ],
    ids=["put", "delete one version", "delete all versions", "increment"],
)
def test_update_is_encoded_alike(change: dict[str, list[Any]], column: Column) -> None:
    expected = PlainBufferBuilder.serialize_for_update_row([("pk", "v")], change)

    assert encode_row((("pk", "v"),), [column]).hex() == bytes(expected).hex()


@patient
@given(keys, puts)
def test_what_we_write_is_read_alike(primary_key: PrimaryKey, columns: list[Column]) -> None:
    stream = PlainBufferCodedInputStream(PlainBufferInputStream(encode_row(primary_key, columns)))

    key, attributes = stream.read_row()

    assert [(name, plain(value)) for name, value in key] == [(name, plain(value)) for name, value in primary_key]
    read = [(name, plain(value), timestamp) for name, value, timestamp in attributes]
    assert read == [(c.name, plain(c.value), c.timestamp_ms) for c in columns]


def plain(value: Value | bytearray | Marker | None) -> tuple[str, object]:
    """A value with its type: True is not 1, and -0.0 is not 0.0."""
    if isinstance(value, float):
        return "float", struct.pack("<d", value)
    return ("bytes", bytes(value)) if isinstance(value, bytearray) else (type(value).__name__, value)
