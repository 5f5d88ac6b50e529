"""What the twin keeps from record to record, and its ways for usual values: the bytes are those of the reference."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action, CellOp, ChannelId, SequenceInfo
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.plainbuffer.compiled import native
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.json_bytes import heads_of, json_lines
from ots_tunnel.sinks.json_record import json_form, json_text

CHANNEL = ChannelId("channel-1")
#: Plain, of equal sizes, with characters that JSON escapes, empty, and around the longest that is kept.
NAMES = ("a", "b", "status", "region", 'quo"te', "ü", "tab\t", "back\\", "", *("n" * size for size in (63, 64, 65)))
#: Places of cells that are kept, and some more.
MOST_CELLS = 40
VERSIONS = st.sampled_from([None, 0, 1, -1, 1_700_000_000_000, 2**63 - 1, -(2**63)])
VALUES = st.one_of(st.integers(-9, 9), st.booleans(), st.sampled_from(["", "x", "delivered", "seven b"]), st.just(2.5))
PUTS = st.builds(Column, st.sampled_from(NAMES), VALUES, VERSIONS)
DELETIONS = st.builds(
    Column,
    st.sampled_from(NAMES),
    st.none(),
    VERSIONS,
    st.sampled_from([CellOp.DELETE_ALL_VERSIONS, CellOp.DELETE_ONE_VERSION]),
)
CELLS = st.lists(st.one_of(PUTS, PUTS, DELETIONS), max_size=MOST_CELLS)


def record_of(cells: list[Column]) -> Record:
    return Record(Action.UPDATE, encode_row((("id", 7),), cells, sequence=SequenceInfo(1, 2, 3)))


def reference(record: Record) -> bytes:
    """The line of a record.

    Raises:
        CodecError: the record is malformed.
    """
    return json_text(json_form(record, CHANNEL)).encode() + b"\n"


def check(records: list[Record]) -> None:
    """Compare with the reference, which may refuse a record."""
    try:
        expected = b"".join(map(reference, records))
    except CodecError:
        with pytest.raises(CodecError):
            list(json_lines(records, CHANNEL))
    else:
        assert b"".join(json_lines(records, CHANNEL)) == expected


@given(st.lists(CELLS, max_size=6), st.integers(1, 3))
def test_records_whose_cells_repeat(rows: list[list[Column]], times: int) -> None:
    check([record_of(cells) for cells in rows * times])


@given(CELLS, st.data())
def test_a_changed_byte_is_seen_behind_equal_records(cells: list[Column], data: st.DataObject) -> None:
    record = record_of(cells)
    body = bytearray(record.body)
    body[data.draw(st.integers(0, len(body) - 1))] ^= data.draw(st.integers(1, 255))

    check([record, record, Record(Action.UPDATE, bytes(body)), record])


@given(st.data())
def test_a_cell_with_another_version_or_name_than_the_one_before(data: st.DataObject) -> None:
    """Checksums are made of kept parts: each has to be that of its own cell."""
    cells = [Column(name, 1, version) for name in NAMES for version in (None, 5, 6)]
    check([record_of(data.draw(st.permutations(cells))) for _ in range(3)])


@pytest.mark.usefixtures("compiled_codec")
def test_a_record_that_does_not_repeat_the_one_before_is_not_left_to_the_reference() -> None:
    """A part that is wrongly kept has a wrong checksum, and the reference would hide it."""
    assert native is not None
    cells = [Column(name, 1, version) for name in NAMES for version in (None, 5, 6)]
    records = [record_of(cells[number:]) for number in range(len(cells))]

    lines, end = native.json_lines(records, 0, heads_of(CHANNEL), 1 << 30)

    assert (lines, end) == (b"".join(map(reference, records)), len(records))


NUMBERS = st.one_of(st.integers(-999, 999), st.integers(-(10**17), 10**17))
DECIMALS = st.builds(lambda number, places: number / 10**places, NUMBERS, st.integers(0, 20))


@given(st.lists(st.one_of(DECIMALS, st.floats(allow_nan=False, allow_infinity=False)), min_size=1))
def test_a_double_is_the_shortest_text_that_is_read_as_it(numbers: list[float]) -> None:
    check([record_of([Column("v", number)]) for number in numbers])


#: Texts with and without an exponent, with as many digits as are exact, and with one more.
BOUNDS = (
    *(1e-5, 5e-5, 1.5e-5, 9.9e-5, 0.0001, 0.00099, 0.001, 0.0010001, 0.000_001, 0.1 + 0.2, 1 / 3),
    *(1e14, 1e15, 1e16, 99_999_999.999_999, 999_999_999_999_999.9, 123_456_789_012_345.6, 4_503_599_627_370_495.5),
)


@pytest.mark.parametrize("number", BOUNDS)
def test_a_double_at_a_bound(number: float) -> None:
    # neighbours differ in the last of 17 digits
    check([record_of([Column("v", each)]) for each in (number, -number, number * (1 + 2**-52), number * (1 - 2**-53))])


@given(
    st.integers(500, 530),
    st.lists(st.sampled_from(['"', "\\", "\n", "\0", "ü", "€", "\U0001f600", "x", "eight by"]), max_size=12),
    st.integers(0, 530),
)
def test_a_text_longer_than_what_is_escaped_at_a_time(size: int, special: list[str], more: int) -> None:
    text = "x" * size + "".join(special) + "y" * more

    check([record_of([Column("v", text), Column(text, text.encode())])])


def test_every_byte_is_a_control_character() -> None:
    check([record_of([Column("v", "\0" * size)]) for size in (7, 8, 511, 512, 513, 5_000)])
