"""Between two passes: the pause that the first one asks for, less where an event comes, and never less than the gap."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import cast

import pytest

from ots_tunnel_operator.kube.cluster import Cluster
from ots_tunnel_operator.loop.pace import Outcome
from ots_tunnel_operator.loop.reconcile import Reconciler
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.observe.observer import Observer
from tests.support.kube.kube_memory import KubeMemory
from tests.support.operator.worlds import SETTINGS

pytestmark = pytest.mark.looptime(start=0)


class Passes(Reconciler):
    """Passes that take no time and ask for these pauses one after the other, then for none."""

    def __init__(self, *delays: float) -> None:
        settings = replace(SETTINGS, gap_seconds=1.0)
        super().__init__(
            cast(Cluster, KubeMemory()), cast(Observer, None), settings, OperatorMetrics(), lambda resource: None
        )
        self.delays = list(delays)
        self.times: list[float] = []

    async def step(self, namespace: str, name: str, cache: LoopCache) -> Outcome:
        self.times.append(asyncio.get_running_loop().time())
        return Outcome(self.delays.pop(0)) if self.delays else Outcome(0.0, gone=True)


async def times(*delays: float, events: tuple[float, ...] = ()) -> list[float]:
    """When the passes begin; `events` wake the loop."""
    passes, cache = Passes(*delays), LoopCache()
    running = asyncio.create_task(passes.run("shop", "orders", cache))
    for time in events:
        await asyncio.sleep(time - asyncio.get_running_loop().time())
        cache.wake.set()
    await running
    return passes.times


async def test_without_an_event_the_pause_is_what_the_pass_asks_for() -> None:
    assert await times(15.0, 0.25, 0.0) == [0, 15, 15.25, 15.25]


async def test_an_event_ends_the_pause() -> None:
    assert await times(15.0, 15.0, events=(4.0,)) == [0, 4, 19]


async def test_events_within_the_gap_are_seen_by_one_pass() -> None:
    assert await times(15.0, 15.0, events=(0.25, 0.5, 0.75)) == [0, 1, 16]


async def test_a_pause_that_is_shorter_than_the_gap_stays_so_short() -> None:
    assert await times(0.5, 15.0, events=(0.25,)) == [0, 0.5, 15.5]
