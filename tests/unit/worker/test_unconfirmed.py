from __future__ import annotations

import asyncio
from collections import deque

import pytest

from ots_tunnel.errors import SinkRejected
from ots_tunnel.model import Action, ChannelId, ChannelType, SequenceInfo, Token
from ots_tunnel.sinks import Confirmation
from ots_tunnel.sinks import confirmed as stored_at_once
from ots_tunnel.worker.pages.read_page import ReadPage
from ots_tunnel.worker.progress.channel_progress import ChannelProgress
from ots_tunnel.worker.progress.unconfirmed import JOINED_FROM, UnconfirmedPages
from tests.support.channel_scene import read_page
from tests.support.records import page
from tests.support.waiting import until


def pages(count: int) -> list[ReadPage]:
    return [read_page(page(1, f"t{number}")) for number in range(count)]


def confirmation() -> Confirmation:
    return asyncio.get_running_loop().create_future()


@pytest.fixture
def confirmed() -> list[Token]:
    return []


@pytest.fixture
async def unconfirmed(confirmed: list[Token]) -> UnconfirmedPages:
    return UnconfirmedPages(lambda read: confirmed.append(read.following))


async def test_a_stored_page_is_confirmed_at_once(unconfirmed: UnconfirmedPages, confirmed: list[Token]) -> None:
    (only,) = pages(1)

    unconfirmed.add(only, stored_at_once())

    assert (confirmed, len(unconfirmed)) == (["t0"], 0)


async def test_pages_are_confirmed_in_order_however_their_confirmations_come(
    unconfirmed: UnconfirmedPages, confirmed: list[Token]
) -> None:
    first, second, third = pages(3)
    early, late = confirmation(), confirmation()
    running = asyncio.create_task(unconfirmed.run())
    unconfirmed.add(first, late)
    unconfirmed.add(second, stored_at_once())
    unconfirmed.add(third, early)

    early.set_result(None)
    await asyncio.sleep(0.01)
    assert confirmed == []
    late.set_result(None)
    await until(lambda: len(confirmed) == 3)

    assert confirmed == ["t0", "t1", "t2"]
    assert not running.done()
    running.cancel()


def totals(pages: list[ReadPage]) -> tuple[int, int, int]:
    """Pages, rows, and bytes of those with rows."""
    sizes = sum(page.answer.size_bytes for page in pages if page.rows)
    return sum(page.pages for page in pages), sum(page.rows for page in pages), sizes


@pytest.mark.parametrize(
    "one_moment",
    ["all are stored", "all are in one file", "those with records are in one file", "a few are under way"],
)
async def test_pages_that_are_confirmed_at_one_moment_take_no_memory_of_their_own(one_moment: str) -> None:
    """A dead letter that cannot be stored holds them up, or a file is filled with them for an hour."""
    found: list[ReadPage] = []
    unconfirmed = UnconfirmedPages(found.append)
    letter, file = confirmation(), confirmation()
    under_way: deque[Confirmation] = deque()
    unconfirmed.add(pages(1)[0], letter)
    expected = [pages(1)[0]]
    for number in range(2_000):
        each = read_page(page(number % 3, f"t{number}"))
        each.number = number + 2
        expected.append(read_page(page(number % 3, f"t{number}")))
        if one_moment == "all are stored":
            unconfirmed.add(each, stored_at_once())
        elif one_moment == "all are in one file":
            unconfirmed.add(each, file)
        elif one_moment == "those with records are in one file":  # the pipeline confirms the others itself
            unconfirmed.add(each, file if each.rows else stored_at_once())
        else:
            under_way.append(confirmation())
            unconfirmed.add(each, under_way[-1])
            if len(under_way) > 10:
                under_way.popleft().set_result(None)
        each.release()
        assert len(unconfirmed) <= 2 * JOINED_FROM
    assert found == []

    for left in (letter, file, *under_way):
        left.set_result(None)
    await unconfirmed.settle()

    assert len(found) < 2 * JOINED_FROM
    assert totals(found) == totals(expected)
    assert (found[-1].following, found[-1].number) == ("t1999", 2_001)


async def test_pages_are_joined_as_soon_again_after_many_were_confirmed() -> None:
    """What could not be joined once lets no later pages gather."""
    found: list[ReadPage] = []
    unconfirmed = UnconfirmedPages(found.append)
    apart = [confirmation() for _ in range(2_000)]
    for each, one in zip(pages(len(apart)), apart, strict=True):
        unconfirmed.add(each, one)
    file = confirmation()
    unconfirmed.add(pages(1)[0], file)
    for one in apart:
        one.set_result(None)
    for each in pages(4 * JOINED_FROM):
        unconfirmed.add(each, file)
        assert len(unconfirmed) <= 2 * JOINED_FROM
    assert len(found) == len(apart)


async def test_a_joined_page_tells_what_its_last_one_has_found() -> None:
    position = SequenceInfo(0, 900_000_000, 1)
    first = read_page(page(2, "t1", may_more=False, service_time=3.0), position)
    second = read_page(page(0, "t2", may_more=True, service_time=4.0))

    first.join(second)

    assert (first.following, first.answer.service_time, first.reached_log_end) == ("t2", 4.0, False)
    assert (first.position, first.rows, first.pages, first.actions) == (position, 2, 2, {Action.PUT: 2})
    assert first.asked_at == second.asked_at


async def test_a_joined_page_leaves_the_figures_that_its_pages_leave_one_by_one() -> None:
    """A burst begins behind the log's end: the file that ends with it was caught up before."""

    def read() -> list[ReadPage]:
        return [
            read_page(page(1, "t0", may_more=False, service_time=901.0), SequenceInfo(0, 900_000_000, 1)),
            read_page(page(0, "t1", may_more=False, service_time=950.0)),
            read_page(page(0, "t2", may_more=True, service_time=960.0)),
        ]

    alone, joined = (ChannelProgress(ChannelId("c"), ChannelType.STREAM) for _ in range(2))
    for each in read():
        alone.page_confirmed(each)
    first, *others = read()
    for each in others:
        first.join(each)
    joined.page_confirmed(first)

    assert (alone.caught_up_time, alone.consumed_up_to) == (950.0, 950.0)
    for figure in ("caught_up_time", "consumed_up_to", "rows", "size_bytes", "unconfirmed_pages", "last_look"):
        assert getattr(joined, figure) == getattr(alone, figure), figure


async def test_a_refused_page_ends_the_run_and_confirms_nothing_behind_it(
    unconfirmed: UnconfirmedPages, confirmed: list[Token]
) -> None:
    first, second = pages(2)
    refused = confirmation()
    unconfirmed.add(first, refused)
    unconfirmed.add(second, stored_at_once())
    running = asyncio.create_task(unconfirmed.run())

    refused.set_exception(SinkRejected("OTSInvalidPK", "no such key"))

    with pytest.raises(SinkRejected):
        await running
    assert confirmed == []


async def test_a_confirmation_that_the_sink_cancels_is_an_error(unconfirmed: UnconfirmedPages) -> None:
    (only,) = pages(1)
    cancelled = confirmation()
    unconfirmed.add(only, cancelled)
    running = asyncio.create_task(unconfirmed.run())

    cancelled.cancel()

    with pytest.raises(RuntimeError, match="cancelled the confirmation"):
        await running


async def test_a_sink_that_ends_the_channel_has_to_confirm_every_page(unconfirmed: UnconfirmedPages) -> None:
    (only,) = pages(1)
    unconfirmed.add(only, confirmation())

    with pytest.raises(RuntimeError, match="1 pages unconfirmed"):
        await unconfirmed.settle()


async def test_closing_cancels_the_confirmations_that_are_left(
    unconfirmed: UnconfirmedPages, confirmed: list[Token]
) -> None:
    (only,) = pages(1)
    left = confirmation()
    unconfirmed.add(only, left)

    unconfirmed.close()

    assert left.cancelled()
    assert (confirmed, len(unconfirmed)) == ([], 0)
