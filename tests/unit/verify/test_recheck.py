"""The recheck of rows that differed: the ranges read again, and the rows that count."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.model import Marker
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.plainbuffer.spans import RowSpan, scan_row
from ots_tunnel.verify.comparison import Comparison, Difference
from ots_tunnel.verify.recheck import READ_ONE_BY_ONE, Recheck, Suspects, ranges_of, span
from ots_tunnel.verify.rows import SAME


def span_of(*columns: Column, number: int = 1) -> RowSpan:
    return scan_row(encode_row((("pk", number),), columns))


@given(
    st.tuples(st.integers(-(2**63), 2**63 - 2), st.integers(-(2**63), 2**63 - 1))
    | st.tuples(st.text(max_size=3), st.text(max_size=3))
    | st.tuples(st.binary(max_size=3), st.binary(max_size=3))
)
def test_a_span_of_one_key_holds_that_key_alone(keys: tuple[int, int] | tuple[str, str] | tuple[bytes, bytes]) -> None:
    one, other = keys
    part = span((("a", 1), ("b", one)), (("a", 1), ("b", one)))
    start, end = sortable(part.start[1][1]), sortable(part.end[1][1])

    assert start == sortable(one) < end
    assert (start <= sortable(other) < end) == (one == other)


def sortable(value: object) -> tuple[int, bytes]:
    if isinstance(value, int):
        return (value, b"")
    assert isinstance(value, str | bytes)
    return (0, value.encode() if isinstance(value, str) else value)


def test_a_span_ends_at_inf_max_after_the_largest_value() -> None:
    for value in (2**63 - 1, "x" * 1024, b"x" * 1024):
        assert span((("a", value),), (("a", value),)).end == (("a", Marker.INF_MAX),)


def test_few_suspects_are_read_one_by_one_and_many_in_one_scan() -> None:
    keys = [span_of(number=number).key for number in range(READ_ONE_BY_ONE + 1)]

    assert [part.start for part in ranges_of(keys[:-1])] == [(("pk", number),) for number in range(READ_ONE_BY_ONE)]
    (part,) = ranges_of(keys)
    assert (part.start, part.end) == ((("pk", 0),), (("pk", READ_ONE_BY_ONE + 1),))


def test_only_suspects_count_in_a_recheck() -> None:
    rows = [span_of(number=number) for number in range(4)]
    suspects, result = Suspects(), Comparison()
    for row in rows[:3]:
        suspects.differs(Difference.MISSING, row, None, SAME)
    assert len(suspects) == 3

    second = Recheck(suspects.take(), result)
    second.differs(Difference.EXTRA, None, rows[1], SAME)
    second.differs(Difference.MISSING, rows[3], None, SAME)
    second.end()

    assert (len(suspects), result.extra, result.missing, result.settled) == (0, 1, 0, 2)
