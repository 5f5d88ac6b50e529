"""One hot channel: every request of 100 rows takes 20 ms, all keys differ; wall time from the first row to the last.

Ours writes into a stand-in for the table service that answers after this time; in the vendor's workers, whose callback
is one thread per channel, the callback itself sleeps.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import median

import aiohttp
from aiohttp import web

from ots_tunnel.protocol import table_pb2
from tests.bench.bench_scene import KEYS
from tests.bench.consumers import Lab
from tests.bench.contenders import Contender, Job
from tests.bench.figures import Figure

NAME = "hot"
TABLE, COPY = "hot", "hot_copy"
ROWS = KEYS
REQUEST_ROWS, REQUEST_MS = 100, 20
GOAL = 5.0
CONTENDERS = (Contender.OURS, Contender.JAVA, Contender.GO)


@dataclass
class SlowTable:
    """Answers BatchWriteRow by itself and slowly; forwards all other calls to the emulator."""

    behind: str
    session: aiohttp.ClientSession
    rows: int = 0
    began: float = 0.0
    ended: float = 0.0

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        if request.path == "/BatchWriteRow":
            return await self._write(body)
        async with self.session.post(self.behind + request.path, data=body, headers=request.headers) as answer:
            return web.Response(status=answer.status, body=await answer.read())

    async def _write(self, body: bytes) -> web.Response:
        self.began = self.began or time.monotonic()
        rows = sum(len(table.rows) for table in table_pb2.BatchWriteRowRequest.FromString(body).tables)
        await asyncio.sleep(REQUEST_MS / 1000 * math.ceil(rows / REQUEST_ROWS))
        self.rows += rows
        self.ended = time.monotonic()
        return web.Response(body=stored(rows))


@lru_cache
def stored(rows: int) -> bytes:
    """The answer that all rows of a request to one table are stored."""
    response = table_pb2.BatchWriteRowResponse()
    table = response.tables.add(table_name=COPY)
    for _ in range(rows):
        table.rows.add(is_ok=True)
    return response.SerializeToString()


@asynccontextmanager
async def slow_table(behind: str) -> AsyncIterator[tuple[SlowTable, str]]:
    """Serve the stand-in; yield it and its endpoint."""
    async with aiohttp.ClientSession() as session:
        table = SlowTable(behind, session)
        application = web.Application(client_max_size=1 << 26)
        application.router.add_post("/{operation}", table.answer)
        runner = web.AppRunner(application)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            host, port = runner.addresses[0][:2]
            yield table, f"http://{host}:{port}"
        finally:
            await runner.cleanup()


@dataclass
class HotChannel:
    """The rounds."""

    lab: Lab
    lanes: int
    say: Callable[[str], None]
    _seconds: dict[Contender, list[float]] = field(default_factory=lambda: defaultdict(list))

    async def prepare(self) -> None:
        """Fill the table; create the destination, of which only the options are read."""
        await self.lab.scene.create_source(TABLE, [ROWS], channels=1)
        await self.lab.scene.create_copy(COPY)

    async def round(self, number: int) -> None:
        """Run every contender once."""
        for contender in CONTENDERS:
            seconds = await (self._ours() if contender is Contender.OURS else self._theirs(contender))
            self._seconds[contender].append(seconds)
            self.say(f"round {number}: hot channel, {contender}: {seconds:.2f} s")

    def figures(self) -> list[Figure]:
        """Wall time beside both peers."""
        settings = f"{ROWS:,} keys, {REQUEST_MS} ms per request of {REQUEST_ROWS} rows, ours with {self.lanes} lanes"
        times = {contender: median(seconds) for contender, seconds in self._seconds.items()}
        return [
            Figure(
                f"one hot channel, time, beside {contender} ({settings})",
                times[Contender.OURS],
                times[contender],
                "s",
                GOAL,
            )
            for contender in CONTENDERS[1:]
        ]

    async def _ours(self) -> float:
        async with slow_table(self.lab.scene.endpoint) as (table, endpoint):
            job = Job("copy", copy=COPY, copy_endpoint=endpoint, request_rows=REQUEST_ROWS, lanes=self.lanes)
            await self.lab.measure(Contender.OURS, TABLE, ROWS, job)
            if table.rows != ROWS:
                raise RuntimeError(f"hot channel: {table.rows:,} rows written, there were {ROWS:,}")
            return table.ended - table.began

    async def _theirs(self, contender: Contender) -> float:
        job = Job("count", delay_ms=REQUEST_MS, delay_rows=REQUEST_ROWS)
        report = await self.lab.measure(contender, TABLE, ROWS, job)
        return report.busy_seconds
