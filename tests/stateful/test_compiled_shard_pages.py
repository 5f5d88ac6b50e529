"""The compiled twin of a shard's page against its reference: the same page or the same error for any bytes."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ots_tunnel.errors import CodecError
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer import compiled
from ots_tunnel.protocol.shard_page import read_shard_page, read_shard_page_in_python
from tests.support.row_strategies import encode, int32, rows

native = compiled.native
pytestmark = pytest.mark.usefixtures("compiled_codec")

units = st.builds(pb.CapacityUnit, read=st.none() | int32, write=st.none() | int32)
pages = st.builds(
    pb.GetStreamRecordResponse,
    stream_records=st.lists(
        st.builds(
            pb.GetStreamRecordResponse.StreamRecord,
            action_type=st.sampled_from([1, 2, 3]),
            record=rows.map(encode) | st.binary(max_size=300),
            origin_record=st.none() | st.binary(max_size=20),
        ),
        max_size=5,
    ),
    next_shard_iterator=st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=300),
    consumed=st.none() | st.builds(pb.ConsumedCapacity, capacity_unit=units, capacity_data_size=st.none() | units),
    may_more_record=st.none() | st.booleans(),
)
#: Around a number of ten bytes, whose last one has more bits than fit.
LONG = b"\xff" * 9


@st.composite
def damaged_pages(draw: st.DrawFn) -> bytes:
    """A page with bytes changed, removed and inserted, and tags of the message more often than others."""
    wire = bytearray(draw(pages).SerializeToString())
    tags = st.sampled_from(b"\x00\x01\x08\x0a\x10\x12\x1a\x20\x7f\x80\xff").map(lambda tag: bytes((tag,)))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(wire)))
        wire[place : place + draw(st.integers(0, 2))] = draw(st.binary(max_size=2) | tags)
    return bytes(wire)


@given(pages)
def test_sound_pages_are_read_by_the_twin(page: pb.GetStreamRecordResponse) -> None:
    assert native.read_shard_page(page.SerializeToString()) is not None


@given(pages.map(lambda page: page.SerializeToString()) | damaged_pages() | st.binary(max_size=40))
@example(b"")
@example(b"\x1a\x00")  # a capacity without its unit
@example(b"\x1a\x02\x12\x00")
@example(b"\x1a\x04\x0a\x02\x08\x80")  # a number that does not end within its unit
@example(b"\x1a\x03\x0a\x01\x08\x01")
@example(b"\x1a\x02\x0a\x05\x08\x01\x10\x01\x20")  # a unit beyond its capacity
@example(b"\x12\x01\xff")
@example(b"\x12\x00\x12\x01j")  # the last one counts
@example(b"\x20" + LONG + b"\x01")
@example(b"\x20" + LONG + b"\x7f")
@example(b"\x20" + b"\x80" * 9 + b"\x02")
@example(b"\x20" + b"\x80" * 10 + b"\x01")
@example(b"\x0a\x0c\x08\x81" + b"\x80" * 8 + b"\x02\x12\x00")
@example(b"\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02")
@example(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
def test_a_page_equals_its_reference(wire: bytes) -> None:
    ours = native.read_shard_page(wire)
    if ours is None:  # the reference has to read it
        return
    reference = read_shard_page_in_python(wire)
    assert repr(ours) == repr(tuple(reference))
    assert [(each.body, each.origin) for each in ours[0]] == [(each.body, each.origin) for each in reference.records]


@given(damaged_pages())
def test_errors_are_those_of_the_reference(wire: bytes) -> None:
    outcomes = []
    for read in (read_shard_page, read_shard_page_in_python):
        try:
            outcomes.append(repr(read(wire)))
        except CodecError as error:
            outcomes.append(f"{type(error).__name__}: {error}")

    assert outcomes[0] == outcomes[1]
