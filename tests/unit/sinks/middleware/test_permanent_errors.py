"""Refused records are skipped or become dead letters, and are always counted."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path

import pytest

from ots_tunnel.errors import OwnershipLost, SinkRejected
from ots_tunnel.model import ChannelId, ChannelType, SequenceInfo, Token
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch, Confirmation, Contact, Guard, Immediate, all_confirmed
from ots_tunnel.sinks.files.folder import FolderStore
from ots_tunnel.sinks.files.json_lines import JsonLines
from ots_tunnel.sinks.files.settings import FileSettings
from ots_tunnel.sinks.middleware import permanent_errors
from ots_tunnel.sinks.middleware.base import AtOnce, behind
from ots_tunnel.sinks.middleware.dead_letters import DeadLetters, letter_lines
from ots_tunnel.sinks.middleware.permanent_errors import LetteringSink, Tolerant
from tests.support.guards import ClosedGuard, OpenGuard
from tests.support.records import record

CHANNEL = ChannelId("c1")
KIND = ChannelType.STREAM


def numbered(number: int) -> Record:
    return record((("pk", number),), Column("x", "v", 5), sequence=SequenceInfo(0, 1_000_000 + number, 0))


def batch(*numbers: int) -> Batch:
    return Batch(CHANNEL, KIND, [numbered(number) for number in numbers])


class Picky(Immediate):
    """Refuses odd numbers."""

    def __init__(self) -> None:
        self.stored: list[int] = []
        self.taken_by_now = False

    async def open(self) -> None:
        pass

    async def write(self, batch: Batch, guard: Guard) -> None:
        assert batch.on_refused is not None
        for each in batch.records:
            number = each.primary_key[0][1]
            assert isinstance(number, int)
            if number % 2 and not self.taken_by_now:
                batch.on_refused(each, "Odd", "it is odd")
                batch.on_refused(each, "Odd", "another piece of it")
            else:
                self.stored.append(number)

    async def close(self) -> None:
        pass


def letters_in(folder: Path) -> DeadLetters:
    files = FileSettings(FolderStore(folder), JsonLines(letter_lines), 1, 60, Backoff(0.01, 2, 0.05, 0), lambda: 0.5)
    return DeadLetters("t", files)


def stored_letters(folder: Path) -> list[tuple[int, str]]:
    lines = [json.loads(line) for path in sorted(folder.rglob("*.jsonl")) for line in path.read_text().splitlines()]
    return [(line["key"]["pk"], line["error"]["code"]) for line in lines]


async def test_refused_records_are_skipped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    picky = Picky()
    sink = behind(Tolerant(), picky)
    await sink.begin(CHANNEL, KIND, Token("t"))

    with caplog.at_level(logging.WARNING):
        await sink.write(batch(1, 2, 3), OpenGuard())

    assert picky.stored == [2]
    assert sink.tally().records_skipped == 2
    (entry,) = caplog.records
    assert (entry.__dict__["records"], entry.__dict__["key"]) == (2, "pk=1")


async def test_different_keys_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skipping, lettering = behind(Tolerant(), Picky()), LetteringSink(AtOnce(Picky()), letters_in(tmp_path))
    await skipping.begin(CHANNEL, KIND, Token("t"))
    await lettering.begin(CHANNEL, KIND, Token("t"))

    for numbers in ((1, 2, 3), (3, 1), (2,)):
        await skipping.write(batch(*numbers), OpenGuard())
        await asyncio.wait_for(await lettering.take(batch(*numbers), OpenGuard()), 10)

    assert (skipping.tally().records_refused, skipping.tally().keys_refused) == (4, 2)
    assert (lettering.tally().records_refused, lettering.tally().keys_refused) == (4, 2)
    monkeypatch.setattr(permanent_errors, "MOST_KEYS", 3)
    await skipping.write(batch(5, 7, 9), OpenGuard())
    assert (skipping.tally().records_refused, skipping.tally().keys_refused) == (7, 3)


async def test_a_place_of_dead_letters_that_fails_is_what_fails(tmp_path: Path) -> None:
    backoff = Backoff(0.01, 2, 0.05, 0)
    files = FileSettings(FolderStore(tmp_path), JsonLines(letter_lines), 1, 60, backoff)
    sink = LetteringSink(AtOnce(Picky()), DeadLetters("t", files))

    assert sink.contact() == Contact()
    with files.writes.tries() as tries:
        tries.failed("a file cannot be published", "disk full", folder="t")
        failing = sink.contact().failing
    assert failing is not None
    assert failing.error == "disk full"


async def test_a_batch_is_confirmed_when_its_dead_letters_are_stored(tmp_path: Path) -> None:
    sink = LetteringSink(AtOnce(Picky()), letters_in(tmp_path))
    await sink.begin(CHANNEL, KIND, Token("t"))

    confirmation = await sink.take(batch(1, 2, 3), OpenGuard())
    await asyncio.wait_for(confirmation, 10)

    assert stored_letters(tmp_path) == [(1, "Odd"), (3, "Odd")]
    assert sink.tally().records_dead_lettered == 2


async def test_a_record_that_is_taken_by_a_replay_is_no_dead_letter_any_more(tmp_path: Path) -> None:
    picky = Picky()
    sink = LetteringSink(AtOnce(picky), letters_in(tmp_path))
    await sink.begin(CHANNEL, KIND, Token("t"))
    _ = await sink.take(batch(1, 2), OpenGuard())
    await sink.end(CHANNEL, abandoned=False)
    assert stored_letters(tmp_path) == [(1, "Odd")]

    picky.taken_by_now = True
    again = LetteringSink(AtOnce(picky), letters_in(tmp_path))
    await again.begin(CHANNEL, KIND, Token("t"))
    assert (await again.take(batch(1, 2), OpenGuard())).done()
    await again.end(CHANNEL, abandoned=False)

    assert stored_letters(tmp_path) == []


async def test_a_dead_letter_place_that_fails_for_good_ends_the_write(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("no folder")
    sink = LetteringSink(AtOnce(Picky()), letters_in(tmp_path))
    with pytest.raises(SinkRejected, match="t"):
        await sink.begin(CHANNEL, KIND, Token("t"))


async def test_letters_are_not_stored_behind_the_fence(tmp_path: Path) -> None:
    sink = LetteringSink(AtOnce(Picky()), letters_in(tmp_path))
    await sink.begin(CHANNEL, KIND, Token("t"))
    confirmation = await sink.take(batch(1), ClosedGuard())
    with pytest.raises(OwnershipLost):
        await asyncio.wait_for(confirmation, 10)
    await sink.end(CHANNEL, abandoned=True)

    assert stored_letters(tmp_path) == []


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_both_confirmations_are_waited_for(order: tuple[int, int]) -> None:
    parts: list[Confirmation] = [asyncio.get_running_loop().create_future() for _ in range(2)]
    whole = all_confirmed(parts)
    parts[order[0]].set_result(None)
    await asyncio.sleep(0)
    assert not whole.done()
    parts[order[1]].set_result(None)
    await asyncio.wait_for(whole, 10)


async def test_the_first_failure_fails_the_whole() -> None:
    parts: list[Confirmation] = [asyncio.get_running_loop().create_future() for _ in range(2)]
    whole = all_confirmed(parts)
    parts[1].set_exception(SinkRejected("A", "first"))
    with pytest.raises(SinkRejected, match="first"):
        await asyncio.wait_for(whole, 10)
    parts[0].set_exception(SinkRejected("B", "second"))
