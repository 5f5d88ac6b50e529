"""Latency from write to sink, of rows that are written while the workers follow.

Rows come at a steady rate and carry the time at which they were sent; each worker notes the time of
their arrival.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from statistics import median

from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.model import Action
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from tests.bench.bench_scene import CHANNELS, DEADLINE, KEYS, POLL, key_of, row_of
from tests.bench.consumers import Lab
from tests.bench.contenders import Beat, Contender, Job
from tests.bench.figures import Figure, quantile, windows
from tests.bench.programs.processors import SENT_COLUMN

NAME = "latency"
TABLE = "followed"
RATE = 1000
#: Rows per request.
ROWS_PER_WRITE = 10
WARM_UP, WINDOW = 10.0, 6.0
CONTENDERS = (Contender.OURS, Contender.JAVA, Contender.GO)
#: Shortest pause between pages that the vendor's workers allow; ours adapts by itself.
PAUSES = {Contender.OURS: None, Contender.JAVA: 0.2, Contender.GO: 0.02}
SHARES = {"p50": (0.5, None), "p99": (0.99, 1.0)}
MICROSECONDS = 1_000_000


@dataclass
class Latency:
    """All contenders one after the other, each over a number of windows of time."""

    lab: Lab
    windows: int
    say: Callable[[str], None]
    _found: dict[Contender, list[list[int]]] = field(default_factory=dict)

    async def run(self) -> None:
        """Measure."""
        await self.lab.scene.create_table(TABLE)
        for contender in CONTENDERS:
            self._found[contender] = await self._windows_of(contender)
            values = ", ".join(f"{name} {self._median(contender, share):.1f} ms" for name, (share, _) in SHARES.items())
            self.say(f"latency, {contender}: {values}")

    def figures(self) -> list[Figure]:
        """The quantiles beside both peers, medians over the windows."""
        beat = Beat()
        settings = (
            f"{RATE:,} rows/s into {CHANNELS} channels, heartbeat {beat.heartbeat} s, checkpoint {beat.checkpoint} s, "
            f"pauses between pages at their least"
        )
        return [
            Figure(
                f"latency from write to sink, {name}, beside {contender} ({settings})",
                self._median(Contender.OURS, share),
                self._median(contender, share),
                "ms",
                goal,
            )
            for contender in CONTENDERS[1:]
            for name, (share, goal) in SHARES.items()
        ]

    def _median(self, contender: Contender, share: float) -> float:
        return median(quantile(window, share) for window in self._found[contender]) / 1000

    async def _windows_of(self, contender: Contender) -> list[list[int]]:
        scene = self.lab.scene
        tunnel = await scene.create_tunnel(TABLE)
        job = Job("latency", replace(Beat(), longest_pause=PAUSES[contender]))
        with self.lab.consumer(contender, tunnel, job) as consumer:
            async with asyncio.timeout(DEADLINE):
                while not await scene.are_open(tunnel):
                    consumer.check()
                    await asyncio.sleep(POLL)
            begin = time.time_ns() // 1000 + int(WARM_UP * MICROSECONDS)
            written = await self._write(WARM_UP + self.windows * WINDOW)
            await asyncio.sleep(2)  # longer than any pause
            await consumer.end()
        report = consumer.report()
        if not report.rows == len(report.sent) == written:
            raise RuntimeError(f"latency, {contender}: {report.rows:,} of {written:,} rows came")
        return windows(report.sent, report.delayed, begin, int(WINDOW * MICROSECONDS), self.windows)

    async def _write(self, seconds: float) -> int:
        """Write rows at a steady rate; return their number."""
        pause = ROWS_PER_WRITE / RATE
        began = time.monotonic()
        total = int(seconds / pause)
        for number in range(total):
            await asyncio.sleep(began + number * pause - time.monotonic())
            await self.lab.scene.write(TABLE, changes_now(number * ROWS_PER_WRITE))
        return total * ROWS_PER_WRITE


def changes_now(first: int) -> list[RowChange]:
    """Puts of the next rows, with the present time as the time of sending."""
    sent = Column(SENT_COLUMN, time.time_ns() // 1000)
    rows = (number % KEYS for number in range(first, first + ROWS_PER_WRITE))
    return [RowChange(Action.PUT, encode_row(key_of(row), (*row_of(row)[:-1], sent))) for row in rows]
