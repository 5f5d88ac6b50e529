"""Clients of instances: shared by endpoint and key pair, closed with their last user; calls take turns."""

from __future__ import annotations

import asyncio

import pytest

from ots_tunnel.errors import ReadTimeout
from ots_tunnel.model import Credentials
from ots_tunnel_operator.instance import CALLS, InstancePool, within
from ots_tunnel_operator.loop_cache import LoopCache
from tests.support.operator.objects import EMULATOR

KEYS, OTHER_KEYS = Credentials("id", "secret"), Credentials("other", "secret")


async def test_objects_with_one_endpoint_and_key_pair_share_their_clients() -> None:
    pool = InstancePool()
    caches = [LoopCache.sharing(pool) for _ in range(300)]

    instances = {await cache.source.connect(EMULATOR, "demo", KEYS) for cache in caches}
    rotated = await caches[0].source.connect(EMULATOR, "demo", OTHER_KEYS)

    assert len(instances) == 1
    assert len(pool) == 2
    # the budget is that of the instance, whatever the keys
    assert {rotated.turns} == {instance.turns for instance in instances}
    for cache in caches:
        await cache.close()
    assert len(pool) == 0


async def test_a_client_stays_open_until_its_last_user_is_gone() -> None:
    pool = InstancePool()
    first, second = LoopCache.sharing(pool), LoopCache.sharing(pool)
    shared = await first.source.connect(EMULATOR, "demo", KEYS)
    assert await second.sink.connect(EMULATOR, "demo", KEYS) is shared

    await first.close()
    assert len(pool) == 1
    assert await second.sink.connect(EMULATOR, "demo", KEYS) is shared
    await second.close()

    assert len(pool) == 0
    assert await first.source.connect(EMULATOR, "demo", KEYS) is not shared
    await first.close()


@pytest.mark.looptime
async def test_calls_to_one_instance_take_turns_and_waiting_does_not_count() -> None:
    pool = InstancePool()
    turns = pool.acquire(EMULATOR, "demo", KEYS).turns
    running, most = 0, 0

    async def call() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.05)
        running -= 1

    # the last ones wait longer for their turn than one call may take
    await asyncio.gather(*(within(0.5, call(), turns) for _ in range(20 * CALLS)))

    assert most == CALLS


@pytest.mark.looptime
async def test_a_call_that_takes_too_long_is_a_timeout_of_the_call() -> None:
    with pytest.raises(ReadTimeout, match=r"no answer within 0\.01 s"):
        await within(0.01, asyncio.sleep(10))


async def test_a_timeout_of_the_call_itself_is_passed_on() -> None:
    async def fail() -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        await within(10, fail())
