from __future__ import annotations

import asyncio

import pytest

from ots_tunnel.errors import ConnectionLost
from ots_tunnel.worker.pages.budget import LEAST_SHARE_BYTES, ByteBudget

ONE = LEAST_SHARE_BYTES


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_read_waits_until_the_largest_page_fits() -> None:
    budget = ByteBudget(2 * ONE)
    first = await budget.reserve()
    await budget.reserve()
    third = asyncio.create_task(budget.reserve())
    await settle()
    assert not third.done()

    share = first.keep(100)
    await settle()
    assert not third.done()  # what is left is less than the largest page
    share.release()
    await settle()

    assert third.done()
    assert budget.used_bytes == 2 * ONE


async def test_a_larger_page_raises_what_later_reads_reserve() -> None:
    budget = ByteBudget(10 * ONE)
    with await budget.reserve() as reservation:
        reservation.keep(3 * LEAST_SHARE_BYTES).release()

    await budget.reserve()

    assert budget.used_bytes == 3 * LEAST_SHARE_BYTES


async def test_one_page_beyond_the_whole_budget_is_still_read() -> None:
    budget = ByteBudget(ONE // 2)
    with await asyncio.wait_for(budget.reserve(), 10):
        second = asyncio.create_task(budget.reserve())
        await settle()
        assert not second.done()

    await asyncio.wait_for(second, 10)


async def test_waiting_reads_are_served_in_order_and_a_cancelled_one_is_skipped() -> None:
    budget = ByteBudget(ONE)
    order: list[int] = []

    async def reserve(number: int) -> None:
        with await budget.reserve():
            order.append(number)

    with await budget.reserve():
        tasks = [asyncio.create_task(reserve(number)) for number in range(3)]
        await settle()
        tasks[0].cancel()
        await settle()
    await asyncio.wait(tasks, timeout=30)

    assert order == [1, 2]
    assert budget.used_bytes == 0


async def test_releasing_twice_gives_back_once() -> None:
    budget = ByteBudget(ONE)
    with await budget.reserve() as reservation:
        share = reservation.keep(100)

    share.release()
    share.release()

    assert budget.used_bytes == 0


async def test_a_read_that_fails_gives_its_room_back() -> None:
    budget = ByteBudget(ONE)

    with pytest.raises(ConnectionLost), await budget.reserve():
        raise ConnectionLost("reset")

    assert budget.used_bytes == 0


async def test_a_share_outlives_its_read() -> None:
    budget = ByteBudget(ONE)

    with await budget.reserve() as reservation:
        share = reservation.keep(100)

    assert budget.used_bytes == share.held_bytes == 100


async def test_a_read_that_hangs_lends_its_room_and_waits_for_it_again() -> None:
    budget = ByteBudget(ONE)
    with await budget.reserve() as hanging:
        hanging.lend()
        with await budget.reserve():
            regaining = asyncio.create_task(hanging.regain())
            await settle()
            assert not regaining.done()
            assert budget.used_bytes == ONE
        await asyncio.wait_for(regaining, 10)
        assert budget.used_bytes == ONE

    assert budget.used_bytes == 0


async def test_a_read_that_does_not_hang_keeps_its_room() -> None:
    budget = ByteBudget(ONE)

    with await budget.reserve() as reservation:
        await asyncio.wait_for(reservation.regain(), 10)
        assert budget.used_bytes == ONE
