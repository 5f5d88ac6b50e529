"""Files of rows, and the dead letters of their pages: no checkpoint lies in the middle of a file of either."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ots_tunnel.config import FilesSinkConfig
from ots_tunnel.errors import SinkError, SinkRejected
from ots_tunnel.model import Action, ChannelId, ChannelType, SequenceInfo, Token, TunnelId
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch, Confirmation
from ots_tunnel.sinks.confirmation import is_stored
from ots_tunnel.sinks.files import FilesSink
from ots_tunnel.sinks.files.folder import FolderStore
from ots_tunnel.sinks.files.json_lines import JsonLines
from ots_tunnel.sinks.files.pending_file import PendingFile
from ots_tunnel.sinks.files.places import format_of
from ots_tunnel.sinks.files.rows.declared import Declared
from ots_tunnel.sinks.files.settings import FileSettings
from ots_tunnel.sinks.middleware.dead_letters import DeadLetters, letter_lines
from ots_tunnel.sinks.middleware.permanent_errors import LetteringSink
from tests.support.guards import OpenGuard
from tests.support.waiting import until

C = ChannelId("c1")
PAUSE = Backoff(0.01, 2, 0.1, 0)
#: A value that the declared column does not take.
BAD = "text"


class Place(FolderStore):
    """A place that does not answer, or refuses, until `error` is taken away."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.error: Exception | None = None
        self.tries = 0

    async def publish(self, path: Path, folder: str, name: str, before_send: Callable[[], None]) -> None:
        self.tries += 1
        if self.error is not None:
            raise self.error
        await super().publish(path, folder, name, before_send)


class Run:
    """One owner of a stream channel; a file of rows is due when the channel ends, however fast the machine is."""

    def __init__(self, folder: Path, max_bytes: int = 1 << 27) -> None:
        self.folder = folder
        self.letters, self.place = Place(folder / "dead"), Place(folder / "out")
        section = FilesSinkConfig.model_validate(
            {"url": f"file://{folder}/out", "format": "Parquet", "columns": [{"name": "n", "type": "integer"}]}
        )
        rows = FileSettings(self.place, format_of(section), max_bytes, 60.0, PAUSE)
        letters = FileSettings(self.letters, JsonLines(letter_lines), 1 << 24, 60.0, PAUSE)
        tunnel = TunnelId("t")
        self.sink = LetteringSink(FilesSink(tunnel, rows, Declared.of(section)), DeadLetters(tunnel, letters))

    async def begin(self, page: int = 1) -> None:
        await self.sink.open()
        await self.sink.begin(C, ChannelType.STREAM, Token(f"t{page}"))

    async def take(self, page: int, *values: int | str) -> Confirmation:
        """A page of the values; every record has a position of its own."""
        records = [
            Record(
                Action.PUT,
                encode_row(
                    (("pk", f"{page}.{number}"),),
                    (Column("n", value, 5),),
                    sequence=SequenceInfo(0, 1_000_000 * page + number, 0),
                ),
            )
            for number, value in enumerate(values)
        ]
        batch = Batch(C, ChannelType.STREAM, records, Token(f"t{page}"), Token(f"t{page + 1}"), page=page)
        return await self.sink.take(batch, OpenGuard())

    def stored(self) -> list[str]:
        """Keys of the rows in files, each as often as it is there."""
        found = (pq.read_table(path, partitioning=None) for path in (self.folder / "out").rglob("0*.parquet"))
        return sorted(key["pk"] for table in found for key in table.column("key").to_pylist())

    def lettered(self) -> list[str]:
        paths = (self.folder / "dead").rglob("0*.jsonl")
        return sorted(json.loads(line)["key"]["pk"] for path in paths for line in path.read_text().splitlines())


@pytest.mark.parametrize("last", [(1, BAD), (BAD,)], ids=["a part is refused", "all of it is refused"])
async def test_no_page_of_a_file_is_confirmed_before_the_letters_of_all_are_stored(
    tmp_path: Path, last: tuple[int | str, ...]
) -> None:
    """A checkpoint behind the first page would lie in the middle of the file, and a restart store the second again."""
    run = Run(tmp_path)
    run.letters.error = SinkError("away")
    await run.begin()
    pages = [await run.take(1, 1), await run.take(2, *last)]
    ending = asyncio.create_task(run.sink.end(C, abandoned=False))
    tried = run.letters.tries
    await until(lambda: run.letters.tries > tried + 3, what="the letters are tried again")
    assert (run.stored(), [page.done() for page in pages]) == ([], [False] * 2)

    run.letters.error = None
    await asyncio.wait_for(asyncio.gather(ending, *pages), 60)
    assert run.lettered() == [f"2.{len(last) - 1}"]
    assert run.stored() == ["1.0", *(["2.0"] if len(last) == 2 else [])]


async def test_pages_without_letters_have_one_confirmation_for_each_file(tmp_path: Path) -> None:
    """With one each, a file that is filled for long takes memory for every page, in no budget."""
    run = Run(tmp_path)
    await run.begin()
    pages = [await run.take(1, 1), await run.take(2, 2), await run.take(3, 3, BAD), await run.take(4, 4)]

    assert pages[0] is pages[1] is pages[3] is not pages[2]
    await run.sink.end(C, abandoned=False)
    await asyncio.wait_for(asyncio.gather(*pages), 60)
    assert run.stored() == ["1.0", "2.0", "3.0", "4.0"]


async def test_pages_without_letters_leave_nothing_in_their_file(tmp_path: Path) -> None:
    """A file waits for the letters of its pages; what has none, or has them stored, took memory until it appeared."""
    run = Run(tmp_path)
    await run.begin()
    for page in range(1, 100):
        await run.take(page, page, *([BAD] if page % 10 == 0 else []))
    (file,) = (each for each in gc.get_objects() if isinstance(each, PendingFile) and each.rows == 99)
    # Their files are there a moment before that is known.
    await until(lambda: all(map(is_stored, file.after)), what="the letters are stored")
    assert len(run.lettered()) == 9
    await run.take(100, 100)

    assert (file.rows, len(file.after)) == (100, 1)
    await run.sink.end(C, abandoned=True)


async def test_letters_that_are_refused_keep_the_file_of_their_page_from_appearing(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.letters.error = SinkRejected("AccessDenied", "no")
    await run.begin()
    pages = [await run.take(1, 1), await run.take(2, 2, BAD)]

    ending = asyncio.create_task(run.sink.end(C, abandoned=False))

    # the first page waits for the file, which waits for these letters; the pipeline raises the first failure
    with pytest.raises(SinkRejected, match="AccessDenied"):
        await asyncio.wait_for(pages[0], 60)
    with pytest.raises(SinkRejected, match="AccessDenied"):
        await asyncio.wait_for(ending, 60)
    await asyncio.gather(*pages, return_exceptions=True)
    assert run.stored() == []


async def test_a_refused_file_is_told_while_letters_before_it_wait(tmp_path: Path) -> None:
    """The pipeline looks at the first confirmation alone: it read on, and every file behind was dropped in silence."""
    run = Run(tmp_path, max_bytes=1)
    run.letters.error, run.place.error = SinkError("away"), SinkRejected("AccessDenied", "no")
    await run.begin()
    first = await run.take(1, BAD)
    second = await run.take(2, 2)
    await asyncio.wait((second,), timeout=60)

    with pytest.raises(SinkRejected, match="AccessDenied"):
        await run.take(3, 3)
    assert not first.done()
    await asyncio.gather(second, return_exceptions=True)
    await run.sink.end(C, abandoned=True)


async def test_a_replay_replaces_the_letters_behind_its_checkpoint(tmp_path: Path) -> None:
    """Pages 2 and 4 have letters, the checkpoint is behind page 2, and page 4 has none in the replay."""
    first = Run(tmp_path)
    await first.begin()
    for page, value in enumerate((1, BAD, 3, BAD), 1):
        await first.take(page, value)
    await until(lambda: first.lettered() == ["2.0", "4.0"], what="the letters are stored")
    first.sink.checkpointed(C, 2)
    await first.sink.end(C, abandoned=True)

    second = Run(tmp_path)
    await second.begin(3)
    await second.take(3, 3)
    await second.take(4, 4)
    await second.sink.end(C, abandoned=False)

    assert second.lettered() == ["2.0"]
    assert second.stored() == ["3.0", "4.0"]
