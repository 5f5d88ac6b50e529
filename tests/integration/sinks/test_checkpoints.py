"""No checkpoint passes an unconfirmed record, in any sink behind any middleware, wherever the worker is stopped.

A channel with its real pipeline and checkpointer moves pages from a scripted service. It is stopped, loses its channel
or is cancelled at points drawn from a seed, and is followed by a new worker at the stored checkpoint. The ledger is not
the project's: before the service stores a checkpoint, the destination itself is asked what it holds.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from ots_tunnel.client.page import Page
from ots_tunnel.model import FINISHED, ChannelStatus, Checkpoint
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.middleware import rate_limit
from tests.support.channel_scene import CHANNEL, ChannelScene, ScriptedService, at, name_of
from tests.support.sink_kit import Destination, NewSink, Stored, change, contents, page
from tests.support.sinks.destinations import Folder, PrintedToFile, TableDestination, WebService
from tests.support.sinks.program import STYLES, Program
from tests.support.sinks.stacks import EVERY_STACK, SLICE_SECONDS, stacked

PAGES, KEYS = 6, 12
#: Most seconds until the worker is interrupted, and the number of interruptions.
LONGEST, INTERRUPTIONS = 0.25, 3
SEEDS = range(2)
SINKS = ["tablestore", "http", "JsonLines", "Parquet", "stdout", "python", *(f"python, {style}" for style in STYLES)]
#: A key that web services and tables refuse.
REFUSED_KEY = 3


@dataclass
class Judge(ScriptedService):
    """The service; asks the destination before it stores a checkpoint."""

    destination: Destination = field(init=False)
    needed: list[list[Stored]] = field(init=False)
    letters: Callable[[], set[Stored]] = field(init=False)
    violations: list[str] = field(default_factory=list)
    judged: int = 0

    async def checkpoint(
        self, *ids_and_checkpoint: object, timeout: float, before_send: Callable[[], None] | None = None
    ) -> None:
        token = cast("Checkpoint", ids_and_checkpoint[-1]).token
        count = len(self.needed) if token == FINISHED else int(name_of(token)[1:])
        needed = {each for of_page in self.needed[:count] for each in of_page}
        missing = needed - set(await self.destination.stored()) - self.letters()
        if missing:
            self.violations.append(f"the checkpoint at {name_of(token)} passes {sorted(missing)[:5]}")
        self.judged += 1
        await super().checkpoint(*ids_and_checkpoint, timeout=timeout, before_send=before_send)


@dataclass
class Run:
    """One table's way into a destination, over several workers."""

    destination: Destination
    new_sink: NewSink
    service: Judge
    chance: random.Random

    async def worker(self, *, interrupted: bool) -> None:
        """One worker from the stored checkpoint on; it ends by an interruption or with the channel."""
        sink = self.new_sink()
        await sink.open()
        scene = ChannelScene(self.service, sink, interval=1, timeout=4, drain=0.5, checkpoint_interval=0.02)
        scene.open(CHANNEL)
        try:
            if not interrupted:
                assert (await scene.over()).status is ChannelStatus.TERMINATED
                return
            await asyncio.sleep(self.chance.uniform(0, LONGEST))
            for _ in range(self.chance.randrange(4)):
                await asyncio.sleep(0)
            if self.chance.random() < 0.4:
                scene.notify(ChannelStatus.CLOSING, 2)
                await scene.over()
            elif self.chance.random() < 0.5:
                scene.cancel()
        finally:
            await scene.leave()
            await sink.close()
            await self._settled()

    async def _settled(self) -> None:
        """Wait until no abandoned write is under way; a worker waits for its write deadline instead."""
        before = await self.destination.stored()
        while await asyncio.sleep(0.05, await self.destination.stored()) != before:
            before = await self.destination.stored()


def written() -> list[list[Record]]:
    """The records of the pages; each page changes every key."""
    return [[change(key, number) for key in range(KEYS)] for number in range(PAGES)]


def letters_in(folder: Path) -> set[Stored]:
    """The dead letters."""
    lines = [json.loads(line) for path in folder.rglob("*.jsonl") for line in path.read_text().splitlines()]
    return {
        (line["key"]["id"], next(column["value"] for column in line["columns"] if column["name"] == "n"))
        for line in lines
    }


@pytest.fixture
async def destination(sink: str, tmp_path: Path) -> AsyncIterator[Destination]:
    async with AsyncExitStack() as stack:
        match sink:
            case "tablestore":
                yield await stack.enter_async_context(TableDestination.serving(tmp_path / "secret"))
            case "http":
                yield await stack.enter_async_context(WebService.serving())
            case "stdout":
                yield PrintedToFile(tmp_path / "printed")
            case "JsonLines" | "Parquet":
                yield Folder(tmp_path / "out", sink)
            case _:
                yield Program(None if sink == "python" else sink.removeprefix("python, "))


@EVERY_STACK
@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("seed", SEEDS)
async def test_no_checkpoint_passes_an_unconfirmed_record(
    destination: Any,
    sink: str,
    seed: int,
    paced: bool,
    transformed: bool,
    policy: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rate_limit, "SLICE_SECONDS", SLICE_SECONDS)
    records = written()
    refused = _refuse(records, destination, sink) if policy != "Fail" else set()
    service = Judge(pages_of(records), stored=Checkpoint(at("t0"), 0), latency={"read": 0.01, "put": 0.01})
    service.destination = destination
    service.needed = [contents([page(0, of_page)]) for of_page in records]
    service.letters = lambda: letters_in(tmp_path / "dead") if policy == "DeadLetter" else refused
    chance = random.Random(f"{seed} {sink} {paced} {transformed} {policy}")
    run = Run(destination, stacked(destination, tmp_path, paced, transformed, policy), service, chance)

    with destination.redirected() if isinstance(destination, PrintedToFile) else nullcontext():
        for _ in range(INTERRUPTIONS):
            await run.worker(interrupted=True)
        if sink in ("python, never", "python, after close"):
            assert isinstance(destination, Program)
            destination.confirm_all()  # by now nobody waits for it
            destination.style = "late"
        await run.worker(interrupted=False)

    assert service.violations == []
    assert service.judged
    found = set(await destination.stored())
    everything = {each for of_page in service.needed for each in of_page}
    assert found | service.letters() == everything
    assert not refused or refused & found == set()


def _refuse(records: list[list[Record]], destination: Any, sink: str) -> set[Stored]:
    """Replace one record by one that the destination refuses, if it refuses any."""
    if sink not in ("http", "tablestore"):
        return set()
    number = PAGES // 2 if sink == "tablestore" else 0
    for ordinal in range(PAGES) if sink == "http" else [number]:
        records[ordinal][REFUSED_KEY] = destination.refused(REFUSED_KEY, ordinal)
    return set(contents([page(0, [of_page[REFUSED_KEY] for of_page in _chosen(records, sink, number)])]))


def _chosen(records: list[list[Record]], sink: str, number: int) -> Sequence[list[Record]]:
    return records if sink == "http" else [records[number]]


def pages_of(records: list[list[Record]]) -> dict[str, Page]:
    """The pages by their position; the last one ends the channel."""
    found = {}
    for ordinal, of_page in enumerate(records):
        following = at(f"t{ordinal + 1}") if ordinal + 1 < len(records) else FINISHED
        found[f"t{ordinal}"] = Page(of_page, following, True, sum(record.size for record in of_page), None)
    return found
