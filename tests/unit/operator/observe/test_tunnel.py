"""The checkpoints of a tunnel: several calls at once, and no look without end."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ots_tunnel.errors import ConnectError
from ots_tunnel.model import Checkpoint, TunnelDescription, TunnelInfo
from ots_tunnel_operator.instance import Instance
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.observe import tunnel as tunnel_module
from ots_tunnel_operator.observe.tunnel import TunnelObserver
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.turns.calls import CALLS, Calls
from ots_tunnel_operator.turns.queue import Patience
from ots_tunnel_operator.world.absence import Failure
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.worlds import FRESH, SETTINGS, channel, description, resource, world

CHANNELS = 20


class Service:
    """A tunnel with many channels, one of which may have no checkpoint to show; counts the calls for them."""

    def __init__(self, refused: str = "") -> None:
        self.refused = refused
        self.asked = self.at_once = self.most_at_once = 0

    async def list_tunnels(self, *_: Any) -> list[TunnelInfo]:
        return [description().tunnel]

    async def describe_tunnel(self, *_: Any) -> TunnelDescription:
        return description(*(channel(f"c{number}") for number in range(CHANNELS)))

    async def get_checkpoint(self, tunnel: str, client: str, name: str) -> Checkpoint:
        self.asked += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        if name == self.refused:
            raise ConnectError("no answer")
        return FRESH


async def looked(service: Service) -> World:
    """What one look tells of an object that has not recorded its tunnel yet."""
    cache = LoopCache()
    cache.source.instance = cast(Instance, SimpleNamespace(tunnels=service, calls=Calls()))
    return await TunnelObserver(SETTINGS).observe(world(resource()), cache, Patience())


async def test_checkpoints_are_read_several_at_once() -> None:
    service = Service()

    found = (await looked(service)).tunnel

    assert isinstance(found, Tunnel)
    assert found.checkpoints == {f"c{number}": FRESH for number in range(CHANNELS)}
    assert (service.asked, service.most_at_once) == (CHANNELS, CALLS)


async def test_a_part_of_the_checkpoints_is_not_taken_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tunnel_module, "CHECKPOINT_SECONDS", -1.0)
    service = Service()

    found = (await looked(service)).tunnel

    assert isinstance(found, Failure)
    assert found.problem.reason is Reason.INSTANCE_BUSY
    # every call was answered: it is no matter of the endpoint
    assert f"the instance answers slowly (only {CALLS} of {CHANNELS} checkpoints were read" in found.problem.message
    assert "endpoint" not in found.problem.message
    assert service.asked == CALLS


async def test_a_look_ends_with_the_first_group_that_has_a_failure() -> None:
    service = Service(refused="c1")

    found = (await looked(service)).tunnel

    assert isinstance(found, Failure)
    assert (service.asked, service.at_once) == (CALLS, 0)
