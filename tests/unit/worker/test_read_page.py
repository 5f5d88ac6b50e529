from __future__ import annotations

import pytest

from ots_tunnel.model import FINISHED, Action, Token
from ots_tunnel.worker.budget import ByteBudget
from ots_tunnel.worker.read_page import ReadPage, cut_page
from tests.support.records import page, page_of_times

END_US = 1_000_000_000


async def test_a_released_page_drops_its_records_and_keeps_its_figures() -> None:
    budget = ByteBudget(1 << 30)
    with await budget.reserve() as reservation:
        read = ReadPage(Token("t0"), FINISHED, page(3, FINISHED, True), reservation.keep(3000))

    read.release()
    read.release()

    assert (read.answer.records, budget.used_bytes, read.released.is_set()) == ([], 0, True)
    assert (read.rows, dict(read.actions), read.answer.size_bytes) == (3, {Action.PUT: 3}, 3000)


@pytest.mark.parametrize(
    ("rows", "may_more", "reached"), [(3, False, True), (0, True, False), (0, None, True), (3, None, False)]
)
async def test_the_logs_end_is_where_the_service_or_an_empty_page_says(
    rows: int, may_more: bool | None, reached: bool
) -> None:
    with await ByteBudget(1 << 30).reserve() as reservation:
        read = ReadPage(Token("t0"), Token("t1"), page(rows, "t1", may_more), reservation.keep(1))

    read.release()

    assert read.reached_log_end is reached


@pytest.mark.parametrize(
    ("times", "kept", "done", "whole"),
    [
        ((END_US - 2, END_US), 2, False, True),
        ((END_US - 1, END_US, END_US + 1, END_US + 2), 2, True, False),
        ((END_US + 1,), 0, True, False),
    ],
)
def test_records_after_the_end_time_are_cut_off(times: tuple[int, ...], kept: int, done: bool, whole: bool) -> None:
    cut = cut_page(page_of_times(*times, service_time=5000.0), END_US)

    assert (len(cut.page.records), cut.done, cut.whole) == (kept, done, whole)


@pytest.mark.parametrize(("service_time", "done"), [(999.0, False), (1000.0, False), (1001.0, True), (None, False)])
def test_an_empty_read_counts_by_the_services_clock(service_time: float | None, done: bool) -> None:
    cut = cut_page(page_of_times(service_time=service_time), END_US)

    assert (cut.done, cut.whole) == (done, True)
