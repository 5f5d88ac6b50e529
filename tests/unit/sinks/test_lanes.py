"""Requests in flight: their number, and their end when the run ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from ots_tunnel.sinks.lanes import Request, fill_lanes

LANES = pytest.mark.parametrize("lanes", [1, 3])


class Requests:
    """Numbered requests that each take one round of the event loop; records their outcomes."""

    def __init__(self, count: int, failing: int | None = None) -> None:
        self._numbers: Iterator[int] = iter(range(count))
        self._failing = failing
        self.under_way = self.most = 0
        self.ended: list[int] = []

    def following(self) -> Request | None:
        number = next(self._numbers, None)
        return None if number is None else self._request(number)

    async def _request(self, number: int) -> None:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(0)
            if number == self._failing:
                raise ValueError(number)
            self.ended.append(number)
        finally:
            self.under_way -= 1


@LANES
async def test_as_many_as_there_are_lanes_are_under_way(lanes: int) -> None:
    requests = Requests(7)

    await fill_lanes(lanes, requests.following)

    assert (requests.most, requests.under_way, sorted(requests.ended)) == (lanes, 0, list(range(7)))


async def test_one_lane_keeps_the_order() -> None:
    requests = Requests(7)

    await fill_lanes(1, requests.following)

    assert requests.ended == list(range(7))


@LANES
async def test_no_request_begins_after_a_stop(lanes: int) -> None:
    requests = Requests(7)

    await fill_lanes(lanes, requests.following, lambda: bool(requests.ended))

    assert (requests.under_way, len(requests.ended)) == (0, lanes)


@LANES
async def test_a_failure_ends_it_with_nothing_under_way(lanes: int) -> None:
    requests = Requests(7, failing=1)

    with pytest.raises(ValueError, match="1"):
        await fill_lanes(lanes, requests.following)

    assert requests.under_way == 0
    assert 6 not in requests.ended


@LANES
async def test_requests_under_way_are_cancelled_with_the_run(lanes: int) -> None:
    requests = Requests(7)
    filling = asyncio.create_task(fill_lanes(lanes, requests.following))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    filling.cancel()

    with pytest.raises(asyncio.CancelledError):
        await filling

    assert requests.under_way == 0
    assert 6 not in requests.ended
