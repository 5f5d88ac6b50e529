"""Files of one channel: when they appear, which ones a replay replaces, and what a failure leaves."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ots_tunnel.errors import OwnershipLost, SinkError, SinkRejected
from ots_tunnel.model import ChannelId, ChannelType, SequenceInfo, Token
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch, Confirmation, Guard
from ots_tunnel.sinks.files import folder as folder_store
from ots_tunnel.sinks.files.channel_files import ChannelFiles
from ots_tunnel.sinks.files.folder import FolderStore
from ots_tunnel.sinks.files.json_lines import JsonLines
from ots_tunnel.sinks.files.names import position_text
from ots_tunnel.sinks.files.settings import FileSettings
from ots_tunnel.sinks.files.store import THREADS, FileSpoiled
from ots_tunnel.sinks.json_bytes import json_lines
from tests.support.guards import ClosedGuard, LimitedGuard, OpenGuard
from tests.unit.sinks.files.conftest import CHANNEL, Opener, base_token, change, changes, contents, rows

START = Token("t0")
_numbers = count(1)
#: Number of the last page of a channel that is confirmed.
confirmed_pages: dict[ChannelFiles[Record], int] = {}


async def put(channel: ChannelFiles[Record], batch: Batch, guard: Guard) -> Confirmation:
    head = batch.head or batch.records[0]
    number = next(_numbers)
    confirmation = await channel.write(batch.records, batch.channel_id, head, guard, page=number)
    confirmation.add_done_callback(lambda _: confirmed_pages.update({channel: number}))
    return confirmation


def checkpoint(channel: ChannelFiles[Record]) -> None:
    """A checkpoint behind every page that is confirmed."""
    channel.checkpointed(confirmed_pages[channel])


def files(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file()]


def hidden(folder: Path) -> list[Path]:
    return list(folder.rglob(".filling-*"))


async def test_a_file_appears_when_it_is_full(open_channel: Opener, tmp_path: Path) -> None:
    channel = open_channel(max_bytes=100)
    await channel.open(START)

    small = await put(channel, changes(1), OpenGuard())
    assert contents(tmp_path) == []
    full = await put(channel, changes(2), OpenGuard())
    await asyncio.wait_for(asyncio.gather(small, full), 10)

    assert contents(tmp_path) == [[1, 2]]


async def test_the_pages_of_a_file_have_one_confirmation(open_channel: Opener) -> None:
    """With one each, a file that is filled for long takes memory for every page, in no budget."""
    channel = open_channel(max_bytes=1_000_000)
    await channel.open(START)
    first, second = await put(channel, changes(1), OpenGuard()), await put(channel, changes(2), OpenGuard())
    await channel.end(abandoned=False)

    assert first is second
    await asyncio.wait_for(first, 10)


async def test_a_file_appears_when_its_time_is_over(open_channel: Opener, tmp_path: Path) -> None:
    channel = open_channel(max_bytes=1_000_000, max_seconds=0.05)
    await channel.open(START)

    await asyncio.wait_for(await put(channel, changes(1), OpenGuard()), 10)

    assert contents(tmp_path) == [[1]]


async def test_only_one_file_is_ahead_of_the_checkpoint(open_channel: Opener, tmp_path: Path) -> None:
    channel = open_channel()
    await channel.open(START)
    await asyncio.wait_for(await put(channel, changes(1), OpenGuard()), 10)

    second = await put(channel, changes(2), OpenGuard())
    third = asyncio.ensure_future(put(channel, changes(3), OpenGuard()))
    done, _ = await asyncio.wait([second, third], timeout=0.2)
    assert not done
    assert contents(tmp_path) == [[1]]
    checkpoint(channel)
    await asyncio.wait_for(second, 10)

    assert contents(tmp_path) == [[1], [2]]
    checkpoint(channel)
    await asyncio.wait_for(await third, 10)
    assert contents(tmp_path) == [[1], [2], [3]]


async def test_a_checkpoint_of_an_older_page_lets_no_second_file_appear(open_channel: Opener, tmp_path: Path) -> None:
    channel = open_channel()
    await channel.open(START)
    await asyncio.wait_for(await put(channel, changes(1), OpenGuard()), 10)
    second = await put(channel, changes(2), OpenGuard())

    channel.checkpointed(confirmed_pages[channel] - 1)
    await asyncio.wait([second], timeout=0.2)

    assert contents(tmp_path) == [[1]]
    checkpoint(channel)
    await asyncio.wait_for(second, 10)


async def test_a_file_that_is_old_enough_follows_the_former_one(open_channel: Opener, tmp_path: Path) -> None:
    channel = open_channel(max_bytes=100, max_seconds=0.05)
    await channel.open(START)
    first = await put(channel, changes(1), OpenGuard())
    await asyncio.wait_for(first, 10)
    second = await put(channel, changes(2), OpenGuard())
    await asyncio.sleep(0.1)  # it is on its way, and waits for the checkpoint behind the first
    # where this takes as long as a file may be filled, it is due at once, and waits as well
    third = asyncio.ensure_future(put(channel, changes(3), OpenGuard()))
    await asyncio.sleep(0.1)

    checkpoint(channel)
    await asyncio.wait_for(second, 10)
    checkpoint(channel)
    await asyncio.wait_for(await third, 10)
    assert contents(tmp_path) == [[1], [2], [3]]


async def test_a_replay_replaces_the_files_at_or_after_its_first_record(open_channel: Opener, tmp_path: Path) -> None:
    before = open_channel()
    await before.open(START)
    for batch in (changes(1, 2), changes(3, 4)):
        await asyncio.wait_for(await put(before, batch, OpenGuard()), 10)
        checkpoint(before)
    await before.end(abandoned=True)

    after = open_channel(max_bytes=1_000_000)
    await after.open(START)
    await put(after, changes(3), OpenGuard())
    assert contents(tmp_path) == [[1, 2], [3, 4]]  # until it is replaced
    await after.end(abandoned=False)

    assert contents(tmp_path) == [[1, 2], [3]]


async def test_a_file_of_the_same_name_is_replaced_without_a_delete(
    open_channel: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A delete without an answer may be carried out later, when the name is that of the new file."""
    before = open_channel()
    await before.open(START)
    await asyncio.wait_for(await put(before, changes(1, 2), OpenGuard()), 10)
    await before.end(abandoned=True)
    delete, late = FolderStore.delete, []

    async def without_answer(store: FolderStore, folder: str, names: Sequence[str], *before: Any) -> None:
        if names and not late:
            late.append((store, folder, names))
            raise SinkError("no answer")
        await delete(store, folder, names, *before)

    monkeypatch.setattr(FolderStore, "delete", without_answer)
    after = open_channel()
    await after.open(START)
    await asyncio.wait_for(await put(after, changes(1, 2), OpenGuard()), 10)
    for call in late:
        await delete(*call)

    assert contents(tmp_path) == [[1, 2]]


async def test_what_a_transform_leaves_out_does_not_move_a_file(open_channel: Opener, tmp_path: Path) -> None:
    batch = changes(7, 8)
    channel = open_channel()
    await channel.open(START)
    await put(channel, replace(batch, records=batch.records[1:], head=batch.records[0]), OpenGuard())
    await channel.end(abandoned=False)

    assert contents(tmp_path) == [[8]]
    assert "1000007" in files(tmp_path)[0]


async def test_rows_that_existed_are_replaced_from_the_checkpoint_on(open_channel: Opener, tmp_path: Path) -> None:
    before = open_channel(ChannelType.BASE)
    await before.open(base_token(0))
    for batch in (rows(1, 2), rows(3, 4), rows(5)):
        await asyncio.wait_for(await put(before, batch, OpenGuard()), 10)
        checkpoint(before)
    await before.end(abandoned=True)

    after = open_channel(ChannelType.BASE)
    await after.open(base_token(3))
    await put(after, rows(4), OpenGuard())  # 3 was deleted meanwhile
    await after.end(abandoned=False)

    assert contents(tmp_path) == [[1, 2], [4]]


async def test_a_base_channel_from_its_beginning_replaces_all(open_channel: Opener, tmp_path: Path) -> None:
    before = open_channel(ChannelType.BASE)
    await before.open(Token(""))
    await put(before, rows(1, 2), OpenGuard())
    await before.end(abandoned=False)

    after = open_channel(ChannelType.BASE)
    await after.open(Token(""))
    await put(after, rows(1), OpenGuard())
    await after.end(abandoned=False)

    assert contents(tmp_path) == [[1]]


async def test_nothing_appears_behind_the_fence(open_channel: Opener, tmp_path: Path) -> None:
    channel = open_channel()
    await channel.open(START)

    confirmation = await put(channel, changes(1), ClosedGuard())
    with pytest.raises(OwnershipLost):
        await asyncio.wait_for(confirmation, 10)
    with pytest.raises(OwnershipLost):
        await channel.end(abandoned=False)
    await channel.end(abandoned=True)

    assert files(tmp_path) == []


async def test_nothing_is_removed_behind_the_fence(open_channel: Opener, tmp_path: Path) -> None:
    """The guard is asked when a thread begins, which may have been late."""
    before = open_channel()
    await before.open(START)
    await asyncio.wait_for(await put(before, changes(1, 2), OpenGuard()), 10)
    await before.end(abandoned=True)
    after, guard, released = open_channel(), LimitedGuard(), threading.Event()
    await after.open(START)
    store = after._files.store  # noqa: SLF001 - to let its threads hang
    assert isinstance(store, FolderStore)
    hanging = [store._threads.submit(released.wait, 10) for _ in range(THREADS)]  # noqa: SLF001 - to let its threads hang
    removing = asyncio.create_task(after.resume(change(1), guard))
    await asyncio.sleep(0.05)  # it waits for a thread

    guard.passes = 0
    released.set()
    with pytest.raises(OwnershipLost):
        await asyncio.wait_for(removing, 10)
    assert all(call.result(10) for call in hanging)
    assert contents(tmp_path) == [[1, 2]]


async def test_an_abandoned_channel_leaves_no_file(open_channel: Opener, tmp_path: Path) -> None:
    channel = open_channel(max_bytes=1_000_000)
    await channel.open(START)
    await put(channel, changes(1), OpenGuard())

    await channel.end(abandoned=True)

    assert files(tmp_path) == []


async def test_unfinished_files_of_a_killed_worker_are_removed(open_channel: Opener, tmp_path: Path) -> None:
    left = await FolderStore(tmp_path).spool("t/c1")
    left.write_bytes(b"half a rec")

    await open_channel().open(START)

    assert not left.exists()


async def test_a_disk_without_room_for_a_name_is_waited_for(
    open_channel: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = open_channel()
    await channel.open(START)
    replace_file, failures = Path.replace, [OSError(28, "No space left on device"), OSError(5, "I/O error")]

    def failing(path: Path, target: Path) -> Path:
        if failures:
            raise failures.pop()
        return replace_file(path, target)

    monkeypatch.setattr(Path, "replace", failing)
    await asyncio.wait_for(await put(channel, changes(1), OpenGuard()), 10)

    assert contents(tmp_path) == [[1]]
    assert channel.retries == 2


@pytest.mark.parametrize("flushes", ["file", "folder"])
async def test_a_file_that_may_not_be_on_the_disk_is_not_flushed_once_more(
    open_channel: Opener, monkeypatch: pytest.MonkeyPatch, flushes: str
) -> None:
    channel = open_channel()
    await channel.open(START)
    await asyncio.wait_for(await put(channel, changes(1), OpenGuard()), 10)
    checkpoint(channel)

    def failing(handle: int) -> None:
        if (flushes == "folder") == stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(5, "I/O error")

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(FileSpoiled, match="I/O error"):
        await asyncio.wait_for(await put(channel, changes(2), OpenGuard()), 10)


async def test_a_file_system_without_flushing_of_folders_is_accepted(
    open_channel: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush = os.fsync

    def failing(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(22, "Invalid argument")
        flush(handle)

    monkeypatch.setattr(os, "fsync", failing)
    channel = open_channel()
    await channel.open(START)
    await asyncio.wait_for(await put(channel, changes(1), OpenGuard()), 10)

    assert contents(tmp_path) == [[1]]


async def test_a_file_that_was_taken_away_while_it_was_filled_is_read_again(
    open_channel: Opener, tmp_path: Path
) -> None:
    channel = open_channel(max_bytes=1_000_000)
    await channel.open(START)
    await put(channel, changes(1), OpenGuard())
    for path in hidden(tmp_path):
        path.unlink()

    with pytest.raises(FileSpoiled):
        await asyncio.wait_for(channel.end(abandoned=False), 10)


async def test_a_partly_written_file_never_appears(open_channel: Opener, tmp_path: Path) -> None:
    is_full = False

    def lines(records: Sequence[Record], channel_id: ChannelId) -> Iterable[bytes]:
        if is_full:
            raise OSError(28, "No space left on device")
        return json_lines(records, channel_id)

    channel = open_channel(max_bytes=1_000_000, max_seconds=2, lines=lines)
    await channel.open(START)
    await put(channel, changes(1), OpenGuard())

    is_full = True
    with pytest.raises(SinkError, match="No space"):
        await put(channel, changes(2), OpenGuard())
    await asyncio.sleep(2.2)  # its time is over, and was not when its second page began

    assert contents(tmp_path) == []
    await channel.end(abandoned=True)
    assert files(tmp_path) == []


async def test_a_failure_is_raised_once(open_channel: Opener) -> None:
    channel = open_channel()
    await channel.open(START)
    first = await put(channel, changes(1), ClosedGuard())
    later = await put(channel, changes(2), ClosedGuard())

    with pytest.raises(OwnershipLost):
        await asyncio.wait_for(first, 10)
    with pytest.raises(OwnershipLost):  # the pipeline may still wait for a page before the first one
        await put(channel, changes(3), ClosedGuard())
    with pytest.raises(OwnershipLost):
        await channel.end(abandoned=False)
    # The pipeline awaits the first one only: an exception in another one would never be retrieved.
    assert later.cancelled()


async def test_a_page_that_is_read_again_begins_a_file(open_channel: Opener, tmp_path: Path) -> None:
    channel = open_channel(max_bytes=1_000_000)
    await channel.open(START)
    first = await put(channel, changes(1, 2), OpenGuard())
    cut = changes(3, 4)
    await channel.write(cut.records, CHANNEL, cut.records[0], OpenGuard(), page=next(_numbers), alone=True)
    ending = asyncio.ensure_future(channel.end(abandoned=False))
    await asyncio.wait_for(first, 10)
    assert contents(tmp_path) == [[1, 2]]
    checkpoint(channel)
    await asyncio.wait_for(ending, 10)
    assert contents(tmp_path) == [[1, 2], [3, 4]]

    after = open_channel(max_bytes=1_000_000)
    await after.open(Token("t1"))
    await put(after, changes(3, 4, 5), OpenGuard())
    await after.end(abandoned=False)
    assert contents(tmp_path) == [[1, 2], [3, 4, 5]]


async def test_the_fence_is_asked_before_every_removal(open_channel: Opener, tmp_path: Path) -> None:
    before = open_channel()
    await before.open(START)
    for batch in (changes(1), changes(2), changes(3)):
        await asyncio.wait_for(await put(before, batch, OpenGuard()), 10)
        checkpoint(before)
    await before.end(abandoned=True)

    class ClosesAfterOne:
        left = 1

        def check(self) -> None:
            if not self.left:
                raise OwnershipLost("late")
            self.left -= 1

    after = open_channel()
    await after.open(START)
    with pytest.raises(OwnershipLost):
        await after.resume(changes(1).records[0], ClosesAfterOne())
    assert len(contents(tmp_path)) == 2


async def test_a_path_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(SinkRejected, match="out"):
        await folder_store.FolderStore(tmp_path / "out").check()


class CountingStore(FolderStore):
    """Counts the names that it has listed: each of them is in memory."""

    listed = 0

    async def names(self, *arguments: Any, **options: Any) -> list[str]:
        found = await super().names(*arguments, **options)
        self.listed += len(found)
        return found


async def test_files_of_a_stream_that_lie_behind_the_replay_are_not_listed(tmp_path: Path) -> None:
    """A channel publishes up to a file a minute for years, and a worker may open a hundred channels at once."""
    folder = tmp_path / "t" / "c1"
    folder.mkdir(parents=True)
    for number in range(1, 100):
        (folder / f"{position_text(position(number))}.1.jsonl").touch()
    store = CountingStore(tmp_path)
    settings = FileSettings(store, JsonLines(json_lines), 1, 60, Backoff(0.01, 2, 0.05, 0))
    channel = ChannelFiles("t/c1", ChannelType.STREAM, settings)

    await channel.open(START)
    await asyncio.wait_for(await put(channel, changes(98), OpenGuard()), 10)

    assert store.listed == 2
    assert sorted(files(folder))[-2:] == [f"{position_text(position(number))}.1.jsonl" for number in (97, 98)]


def position(number: int) -> SequenceInfo:
    """Position of the record with this number."""
    found = change(number).sequence
    assert found is not None
    return found
