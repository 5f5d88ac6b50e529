"""What a batch of a stream costs where there is next to nothing to do: a single change."""

from __future__ import annotations

import asyncio
from statistics import median

from ots_tunnel.model import TunnelType
from tests.bench.bench_scene import BenchScene
from tests.bench.emulator_target import Goal
from tests.bench.spark.passes import passes_of
from tests.bench.spark.session import SparkHost
from tests.bench.start import say
from tests.bench.tables.speed import SPARK_BESIDES

TABLE, TUNNEL = "single", "single-changes"
#: Batches, of which the second half counts: the just-in-time compiler takes the first.
BATCHES = 200


async def small_batches(scene: BenchScene, host: SparkHost, batches: int = BATCHES) -> list[Goal]:
    """CPU seconds of a batch of one change, with the write of it."""
    await scene.create_table(TABLE, channels=1)
    await scene.client.create_tunnel(TABLE, TUNNEL, TunnelType.Stream)
    options = {**host.account(scene.endpoint), "table": TABLE, "tunnel": TUNNEL}
    command = host.command("spark_single_changes", "single", {"options": options, "changes": batches})
    passes = await asyncio.to_thread(passes_of, command, (host.core,), host.environment(), batches)
    cost = median(each.cpu.total for each in passes[batches // 2 :])
    say(f"a batch of one change: {cost:.2f} CPU s")
    name = f"{SPARK_BESIDES}: a batch of one change (the second half of {batches})"
    return [Goal(name, cost, 0.3, "CPU s", at_least=False)]
