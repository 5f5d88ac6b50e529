"""A worker whose filter has changed replays pages of which it stores nothing: they replace files all the same."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ots_tunnel.model import Action, ChannelType, Token, TunnelId
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch, Deferred, Guard, Immediate
from ots_tunnel.sinks.files import FilesSink
from ots_tunnel.sinks.files.folder import FolderStore
from ots_tunnel.sinks.files.json_lines import JsonLines
from ots_tunnel.sinks.files.settings import FileSettings
from ots_tunnel.sinks.json_bytes import json_lines
from ots_tunnel.sinks.middleware.base import AtOnce, behind
from ots_tunnel.sinks.middleware.dead_letters import DeadLetters, letter_lines
from ots_tunnel.sinks.middleware.key_range import KeyBounds
from ots_tunnel.sinks.middleware.permanent_errors import LetteringSink
from ots_tunnel.sinks.middleware.rate_limit import Paced
from ots_tunnel.sinks.middleware.transform import Transform
from ots_tunnel.sinks.middleware.transformed import Transformed
from tests.support.guards import OpenGuard
from tests.unit.sinks.files.conftest import CHANNEL, base_token, change, contents, existing

TUNNEL = TunnelId("t")
BACKOFF = Backoff(0.01, 2, 0.02, 0)
ALL, UPDATES = frozenset(Action), frozenset({Action.UPDATE})


class Refusing(Immediate):
    """Refuses every record."""

    async def open(self) -> None: ...

    async def write(self, batch: Batch, guard: Guard) -> None:
        assert batch.on_refused is not None
        for record in batch.records:
            batch.on_refused(record, "no", "never")

    async def close(self) -> None: ...


def files(folder: Path) -> Deferred:
    settings = FileSettings(FolderStore(folder), JsonLines(json_lines), 1 << 20, 60, BACKOFF)
    return behind(Paced(1_000_000, whole_pages=True), FilesSink(TUNNEL, settings))


def letters(folder: Path) -> Deferred:
    settings = FileSettings(FolderStore(folder), JsonLines(letter_lines), 1 << 20, 60, BACKOFF)
    return LetteringSink(AtOnce(Refusing()), DeadLetters(TUNNEL, settings))


async def run(sink: Deferred, actions: frozenset[Action]) -> None:
    """Move a page of a new row and a page of a change, and publish; no checkpoint is stored."""
    filtered = behind(Transformed(Transform(actions=actions)), sink)
    await filtered.open()
    await filtered.begin(CHANNEL, ChannelType.STREAM, Token("t0"))
    pages = [[change(1)], [Record(Action.UPDATE, change(2).body)]]
    taken = [
        await filtered.take(Batch(CHANNEL, ChannelType.STREAM, page, page=number), OpenGuard())
        for number, page in enumerate(pages, 1)
    ]
    await filtered.end(CHANNEL, abandoned=False)
    await asyncio.wait_for(asyncio.gather(*taken), 10)


@pytest.mark.parametrize("place", [files, letters])
async def test_no_record_is_there_twice(place: type[Deferred], tmp_path: Path) -> None:
    await run(place(tmp_path), ALL)
    assert [number for file in contents(tmp_path) for number in file] == [1, 2]  # letters have a file for each page

    await run(place(tmp_path), UPDATES)

    assert contents(tmp_path) == [[2]]


async def moved(sink: Deferred, transform: Transform, batches: list[Batch], start: Token) -> None:
    """Move pages under a filter until all of them are confirmed."""
    filtered = behind(Transformed(transform), sink)
    await filtered.open()
    await filtered.begin(CHANNEL, batches[0].channel_type, start)
    taken = [await filtered.take(batch, OpenGuard()) for batch in batches]
    await filtered.end(CHANNEL, abandoned=False)
    await asyncio.wait_for(asyncio.gather(*taken), 10)


async def test_a_checkpoint_behind_a_page_left_out_is_never_within_a_file(tmp_path: Path) -> None:
    first = Batch(CHANNEL, ChannelType.STREAM, [change(1)], page=1)
    second = Batch(CHANNEL, ChannelType.STREAM, [Record(Action.UPDATE, change(2).body)], page=2)
    await moved(files(tmp_path), Transform(), [first, second], Token("t0"))
    assert contents(tmp_path) == [[1, 2]]

    # nothing of the first page is stored: its checkpoint is, and the next worker begins behind it
    await moved(files(tmp_path), Transform(actions=UPDATES), [first], Token("t0"))
    await moved(files(tmp_path), Transform(actions=UPDATES), [second], Token("t1"))

    assert contents(tmp_path) == [[2]]


async def test_the_same_holds_for_existing_rows(tmp_path: Path) -> None:
    first = Batch(CHANNEL, ChannelType.BASE, [existing(1)], page=1)
    second = Batch(CHANNEL, ChannelType.BASE, [existing(2)], page=2)
    behind_one = Transform(key_bounds=KeyBounds((2,)))
    await moved(files(tmp_path), Transform(), [first, second], base_token(1))
    assert contents(tmp_path) == [[1, 2]]

    await moved(files(tmp_path), behind_one, [first], base_token(1))
    await moved(files(tmp_path), behind_one, [second], base_token(2))

    assert contents(tmp_path) == [[2]]
