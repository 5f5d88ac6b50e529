"""A table with an increasing counter per key; checks of what workers deliver and which channels they hold."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ots_tunnel.model import ChannelId, Checkpoint, ClientId, TunnelType
from tests.oracle.consumers import Consumers, check_monotonic
from tests.support.emulator.emulator_scene import EmulatorScene
from tests.support.waiting import until

KEYS = [f"k{number:03}" for number in range(200)]
#: A hand-over takes some heartbeats of both sides; ours are 5 s apart.
HAND_OVER = 60


async def streaming(scene: EmulatorScene, partitions: int = 2) -> None:
    """A stream tunnel over an empty table."""
    await scene.create_table(partitions=partitions)
    await scene.put(KEYS)
    scene.written.clear()
    await scene.create_tunnel(TunnelType.Stream)


@asynccontextmanager
async def writing(scene: EmulatorScene) -> AsyncIterator[None]:
    """Inside the block a counter per key increases."""
    stop = asyncio.Event()

    async def write() -> None:
        number = max((number for _, number in scene.everything()), default=1)
        while not stop.is_set():
            number += 1
            await scene.put(KEYS, [number])
            await asyncio.sleep(0.1)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(write())
        yield
        stop.set()


async def delivered(consumers: Consumers, scene: EmulatorScene, seconds: float = 90) -> None:
    """Wait until every write has been delivered."""
    expected = set(scene.everything())
    await until(lambda: expected <= set(consumers.delivered.records()), seconds, "everything delivered")


async def everything_stored(scene: EmulatorScene) -> None:
    """Wait until the checkpoints of all channels include every write so far."""
    now_ns = time.time_ns()
    tunnel = scene.emulator.tunnel("demo", scene.tunnel_id)
    await until(lambda: tunnel.consume_point_ns() > now_ns, 90, "checkpoints stored")


async def stored_checkpoint(scene: EmulatorScene, channel_id: ChannelId) -> Checkpoint:
    return await scene.client.get_checkpoint(scene.tunnel_id, ClientId("another"), channel_id)


def shares(scene: EmulatorScene) -> list[int]:
    """Number of channels of each client, lowest first."""
    return sorted(Counter(scene.owners()).values())


def held_by(scene: EmulatorScene, tag: str) -> int:
    """Channels of clients whose id contains `tag`; the ids of the vendor's clients do not."""
    return sum(("ours" in owner) == (tag == "ours") for owner in scene.owners())


def check_once_in_order(consumers: Consumers, scene: EmulatorScene) -> None:
    """Without a fault: everything exactly once, and in order even across hand-overs and splits."""
    assert sorted(consumers.delivered.records()) == sorted(scene.everything())
    check_monotonic(consumers.delivered.arrivals)


def check_in_order_per_hold(consumers: Consumers) -> None:
    """Every owner receives each change of its time once, in order."""
    for session in consumers.delivered.sessions():
        check_monotonic(session)


def check_nothing_skipped(consumers: Consumers) -> None:
    """Per key the numbers 1, 2, 3 and so on arrive in order; only earlier ones may repeat."""
    newest: Counter[str] = Counter()
    for arrival in consumers.delivered.arrivals:
        assert arrival.number <= newest[arrival.key] + 1, f"{arrival} after {newest[arrival.key]}"
        newest[arrival.key] = max(arrival.number, newest[arrival.key])
