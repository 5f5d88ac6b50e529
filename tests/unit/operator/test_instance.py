"""Clients of instances: shared by endpoint and key pair, closed with their last user."""

from __future__ import annotations

import pytest

from ots_tunnel.model import Credentials
from ots_tunnel_operator.instance import ANSWER_BYTES, ROWS_BYTES, InstancePool, answer_limit
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.runtime import Runtime
from ots_tunnel_operator.settings import Settings
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
    assert {rotated.calls} == {instance.calls for instance in instances}
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


async def test_a_write_is_sent_only_while_the_lease_is_held() -> None:
    held = True
    runtime = Runtime(Settings(), OperatorMetrics(), may_write=lambda: held)
    cache = runtime.cache("uid", "default", "flights-copy")
    instance = await cache.source.connect(EMULATOR, "demo", KEYS)
    assert instance.before_write is not None

    instance.before_write()
    held = False
    with pytest.raises(KubeError, match="the lease is not held"):
        instance.before_write()

    await cache.close()


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("/tunnel/describe", ANSWER_BYTES),
        ("/DescribeTable", ANSWER_BYTES),
        ("/tunnel/readrecords", ROWS_BYTES),
        ("/GetRange", ROWS_BYTES),
    ],
)
def test_an_answer_of_an_endpoint_takes_little_of_the_memory_of_all_objects(path: str, most: int) -> None:
    assert answer_limit(path) == most
    assert most <= 8 << 20
