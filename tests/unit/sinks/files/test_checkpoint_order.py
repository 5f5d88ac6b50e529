"""Confirmations of real files, taken by the pipeline's own list of unconfirmed pages, behind every middleware.

An older checkpoint may be acknowledged in any round of the loop around the one in which a file appears.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ots_tunnel.model import ChannelType, Token, TunnelId
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.sinks import Batch, Deferred
from ots_tunnel.sinks.files import FilesSink
from ots_tunnel.sinks.files.folder import FolderStore
from ots_tunnel.sinks.files.json_lines import JsonLines
from ots_tunnel.sinks.files.settings import FileSettings
from ots_tunnel.sinks.json_bytes import json_lines
from ots_tunnel.sinks.middleware.base import behind
from ots_tunnel.sinks.middleware.dead_letters import DeadLetters, letter_lines
from ots_tunnel.sinks.middleware.permanent_errors import LetteringSink, Tolerant
from ots_tunnel.sinks.middleware.rate_limit import Paced
from ots_tunnel.sinks.middleware.transform import Transform
from ots_tunnel.sinks.middleware.transformed import Transformed
from ots_tunnel.worker.pages.read_page import ReadPage
from ots_tunnel.worker.progress.checkpointer import Checkpointer
from ots_tunnel.worker.progress.unconfirmed import UnconfirmedPages
from tests.support.channel_scene import CursorOf, ScriptedService, at, read_page
from tests.support.guards import OpenGuard
from tests.support.records import page
from tests.support.waiting import until
from tests.unit.sinks.files.conftest import CHANNEL, changes, contents

BACKOFF = Backoff(0.01, 2, 0.05, 0)


def letters(folder: Path) -> DeadLetters:
    files = FileSettings(FolderStore(folder / "dead"), JsonLines(letter_lines), 1, 60, BACKOFF, lambda: 0.5)
    return DeadLetters(TunnelId("t"), files)


#: A sink, and a folder for dead letters, to the sink behind middleware.
STACKS: dict[str, Callable[[Deferred, Path], Deferred]] = {
    "plain": lambda sink, _: sink,
    "paced": lambda sink, _: behind(Paced(1_000_000, whole_pages=True), sink),
    "transformed": lambda sink, _: behind(Transformed(Transform(exclude=frozenset((b"gone",)))), sink),
    "tolerant": lambda sink, _: behind(Tolerant(), sink),
    "lettered": lambda sink, folder: LetteringSink(sink, letters(folder)),
    "all": lambda sink, folder: behind(
        Transformed(Transform(exclude=frozenset((b"gone",)))),
        LetteringSink(behind(Paced(1_000_000, whole_pages=True), sink), letters(folder)),
    ),
}


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("rounds", range(8))
async def test_one_file_at_most_is_ahead_of_the_checkpoint(stack: str, rounds: int, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    files = FileSettings(FolderStore(folder), JsonLines(json_lines), 1, 60, BACKOFF, lambda: 0.5)
    sink = STACKS[stack](FilesSink(TunnelId("t"), files), tmp_path)
    answer = asyncio.Event()

    class Slow(ScriptedService):
        """The answer to a checkpoint comes when the test says so."""

        async def _inject(self, call: str, *what: str) -> None:
            await answer.wait()

    service = Slow({})
    checkpointer = Checkpointer(
        CursorOf(service),
        service.stored,
        60,
        on_durable=lambda number: sink.checkpointed(CHANNEL, number),
    )
    confirmed = []

    def on_confirmed(read: ReadPage) -> None:
        confirmed.append(read.number)
        checkpointer.confirmed(at(f"t{read.number}"), read.number)

    unconfirmed = UnconfirmedPages(on_confirmed)
    running = asyncio.create_task(unconfirmed.run())
    await sink.open()
    await sink.begin(CHANNEL, ChannelType.STREAM, Token("t0"))

    async def hand_over(number: int) -> None:
        read = read_page(page(1, f"t{number}"))
        read.number = number
        unconfirmed.add(read, await sink.take(_numbered(number), OpenGuard()))

    # The first file appears, and its checkpoint is under way; the second one is filled and waits for it.
    await hand_over(1)
    await until(lambda: confirmed == [1], pause=0)
    storing = asyncio.create_task(checkpointer.flush())
    await hand_over(2)
    third = asyncio.create_task(hand_over(3))
    await asyncio.sleep(0.05)
    assert contents(folder) == [[1]]

    # The answer comes, the second file appears, and an older checkpoint is acknowledged around that moment.
    answer.set()
    await storing
    await until(lambda: contents(folder) != [[1]], pause=0)
    for _ in range(rounds):
        await asyncio.sleep(0)
    sink.checkpointed(CHANNEL, 1)
    await asyncio.sleep(0.05)
    assert contents(folder) == [[1], [2]]

    await checkpointer.flush()
    await third
    async with asyncio.timeout(30):
        while contents(folder) != [[1], [2], [3]]:
            await checkpointer.flush()
            await asyncio.sleep(0.01)
    running.cancel()
    await sink.end(CHANNEL, abandoned=True)


def _numbered(number: int) -> Batch:
    return replace(changes(number), page=number)
