"""How long after its write a change is in a mirror in Delta.

Each request writes its number into its rows, one request after the other. A version of the mirror whose largest number
is N has the requests up to N, because a table of one partition delivers its changes in their order. So a request's lag
is from before it was sent to the first version with its number.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.model import Action, TunnelType
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from tests.bench.bench_scene import KEYS, REQUEST_ROWS, BenchScene, key_of, row_of
from tests.bench.emulator_target import Goal
from tests.bench.figures import quantile
from tests.bench.spark.passes import PATIENCE
from tests.bench.spark.session import SparkHost
from tests.bench.start import say
from tests.bench.tables.speed import SPARK_BESIDES

TABLE, TUNNEL = "mirrored", "mirror"
#: Changes per second, and seconds of them; the first ones, in which the compiler works, do not count.
RATE, SECONDS, WARM_SECONDS = 2_000, 120, 40
TRIGGER = "5 seconds"


async def mirror_lag(scene: BenchScene, host: SparkHost, seconds: int = SECONDS) -> list[Goal]:
    """The 99th percentile of the lag at `RATE` changes per second.

    Args:
        seconds: of changes that count.
    """
    await scene.create_table(TABLE, channels=1)
    await scene.client.create_tunnel(TABLE, TUNNEL, TunnelType.Stream)
    options = {**host.account(scene.endpoint), "table": TABLE, "tunnel": TUNNEL}
    command = host.command("spark_mirror", "mirror", {"options": options, "trigger": TRIGGER})
    process = await asyncio.create_subprocess_exec(
        "taskset",
        "-c",
        str(host.core),
        *command,
        env=host.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            assert process.stdout is not None
            assert process.stdin is not None
            await _line(process.stdout, "following")
            sent = await _write(scene, WARM_SECONDS + seconds)
            process.stdin.write(f"{max(sent)}\n".encode())
            versions = (await _line(process.stdout, "versions"))["versions"]
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
    began = min(sent.values())
    counted = {number: at for number, at in sent.items() if at - began >= WARM_SECONDS}
    lags = lags_of(counted, versions)
    p50, p99 = (quantile(lags, share) for share in (0.5, 0.99))
    say(f"lag of a mirror: median {p50:.1f} s, p99 {p99:.1f} s, {len(versions)} versions")
    name = f"{SPARK_BESIDES}: lag of a mirror in Delta, p99 at {RATE:,} changes/s (trigger of {TRIGGER}, {seconds} s)"
    return [Goal(name, p99, 15.0, "s", at_least=False)]


def lags_of(sent: Mapping[int, float], versions: Sequence[Sequence[float]]) -> list[float]:
    """Seconds from before each request to the version that has it.

    Args:
        sent: Unix seconds at which a request was sent, by its number.
        versions: Unix seconds of a version, and the largest number in it, in their order.

    Raises:
        RuntimeError: no version has one of them.
    """
    numbers = [number for _, number in versions]
    if not numbers or numbers[-1] < max(sent):
        raise RuntimeError(f"the mirror has requests up to {numbers[-1:]}, {max(sent)} were sent")
    return [versions[bisect_left(numbers, number)][0] - at for number, at in sent.items()]


async def _write(scene: BenchScene, seconds: int) -> dict[int, float]:
    """Write at `RATE`; Unix seconds before each request, by its number."""
    sent: dict[int, float] = {}
    pause = REQUEST_ROWS / RATE
    began = time.monotonic()
    for number in range(1, seconds * RATE // REQUEST_ROWS + 1):
        rows = range((number - 1) * REQUEST_ROWS, number * REQUEST_ROWS)
        changes = [RowChange(Action.PUT, encode_row(key_of(each % KEYS), _cells(each, number))) for each in rows]
        await asyncio.sleep(max(0.0, began + (number - 1) * pause - time.monotonic()))
        sent[number] = time.time()
        await scene.write(TABLE, changes)
    took = time.monotonic() - began
    if took > 1.1 * seconds:
        raise RuntimeError(f"{seconds} s of writes took {took:.0f} s: the emulator does not take {RATE} changes/s")
    return sent


def _cells(row: int, number: int) -> tuple[Column, ...]:
    return (*row_of(row), Column("request", number))


async def _line(lines: asyncio.StreamReader, name: str) -> dict[str, list[list[float]]]:
    """The next JSON line with a name; others are passed over."""
    while line := await lines.readline():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict) and name in found:
            return found
    raise RuntimeError(f"the mirror ended before it printed {name!r}")
