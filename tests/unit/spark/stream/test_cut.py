"""A logged batch is found again in whatever pages its records come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.errors import CodecError, ReplayDiffers
from ots_tunnel.model import ChannelId, Token
from ots_tunnel.protocol.record import Record
from ots_tunnel.spark.stream.cut import Cut
from ots_tunnel.spark.stream.marks import is_behind, mark_of, rows_until
from ots_tunnel.spark.stream.offsets import ChannelOffset, Position, Span
from tests.support.records import numbered_record, record

C = ChannelId("c")


def stream(count: int) -> list[Record]:
    return [numbered_record(number % 3, number) for number in range(count)]


def base(*keys: int) -> list[Record]:
    return [record((("id", key),)) for key in keys]


def cut_of(log: list[Record], first: int, end: int) -> Cut:
    """The cut for the records from `first` to before `end`."""
    after = mark_of(log[first - 1]) if first else None
    return Cut(C, ChannelOffset(Position(Token("t"), mark_of(log[end - 1])), Span(Token("f"), after, end - first)))


def paged(cut: Cut, records: list[Record], sizes: list[int]) -> list[Record]:
    """What a cut takes from pages of these sizes, used again and again."""
    found: list[Record] = []
    at = turn = 0
    while not cut.is_done and at < len(records):
        size = sizes[turn % len(sizes)]
        found += cut.take(records[at : at + size])
        at, turn = at + size, turn + 1
    if not cut.is_done:
        cut.ended()
    return found


@given(st.data(), st.booleans())
def test_any_pages_give_the_same_records(data: st.DataObject, is_base: bool) -> None:
    log = base(*range(30)) if is_base else stream(30)
    first = data.draw(st.integers(0, 28))
    end = data.draw(st.integers(first + 1, 30))
    begin = data.draw(st.integers(0, first))  # the token of the span may lie before its first record
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))

    assert paged(cut_of(log, first, end), log[begin:], sizes) == log[first:end]


def test_records_that_are_gone_are_an_error() -> None:
    log = stream(10)

    with pytest.raises(ReplayDiffers, match=r"channel c: .*found 3 records, it had 5"):
        paged(cut_of(log, 2, 7), log[:5], [4])
    with pytest.raises(ReplayDiffers, match="record 5 of 5 has another place"):
        paged(cut_of(log, 2, 7), log[:3] + log[4:], [9])
    with pytest.raises(ReplayDiffers, match="record 4 of 5 has another place"):
        paged(cut_of(log, 2, 7), log[:3] + log[4:], [6])


def test_rows_of_base_data_may_come_and_go() -> None:
    log = base(*range(0, 20, 2))
    changed = base(0, 2, 3, 5, 6, 8, 11, 12)

    # behind key 2 up to key 10, which is deleted: what lies between now
    assert paged(cut_of(log, 2, 6), changed, [3]) == base(3, 5, 6, 8)
    assert paged(cut_of(log, 2, 6), changed[:4], [3]) == base(3, 5)


def test_keys_are_in_the_order_of_the_table() -> None:
    low, high = (mark_of(record((("id", key),))) for key in (-5, 200))

    assert is_behind(high, low)
    assert not is_behind(low, high)
    assert rows_until(base(-9, -5, 0), low) == 2


def test_no_channel_has_records_of_both_kinds() -> None:
    with pytest.raises(CodecError, match="in one channel"):
        rows_until(base(1), mark_of(numbered_record(1, 1)))
