"""Two workers under everything at once: lost and late requests, refusals, vanishing channels, splits, gone clients."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from ots_emulator import Emulator, Settings
from ots_emulator.server.faults import FaultRule
from ots_tunnel.client.table import TableClient
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.config import DeliveryConfig, RetryConfig
from ots_tunnel.errors import ConnectionLost, TunnelError
from ots_tunnel.model import TunnelType
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.sinks.table.sink import TablestoreSink
from ots_tunnel.transport import BeforeAnswer
from ots_tunnel.transport.inprocess import InProcessTransport
from ots_tunnel.verify.compare import compare_tables
from ots_tunnel.worker.worker import TunnelWorker
from tests.support.emulator.emulator_scene import COPY, CREDENTIALS, FAST, TABLE, EmulatorScene
from tests.support.interceptor import Interceptor
from tests.support.waiting import until

KEYS = [f"k{number:03}" for number in range(60)]
DELIVERY = DeliveryConfig(batch_max_rows=7, retry=RetryConfig(backoff_seconds=0.01, backoff_max_seconds=0.05))


class LateTransport(InProcessTransport):
    """Breaks some connections at once, though the request still takes effect before its deadline is over."""

    def __init__(self, scene: EmulatorScene, chance: random.Random) -> None:
        super().__init__(scene.emulator.handle)
        self.chance = chance
        self.late: set[asyncio.Task[None]] = set()

    async def send(
        self,
        request: HttpRequest,
        *,
        timeout: float,
        before_send: Callable[[], None] | None = None,
        before_answer: BeforeAnswer | None = None,
    ) -> HttpResponse:
        if before_send is None or self.chance.random() > 0.03:
            return await super().send(request, timeout=timeout, before_send=before_send, before_answer=before_answer)
        before_send()
        self.late.add(asyncio.create_task(self._later(request, self.chance.uniform(0, 0.8) * timeout)))
        raise ConnectionLost("connection reset")

    async def _later(self, request: HttpRequest, seconds: float) -> None:
        await asyncio.sleep(seconds)
        with suppress(ConnectionLost):  # a fault may lose this answer too; no caller waits for it
            await self._handle(request)


class Chaos:
    """A scene with two workers and the faults injected into it."""

    def __init__(self, scene: EmulatorScene, seed: int) -> None:
        self.scene = scene
        self.chance = random.Random(seed)
        self.transport = LateTransport(scene, self.chance)
        self.interceptors = [Interceptor(scene) for _ in range(2)]
        self.workers = [self.worker(tag, each) for tag, each in zip("ab", self.interceptors, strict=True)]
        fault = scene.emulator.faults.add
        self.injections: list[Callable[[], object]] = [
            lambda: fault(FaultRule("Checkpoint", count=2, drop_response=True)),
            lambda: fault(FaultRule("BatchWriteRow", count=2, drop_response=True)),
            lambda: fault(FaultRule("BatchWriteRow", count=3, latency=self.chance.uniform(0, 0.4))),
            lambda: fault(FaultRule("BatchWriteRow", count=3, code="OTSServerBusy")),
            lambda: fault(FaultRule("Heartbeat", count=2, code="OTSTunnelServerUnavailable")),
            lambda: fault(FaultRule("ReadRecords", count=1, code="OTSInternalFailure")),
            lambda: fault(FaultRule("GetCheckpoint", count=1, latency=0.3)),
            lambda: scene.emulator.expire_clients("demo", scene.tunnel_id),
            lambda: scene.emulator.split("demo", TABLE),
            self.hide_channels,
            self.spoil_a_heartbeat,
        ]

    def worker(self, tag: str, interceptor: Interceptor) -> TunnelWorker:
        settings = replace(
            FAST,
            tunnel_id=self.scene.tunnel_id,
            client_tag=tag,
            timeout=1.5,
            max_parallel_channels=self.chance.choice([0, 1, 2]),
            memory_budget_bytes=self.chance.choice([1 << 28, 1 << 24]),
        )
        client = TunnelClient("http://emulator", "demo", CREDENTIALS, InProcessTransport(interceptor.handle))
        table = TableClient("http://emulator", "demo", CREDENTIALS, self.transport)
        self.transport.close = _stay_open  # shared by both sinks
        sink = TablestoreSink(table, COPY, delivery=DELIVERY, lanes=4, deadline=settings.write_deadline)
        return TunnelWorker(client, sink, settings)

    def hide_channels(self) -> None:
        self.chance.choice(self.interceptors).hidden = 1

    def spoil_a_heartbeat(self) -> None:
        self.chance.choice(self.interceptors).spoiled["heartbeat"] = 1

    async def write(self, seconds: float) -> None:
        """Change rows, and inject a fault now and then."""
        end, number = time.monotonic() + seconds, 1
        while time.monotonic() < end:
            number += 1
            await self.put(self.chance.sample(KEYS, 25), number)
            await asyncio.sleep(self.chance.uniform(0, 0.03))
            if self.chance.random() < 0.2:
                self.chance.choice(self.injections)()

    async def put(self, keys: list[str], number: int) -> None:
        while True:
            try:
                return await self.scene.put(keys, [number])
            except (TunnelError, AssertionError):
                continue  # the faults hit this write, too


async def _stay_open() -> None:
    return None


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 9))])
@pytest.mark.lasts(23)
async def test_the_copy_is_equal_and_nothing_is_held_in_the_end(seed: int) -> None:
    scene = EmulatorScene(Emulator(settings=Settings(page_rows=40, init_delay=0.01)))
    scene.patience = 100
    await scene.create_table(partitions=3)
    await scene.create_table(table=COPY)
    await scene.put(KEYS)
    await scene.create_tunnel(TunnelType.BaseAndStream)
    chaos = Chaos(scene, seed)

    async def is_copied() -> bool:
        return (await compare_tables(scene.table, TABLE, scene.table, COPY)).equal

    async with scene.running(*chaos.workers):
        await chaos.write(8)
        scene.emulator.faults.clear()
        await until(is_copied, 60, "both tables are equal", pause=0.2)
    await asyncio.gather(*chaos.transport.late)

    # A write that took effect after its deadline would show here.
    assert (await compare_tables(scene.table, TABLE, scene.table, COPY)).equal
    assert chaos.transport.late
    assert scene.owners() == []
    for worker in chaos.workers:
        assert worker.status.budget is not None
        assert worker.status.budget.used_bytes == 0
