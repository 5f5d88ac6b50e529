"""The vendor's unmodified workers on an emulator that goes on behind lost changes: they go on, too, without a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from ots_emulator.settings import AfterRetention
from ots_tunnel.model import TunnelType
from tests.oracle.consumers import Consumers, consumers_of
from tests.oracle.counters import HAND_OVER
from tests.support.emulator.emulator_scene import EmulatorScene
from tests.support.waiting import until

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(600)]  # the first test also builds them

VARIANTS = [AfterRetention.OLDEST, AfterRetention.LATEST, AfterRetention.LATEST_AT_OPEN]
#: Times of the Java worker; the Go worker has its own.
JAVA = {"heartbeat": "1s", "timeout": "6s", "idle": "200ms", "checkpoint": "200ms"}
HOUR = 3600


async def arrived(consumers: Consumers, key: str) -> None:
    await until(lambda: key in {key for key, _ in consumers.delivered.records()}, HAND_OVER, f"{key} is delivered")


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("vendor", ["go_worker", "java_worker"])
async def test_a_vendors_worker_goes_on_behind_lost_changes(
    scene: EmulatorScene, request: pytest.FixtureRequest, tmp_path: Path, vendor: str, variant: AfterRetention
) -> None:
    program: Path = request.getfixturevalue(vendor)
    flags = JAVA if vendor == "java_worker" else {}
    scene.emulator.change_settings(date_skew=None, after_retention=variant)
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    async with consumers_of(scene, program, tmp_path) as consumers:
        first = await consumers.theirs("first", **flags)
        await scene.put(["consumed"])
        await arrived(consumers, "consumed")
        await first.leave()
        await scene.put(["lost"])
        scene.emulator.advance_clock(167 * HOUR)
        await scene.put(["left"])
        scene.emulator.advance_clock(2 * HOUR)

        await consumers.theirs("second", **flags)
        await until(scene.owners, HAND_OVER, "the second has the channel")
        if variant is AfterRetention.OLDEST:
            await arrived(consumers, "left")
        else:

            async def is_seen() -> bool:
                """A change before the first read is passed over as well, so changes go on."""
                await scene.put(["seen"])
                return "seen" in dict(consumers.delivered.records())

            await until(is_seen, HAND_OVER, "a later change is delivered", pause=0.3)

        keys = {arrival.key for arrival in consumers.delivered.by("second")}
        assert "lost" not in keys
        assert ("left" in keys) == (variant is AfterRetention.OLDEST)
