"""For how long a checkpoint without an answer may still be carried out: not once another one has its number."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import ConnectionLost
from ots_tunnel.fence import ChannelFence, Fence
from ots_tunnel.model import Checkpoint, ClientId, TunnelId
from ots_tunnel.protocol.service_codes import service_error
from ots_tunnel.worker.progress.cursor import ChannelCursor
from tests.support.channel_scene import CHANNEL, ScriptedService, at

#: D, seconds.
D = 10.0
#: That which `ScriptedService` has stored at first.
STORED = 7


class Scene:
    """The cursor of one channel, whose sink replaces what it has stored."""

    def __init__(self) -> None:
        clock = asyncio.get_running_loop().time
        fence = Fence(4 * D, D, clock, clock)
        fence.heartbeat_answered(clock())
        self.fence: ChannelFence = fence.channel(CHANNEL)
        self.service = ScriptedService({})
        ids = TunnelId("tunnel"), ClientId("client"), CHANNEL
        client = cast("TunnelClient", self.service)
        self.cursor = ChannelCursor(client, ids, timeout=D, guard=self.fence, doubts=True)

    async def put(self, number: int) -> None:
        await self.cursor.put(Checkpoint(at(f"t{number}"), number))

    async def lose(self, number: int) -> None:
        """Send a checkpoint whose answer is lost."""
        self.service.errors["put"] = [ConnectionLost("no answer")]
        with pytest.raises(ConnectionLost):
            await self.put(number)

    async def cancel(self, number: int) -> None:
        """Give up a checkpoint that is under way."""
        putting = asyncio.create_task(self.put(number))
        await asyncio.sleep(0)
        putting.cancel()
        await asyncio.wait([putting])


async def test_a_checkpoint_without_an_answer_is_in_doubt() -> None:
    scene = Scene()
    await scene.lose(STORED + 1)
    assert scene.fence.in_doubt == pytest.approx(D, abs=5)

    scene = Scene()
    await scene.cancel(STORED + 1)
    assert scene.fence.in_doubt == pytest.approx(D, abs=5)


async def test_another_one_of_its_number_ends_the_doubt() -> None:
    scene = Scene()
    await scene.cancel(STORED + 1)
    await scene.put(STORED + 1)

    assert scene.fence.in_doubt == 0


async def test_one_that_is_found_stored_is_over() -> None:
    scene = Scene()
    await scene.lose(STORED + 1)
    scene.service.stored = Checkpoint(at("t8"), STORED + 1)
    await scene.cursor.get()

    assert scene.fence.in_doubt == 0


async def test_one_that_is_not_found_may_still_come() -> None:
    scene = Scene()
    await scene.lose(STORED + 1)
    await scene.cursor.get()

    assert scene.fence.in_doubt > 0


async def test_a_refusal_for_another_reason_says_nothing_of_the_one_before() -> None:
    scene = Scene()
    await scene.lose(STORED + 1)
    scene.service.errors["put"] = [service_error("OTSNoPermissionAccess", "no", http_status=403)]
    with pytest.raises(Exception, match="no"):
        await scene.put(STORED + 1)

    assert scene.fence.in_doubt > 0
