"""Which pages the next batch has."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.model import FINISHED, ChannelId, SequenceInfo, Token, TunnelId
from ots_tunnel.spark.stream.batch_plan import WaitingPage, plan_batch
from ots_tunnel.spark.stream.offsets import ChannelOffset, Offset, Position, Span

A, B = ChannelId("a"), ChannelId("b")
START = Offset(TunnelId("tunnel"), "query")


def mark(number: int) -> SequenceInfo:
    return SequenceInfo(0, number, 0)


def page(number: int, size: int, rows: int = 1, following: str | None = None) -> WaitingPage:
    """A page whose last record has its number as mark."""
    last = mark(number) if rows else None
    return WaitingPage(number, Token(f"t{number}"), Token(following or f"t{number + 1}"), rows, size, last)


def test_pages_are_taken_by_turns_up_to_the_limit() -> None:
    plan = plan_batch(START, {A: [page(1, 4), page(2, 4), page(4, 4)], B: [page(3, 3)]}, 10)

    assert plan is not None
    assert plan.pages == {A: 1, B: 1}


def test_a_page_larger_than_the_limit_is_a_batch_alone() -> None:
    plan = plan_batch(START, {A: [page(2, 1)], B: [page(1, 99)]}, 10)

    assert plan is not None
    assert plan.pages == {B: 1}


def test_the_channel_whose_page_waits_longest_comes_first() -> None:
    plan = plan_batch(START, {A: [page(5, 6)], B: [page(4, 6)]}, 10)

    assert plan is not None
    assert plan.pages == {B: 1}


def test_without_a_page_there_is_no_batch() -> None:
    assert plan_batch(START, {A: []}, 10) is None


def test_the_offset_tells_where_the_batch_begins_and_ends() -> None:
    before = Offset(
        START.tunnel_id,
        START.query_id,
        {
            A: ChannelOffset(Position(Token("t1"), mark(0)), Span(Token("t0"), None, 9)),
            B: ChannelOffset(Position(FINISHED)),
        },
    )

    plan = plan_batch(before, {A: [page(1, 1, rows=3), page(2, 1, rows=2)]}, 10)

    assert plan is not None
    assert plan.offset.channels == {
        A: ChannelOffset(Position(Token("t3"), mark(2)), Span(Token("t1"), mark(0), 5)),
        B: ChannelOffset(Position(FINISHED)),
    }


def test_the_end_of_a_channel_is_a_position_without_a_span() -> None:
    before = Offset(START.tunnel_id, START.query_id, {A: ChannelOffset(Position(Token("t1"), mark(1)))})

    plan = plan_batch(before, {A: [page(2, 0, rows=0, following=FINISHED)]}, 10)

    assert plan is not None
    assert plan.offset.channels == {A: ChannelOffset(Position(FINISHED, mark(1)))}
    assert not plan.offset.spans


def test_of_an_end_that_the_service_has_stored_the_name_is_left() -> None:
    before = Offset(START.tunnel_id, START.query_id, {A: ChannelOffset(Position(FINISHED))})

    plan = plan_batch(before, {B: [page(1, 1)]}, 10, frozenset({A}))

    assert plan is not None
    assert set(plan.offset.channels) == {B}
    assert plan.offset.ended == {A}


def test_a_channel_that_others_had_read_is_known_by_its_batch() -> None:
    before = Offset(START.tunnel_id, START.query_id, {}, frozenset(), {A: 7, B: 9})

    plan = plan_batch(before, {B: [page(1, 1)]}, 10)

    assert plan is not None
    assert plan.offset.read_before == {A: 7}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20)), max_size=30), st.integers(1, 50))
def test_a_batch_is_never_larger_than_the_limit_but_for_its_first_page(
    sizes: list[tuple[str, int]], limit: int
) -> None:
    waiting: dict[ChannelId, list[WaitingPage]] = {}
    for number, (name, size) in enumerate(sizes, 1):
        waiting.setdefault(ChannelId(name), []).append(page(number, size))

    plan = plan_batch(START, waiting, limit)

    assert (plan is None) == (not sizes)
    if plan is not None:
        taken = [found for name, count in plan.pages.items() for found in waiting[name][:count]]
        assert sum(found.size_bytes for found in taken) <= max(limit, sizes[0][1])
        assert all(plan.pages.values())
        assert min(found.number for found in taken) == 1
