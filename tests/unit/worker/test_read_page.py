from __future__ import annotations

import pytest

from ots_tunnel.model import FINISHED, Action, Token
from ots_tunnel.worker.pages.budget import ByteBudget
from ots_tunnel.worker.pages.read_page import ReadPage
from tests.support.records import page


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
