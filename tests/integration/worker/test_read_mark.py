"""Workers of an object come and go over a table that is idle, where the service does not advance its token.

What the operator's pure passes decide (status, worker's document) is all that one worker leaves to the next. The
service's time is the loop's, and the stream is kept for an hour.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from ots_emulator.settings import AfterRetention
from ots_tunnel.config import WorkerConfig
from ots_tunnel.errors import ConnectError, PossibleGap
from ots_tunnel.model import TunnelType
from ots_tunnel.worker.gaps.read_mark import RenewedMark
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.worker import TunnelWorker
from ots_tunnel_operator.assess.gap import Gap
from ots_tunnel_operator.assess.gaps import find_gaps
from ots_tunnel_operator.assess.read_mark import read_mark
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.observe.scrape import parse_report
from ots_tunnel_operator.plan.actions import ApplyObject
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.emulator.emulator_scene import TABLE
from tests.support.emulator.virtual_scene import VirtualScene
from tests.support.operator.worlds import SCHEMA, planned, recorded, reported, resource, world
from tests.support.sinks.sinks import RecordingSink
from tests.support.waiting import until

pytestmark = pytest.mark.looptime

HOUR = 3600.0
#: Heartbeats and checkpoints once a minute, so that hours pass with few calls.
CALM = {"interval": 60, "timeout": 300, "checkpoint_interval": 60}


@dataclass
class Fleet:
    """An object with one worker at a time, and what the operator keeps of it."""

    scene: VirtualScene
    sink: RecordingSink = field(default_factory=RecordingSink)
    status: dict[str, Any] = field(default_factory=dict)
    documents: list[str] = field(default_factory=list)
    """Every document of the worker that differed from the one before."""
    templates: list[Manifest] = field(default_factory=list)
    """Every pod template that differed from the one before."""
    worker: TunnelWorker | None = None
    mounted: Path | None = None

    @classmethod
    async def made(cls) -> Fleet:
        scene = VirtualScene(idle_advance=False, after_retention=AfterRetention.LATEST, tunnel_retention_hours=1)
        await scene.create_table()
        await scene.create_tunnel(TunnelType.Stream)
        fleet = cls(scene)
        fleet.status = recorded(tunnel={"id": scene.tunnel_id})
        await fleet.look()
        return fleet

    async def world(self) -> World:
        """What the operator observes now."""
        pods: tuple[Pod, ...] = ()
        if self.worker is not None:
            report = parse_report(self.worker.status.document())
            pods = (Pod("pod-1", "Running", ready=True, deleting=False, ip="", restarts=0, message="", report=report),)
        found = world(
            resource(self.status, source__table=TABLE, source__tunnel={"name": "t", "type": "Stream"}),
            source=Table(SCHEMA, stream_retention_seconds=int(HOUR)),
            tunnel=Tunnel(await self.scene.describe()),
            pods=pods,
        )
        return replace(found, now=self.scene.emulator.clock.now())

    async def look(self) -> World:
        """One pass: its status is stored, and its ConfigMap and Deployment are applied."""
        seen = await self.world()
        for action in planned(seen).actions:
            if isinstance(action, ApplyObject) and action.manifest["kind"] == "ConfigMap":
                _append(self.documents, action.manifest["data"]["worker.yaml"])
            elif isinstance(action, ApplyObject) and action.manifest["kind"] == "Deployment":
                _append(self.templates, action.manifest["spec"]["template"])
        self.status = reported(seen)
        if self.mounted is not None:
            self.mounted.write_text(self.documents[-1])
        return seen

    async def idle(self, hours: float) -> None:
        """Let time pass with a look every three minutes."""
        for _ in range(int(hours * 60)):
            await asyncio.sleep(60)
            await self.look()

    def next_worker(self, mounted: Path | None = None) -> TunnelWorker:
        """A worker with the document as it is now; its times are the scene's.

        Args:
            mounted: file with its document, which every look renews.
        """
        config: WorkerConfig = WorkerConfig.model_validate(yaml.safe_load(self.documents[-1]))
        settings, renewed = WorkerSettings.of(config), None
        if mounted is not None:
            self.mounted = mounted
            mounted.write_text(self.documents[-1])
            renewed = RenewedMark(mounted, config)
        return self.scene.worker(self.sink, read_mark=settings.read_mark, renewed_mark=renewed, **CALM)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[TunnelWorker]:
        """A worker from its start to its end."""
        self.worker = self.next_worker()
        try:
            async with self.scene.running(self.worker):
                yield self.worker
        finally:
            self.worker = None

    async def writes(self, key: str) -> None:
        await self.scene.put([key])
        await until(lambda: (key, 1) in self.sink.written)


def gaps_of(of: World) -> tuple[Gap, ...]:
    return find_gaps(of, read_mark(of))


def _append(found: list[Any], item: Any) -> None:
    if not found or found[-1] != item:
        found.append(item)


async def test_an_idle_table_raises_no_alarm_when_its_worker_restarts() -> None:
    fleet = await Fleet.made()
    async with fleet.running():
        await fleet.writes("k1")
        await fleet.idle(1.3)

    assert gaps_of(await fleet.look()) == ()
    async with fleet.running() as following:
        await fleet.writes("k2")
        assert gaps_of(await fleet.look()) == ()
    assert following.status.possible_gaps == {}
    assert len(fleet.templates) == 1, "a mark restarts no worker"


async def test_a_mark_costs_a_write_in_a_tenth_of_the_retention() -> None:
    fleet = await Fleet.made()
    async with fleet.running():
        await fleet.writes("k1")
        await fleet.idle(1.2)

    assert 6 <= len(fleet.documents) - 1 <= 12


@pytest.mark.lasts(8)
async def test_children_of_a_split_are_covered() -> None:
    """They were never consumed, and their parent's consume point is as old as its last change."""
    fleet = await Fleet.made()
    async with fleet.running():
        await fleet.writes("k0")
        await fleet.writes("k1")
        await fleet.idle(1.5)
        fleet.scene.emulator.split("demo", TABLE)
        await fleet.idle(1.5)

    assert gaps_of(await fleet.look()) == ()
    async with fleet.running() as following:
        await fleet.writes("k2")
    assert following.status.possible_gaps == {}


async def test_changes_that_nobody_read_in_time_are_told_by_both() -> None:
    fleet = await Fleet.made()
    async with fleet.running():
        await fleet.writes("k1")
        await fleet.idle(1.3)
    await fleet.scene.put(["lost"])
    left = fleet.scene.emulator.clock.now()
    await fleet.idle(1.2)
    await fleet.scene.put(["k3"])

    (gap,) = gaps_of(await fleet.look())
    assert left - 0.15 * HOUR <= gap.start <= left
    worker = fleet.next_worker()
    with pytest.raises(PossibleGap) as caught:
        await worker.run()
    assert left - 0.15 * HOUR <= caught.value.start <= left
    assert ("k3", 1) not in fleet.sink.written


async def test_the_mark_of_another_tunnel_is_void() -> None:
    fleet = await Fleet.made()
    async with fleet.running():
        await fleet.writes("k1")
        await fleet.idle(1.3)
    fleet.status["readUntil"] = fleet.status["readUntil"] | {"tunnelId": "another"}

    assert len(gaps_of(await fleet.look())) == 1
    assert "readUntil" not in fleet.documents[-1]
    with pytest.raises(PossibleGap):
        await fleet.next_worker().run()


async def written_or_over(fleet: Fleet, key: str, task: asyncio.Task[None]) -> None:
    """Wait until the first number of a key is written, or a worker has ended."""
    async with asyncio.timeout(900):
        await until(lambda: task.done() or (key, 1) in fleet.sink.written)


async def test_a_sibling_that_has_stood_by_takes_an_idle_channel_over_without_an_alarm(tmp_path: Path) -> None:
    fleet = await Fleet.made()
    async with fleet.running():
        await fleet.writes("k1")
        standby = fleet.next_worker(tmp_path / "worker.yaml")  # long before there is a mark
        task = asyncio.create_task(standby.run())
        await fleet.idle(1.5)

    await fleet.scene.put(["k2"])
    await written_or_over(fleet, "k2", task)

    assert ("k2", 1) in fleet.sink.written
    assert standby.status.possible_gaps == {}
    standby.close()
    await task


@pytest.mark.parametrize("silences", [1, 3])
async def test_a_write_that_fails_after_a_silence_is_no_gap(silences: int) -> None:
    # the channel is opened again at the token where it stood, which says nothing of the reads since
    fleet = await Fleet.made()
    worker = fleet.next_worker()
    task = asyncio.create_task(worker.run())
    await fleet.writes("k")
    for number in range(silences):
        await asyncio.sleep(1.5 * HOUR)
        fleet.sink.error = ConnectError("once")
        fleet.sink.arrived.clear()
        await fleet.scene.put([f"k{number}"])
        await fleet.sink.arrived.wait()
        await asyncio.sleep(1)
        fleet.sink.error = None
        await written_or_over(fleet, f"k{number}", task)

    assert len(fleet.sink.written) == 1 + silences
    assert worker.status.possible_gaps == {}
    worker.close()
    await task
