"""Sends mutated requests to one emulator and checks every answer; the same seed sends the same requests.

    python -m tests.fuzz.campaign SEED NUMBER

shows the request of that number and its answer again.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import mmap
import random
import sys
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from ots_emulator.server.application import readable, route
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.plainbuffer.codec import decode_rows
from tests.fuzz.answers import WrongAnswer, check_answer
from tests.fuzz.mutate import Case, Mutator
from tests.fuzz.rows import INT_MAX, WireCell, WireRow
from tests.fuzz.world import World
from tests.support.emulator.emulator_driver import Driver

#: Requests before the world is rebuilt: they delete tables and end channels.
ROUND = 250
#: Requests between two reads of all remaining content.
SURVEY = 50
#: Most seconds for an answer, generous enough for a busy machine.
PATIENCE = 5.0
_START = 1_700_000_000.0

Send = Callable[[HttpRequest], Awaitable[HttpResponse]]


class Complaints(logging.Handler):
    """Collects tracebacks and errors that reach the log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info or record.levelno >= logging.ERROR:
            self.texts.append(logging.Formatter().format(record))

    @contextmanager
    def listening(self) -> Iterator[Complaints]:
        logging.getLogger().addHandler(self)
        try:
            yield self
        finally:
            logging.getLogger().removeHandler(self)


class Memory(NamedTuple):
    """Memory of the process: small blocks of the interpreter, and resident bytes (0 if unknown)."""

    blocks: int
    resident: int

    @classmethod
    def now(cls) -> Memory:
        gc.collect()
        statm = Path("/proc/self/statm")
        pages = int(statm.read_text().split()[1]) if statm.exists() else 0
        return cls(sys.getallocatedblocks(), pages * mmap.PAGESIZE)


@dataclass
class Tally:
    """Counts of a campaign."""

    seed: int
    sent: int = 0
    succeeded: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    memory: list[Memory] = field(default_factory=list)
    """After each round."""


class Campaign:
    """One run; `send` delivers requests to the emulator of `driver`, by default without HTTP."""

    def __init__(self, seed: int, driver: Driver | None = None, send: Send | None = None) -> None:
        self._odd_paths = send is None
        self.driver = driver or Driver()
        self._send = send or self.driver.emulator.handle
        self._complaints = Complaints()
        self.tally = Tally(seed)

    async def run(self, first: int, count: int) -> Tally:
        """Send requests `first` to `first + count`.

        Raises:
            AssertionError: an answer was unfit, late, or came with a traceback; names seed, number and request.
        """
        with self._complaints.listening():
            for start in range(first // ROUND * ROUND, first + count, ROUND):
                await self._round(start, min(start + ROUND, first + count))
        return self.tally

    async def _round(self, start: int, end: int) -> None:
        rng = random.Random(self.tally.seed * 1_000_003 + start)
        # Ids of tunnels and clients are part of requests, so they must be reproducible, too.
        with mock.patch.object(uuid, "uuid4", side_effect=lambda: uuid.UUID(int=rng.getrandbits(128), version=4)):
            clock = self.driver.clock
            clock.advance(_START + start * 100 - clock.now())
            world = World(self.driver)
            await world.build()
            mutator = Mutator(rng, world, odd_paths=self._odd_paths)
            for number in range(start, end):
                clock.advance(rng.choice((0.0, 0.01, 0.2)))
                await self._one(number, mutator.case())
                if number % SURVEY == SURVEY - 1:
                    await self._look_at_everything(number)
        self.tally.memory.append(Memory.now())

    async def _one(self, number: int, case: Case) -> None:
        begin = time.monotonic()
        try:
            response = await self._send(case.request)
            fit = check_answer(readable(route(case.request.path)), case.request.headers, response)
            if self._complaints.texts:
                raise WrongAnswer("the log says: " + "\n".join(self._complaints.texts))
            took = time.monotonic() - begin
            if took > PATIENCE:
                raise WrongAnswer(f"the answer took {took:.1f} s")
        except BaseException as error:
            error.add_note("\n".join([*self._complaints.texts, describe(self.tally.seed, number, case)]))
            self._complaints.texts.clear()
            raise
        self.tally.sent += 1
        self.tally.slowest = max(self.tally.slowest, took)
        (self.tally.succeeded if fit else self.tally.refused)[case.path] += 1

    async def _look_at_everything(self, number: int) -> None:
        """Read all content that remains after the requests."""
        try:
            await survey(self.driver)
            if self._complaints.texts:
                raise WrongAnswer("the log says: " + "\n".join(self._complaints.texts))
        except BaseException as error:
            self._complaints.texts.clear()
            error.add_note(f"seed {self.tally.seed}, after the requests up to {number}")
            raise


async def survey(driver: Driver) -> None:
    """Read every table, tunnel and channel, strictly."""
    call = driver.call
    for name in (await call("ListTable")).table_names:
        await _read_table(driver, name)
    for found in (await call("ListTunnel")).tunnels:
        described = await call("DescribeTunnel", table_name="", tunnel_name="", tunnel_id=found.tunnel_id)
        await call("GetRpo", tunnel_id=found.tunnel_id)
        if not found.expired:
            for channel in described.channels:
                await driver.drain(found.tunnel_id, channel.channel_id)
    driver.emulator.state()


async def _read_table(driver: Driver, name: str) -> None:
    columns = (await driver.call("DescribeTable", table_name=name)).table_meta.primary_key
    start, end = (
        WireRow(tuple(WireCell(column.name.encode(), kind) for column in columns)).encode()
        for kind in (b"\x09", b"\x0a")
    )
    while start:
        page = await driver.call(
            "GetRange",
            table_name=name,
            direction="FORWARD",
            time_range={"start_time": 0, "end_time": INT_MAX},
            inclusive_start_primary_key=start,
            exclusive_end_primary_key=end,
        )
        decode_rows(page.rows)
        start = page.next_start_primary_key


def describe(seed: int, number: int, case: Case) -> str:
    """Return the command that repeats a request."""
    headers = "".join(f"\n    {name}: {value!r}" for name, value in case.request.headers.items())
    return (
        f"seed {seed}, number {number} ({case.level}); again: python -m tests.fuzz.campaign {seed} {number}\n"
        f"  POST {case.request.path!r}{headers}\n  body {case.request.body.hex() or 'empty'}"
    )


def main(seed: int, number: int) -> int:
    """Repeat the requests up to one of them, and print its answer."""
    tally = asyncio.run(Campaign(seed).run(number, 1))
    print(f"{tally.sent} requests, all answers fit: {tally.succeeded.total()} done, {tally.refused.total()} refused")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
