from __future__ import annotations

import asyncio

import pytest

from ots_tunnel.errors import SinkRejected
from ots_tunnel.model import Token
from ots_tunnel.sinks import Confirmation
from ots_tunnel.sinks import confirmed as stored_at_once
from ots_tunnel.worker.pages.read_page import ReadPage
from ots_tunnel.worker.progress.unconfirmed import UnconfirmedPages
from tests.support.channel_scene import read_page
from tests.support.records import page


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
    await asyncio.sleep(0.01)

    assert confirmed == ["t0", "t1", "t2"]
    assert not running.done()
    running.cancel()


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
