"""A call that ends in TimeoutError by itself is a failed call, and not the order to stop."""

from __future__ import annotations

import pytest

from ots_tunnel.model import TunnelType
from ots_tunnel.worker.worker import TunnelWorker
from tests.support.emulator.virtual_scene import VirtualScene
from tests.support.sinks.sinks import RecordingSink
from tests.support.waiting import until

pytestmark = pytest.mark.looptime


async def made() -> VirtualScene:
    scene = VirtualScene()
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    await scene.put(["k"])
    return scene


async def test_a_sink_that_opens_too_slowly_is_opened_again_before_it_is_used() -> None:
    scene = await made()

    class Slow(RecordingSink):
        tries = 0
        opened = False
        #: Whether it was open when a channel began; a failure in here would only end the channel.
        begun: list[bool]

        async def open(self) -> None:
            self.tries += 1
            if self.tries < 3:
                raise TimeoutError("the destination did not answer")
            self.opened = True

        async def begin(self, *channel: object) -> None:
            self.begun.append(self.opened)

    sink = Slow()
    sink.begun = []
    worker = scene.worker(sink)
    async with scene.running(worker):
        await until(lambda: sink.written == [("k", 1)])
    assert sink.tries == 3
    assert sink.begun
    assert all(sink.begun)


async def test_a_preflight_that_times_out_ends_the_worker_before_anything_is_read() -> None:
    scene = await made()
    sink = RecordingSink()

    async def preflight() -> None:
        raise TimeoutError("no answer")

    worker = TunnelWorker(scene.calling_client(), sink, scene.settings(), preflight=preflight)

    with pytest.raises(TimeoutError, match="no answer"):
        await worker.run()
    assert scene.connects == []


@pytest.mark.parametrize("where", ["begin", "write"])
async def test_a_channel_whose_sink_times_out_is_opened_again(where: str) -> None:
    scene = await made()

    class Slow(RecordingSink):
        tries = 0

        async def begin(self, *channel: object) -> None:
            self.fail("begin")

        async def write(self, *batch: object) -> None:
            self.fail("write")
            await super().write(*batch)

        def fail(self, step: str) -> None:
            if step == where:
                self.tries += 1
                if self.tries < 3:
                    raise TimeoutError(step)

    sink = Slow()
    async with scene.running(scene.worker(sink)):
        await until(lambda: sink.written == [("k", 1)])
