"""From write to sink: how long a row that is written while the workers follow is on its way.

Rows come at a steady rate and carry the time at which they were sent; each worker says when it has them in hand.
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
from tests.bench.consumers import Lab
from tests.bench.figures import Figure, quantile, windows
from tests.bench.processors import SENT_COLUMN
from tests.bench.sides import Beat, Job, Side
from tests.bench.stand import CHANNELS, DEADLINE, KEYS, POLL, key_of, row_of

NAME = "latency"
TABLE = "followed"
RATE = 1000
#: Rows that are sent together.
ROWS_PER_WRITE = 10
WARM_UP, WINDOW = 10.0, 6.0
SIDES = (Side.OURS, Side.JAVA, Side.GO)
#: The least that each can be told to wait between pages; ours adapts by itself.
PAUSES = {Side.OURS: None, Side.JAVA: 0.2, Side.GO: 0.02}
SHARES = {"p50": (0.5, None), "p99": (0.99, 1.0)}
MICROSECONDS = 1_000_000


@dataclass
class Latency:
    """All sides one after the other, each over so many windows of time."""

    lab: Lab
    windows: int
    say: Callable[[str], None]
    _found: dict[Side, list[list[int]]] = field(default_factory=dict)

    async def run(self) -> None:
        """Measure."""
        await self.lab.stand.create_table(TABLE)
        for side in SIDES:
            self._found[side] = await self._side(side)
            values = ", ".join(f"{name} {self._median(side, share):.1f} ms" for name, (share, _) in SHARES.items())
            self.say(f"latency, {side}: {values}")

    def figures(self) -> list[Figure]:
        """The quantiles beside both peers, medians over the windows."""
        beat = Beat()
        settings = (
            f"{RATE:,} rows/s into {CHANNELS} channels, heartbeat {beat.heartbeat} s, checkpoint {beat.checkpoint} s, "
            f"pauses between pages at their least"
        )
        return [
            Figure(
                f"latency from write to sink, {name}, beside {side} ({settings})",
                self._median(Side.OURS, share),
                self._median(side, share),
                "ms",
                goal,
            )
            for side in SIDES[1:]
            for name, (share, goal) in SHARES.items()
        ]

    def _median(self, side: Side, share: float) -> float:
        return median(quantile(window, share) for window in self._found[side]) / 1000

    async def _side(self, side: Side) -> list[list[int]]:
        stand = self.lab.stand
        tunnel = await stand.create_tunnel(TABLE)
        job = Job("latency", replace(Beat(), longest_pause=PAUSES[side]))
        with self.lab.consumer(side, tunnel, job) as consumer:
            async with asyncio.timeout(DEADLINE):
                while not await stand.are_open(tunnel):
                    consumer.check()
                    await asyncio.sleep(POLL)
            begin = time.time_ns() // 1000 + int(WARM_UP * MICROSECONDS)
            written = await self._write(WARM_UP + self.windows * WINDOW)
            await asyncio.sleep(2)  # longer than any pause
            await consumer.end()
        report = consumer.report()
        if not report.rows == len(report.sent) == written:
            raise RuntimeError(f"latency, {side}: {report.rows:,} of {written:,} rows came")
        return windows(report.sent, report.delayed, begin, int(WINDOW * MICROSECONDS), self.windows)

    async def _write(self, seconds: float) -> int:
        """Rows at a steady rate; how many there were."""
        pause = ROWS_PER_WRITE / RATE
        began = time.monotonic()
        total = int(seconds / pause)
        for number in range(total):
            await asyncio.sleep(began + number * pause - time.monotonic())
            await self.lab.stand.write(TABLE, changes_now(number * ROWS_PER_WRITE))
        return total * ROWS_PER_WRITE


def changes_now(first: int) -> list[RowChange]:
    """Puts of the next rows, sent at this moment."""
    sent = Column(SENT_COLUMN, time.time_ns() // 1000)
    rows = (number % KEYS for number in range(first, first + ROWS_PER_WRITE))
    return [RowChange(Action.PUT, encode_row(key_of(row), (*row_of(row)[:-1], sent))) for row in rows]
