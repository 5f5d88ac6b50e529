"""Hypothesis strategies for rows, their parts, and damaged encodings of them."""

from __future__ import annotations

from hypothesis import strategies as st

from ots_tunnel.model import CellOp, Marker, SequenceInfo
from ots_tunnel.protocol.plainbuffer.codec import DecodedRow, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column

int64 = st.integers(-(2**63), 2**63 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
# Bytes that are tags could be mistaken for structure.
blobs = st.lists(st.sampled_from(range(0x18)) | st.integers(0, 255), max_size=40).map(bytes)
key_values = int64 | texts | blobs | st.sampled_from(Marker)
values = int64 | st.floats(allow_nan=False) | st.booleans() | texts | blobs
columns = st.builds(Column, names, values, st.none() | int64, st.just(CellOp.PUT)) | st.builds(
    Column, names, st.none() | values, st.none() | int64, st.sampled_from(CellOp)
)
sequences = st.builds(SequenceInfo, int32, int64, int32)
rows = st.builds(
    DecodedRow,
    st.lists(st.tuples(names, key_values), max_size=4).map(tuple),
    st.lists(columns, max_size=6).map(tuple),
    st.booleans(),
    st.none() | sequences,
)


def encode(row: DecodedRow, *, sequence: bool = True, header: bool = True) -> bytes:
    """The row's PlainBuffer."""
    return encode_row(
        row.primary_key,
        row.columns,
        delete=row.delete_marker,
        sequence=row.sequence if sequence else None,
        header=header,
    )


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A row with bytes changed, removed, inserted, or the rest cut off."""
    wire = bytearray(encode(draw(rows)))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(wire)))
        match draw(st.sampled_from(["change", "remove", "insert", "cut"])):
            case "change":
                wire[at : at + 1] = bytes((draw(st.integers(0, 255)),))
            case "remove":
                del wire[at : at + draw(st.integers(1, 8))]
            case "insert":
                wire[at:at] = draw(blobs)
            case "cut":
                del wire[at:]
    return bytes(wire)
