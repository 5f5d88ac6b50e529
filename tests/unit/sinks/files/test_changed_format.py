"""`format` or `compression` is changed while rows are exported: files from before it are read as what they are."""

from __future__ import annotations

import asyncio
import errno
import io
from pathlib import Path
from typing import IO

import pytest

from ots_tunnel.errors import SinkError, SinkRejected
from ots_tunnel.model import ChannelType
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch
from ots_tunnel.sinks.files.channel_files import ChannelFiles
from ots_tunnel.sinks.files.folder import FolderStore
from ots_tunnel.sinks.files.format import FileFormat
from ots_tunnel.sinks.files.json_lines import JsonLines
from ots_tunnel.sinks.files.parquet import Parquet
from ots_tunnel.sinks.files.settings import FileSettings
from ots_tunnel.sinks.json_bytes import json_lines
from tests.support.guards import OpenGuard
from tests.unit.sinks.files.conftest import CHANNEL, base_token, rows

FORMS: dict[str, FileFormat[Record]] = {
    "lines": JsonLines(json_lines),
    "gzip": JsonLines(json_lines, "gzip"),
    "zstd": JsonLines(json_lines, "zstd"),
    "parquet": Parquet(),
    "parquet gzip": Parquet("gzip"),
}


class Unreadable(io.BytesIO):
    """A file on blocks that are bad."""

    def read(self, *_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")


class BadDisk(FolderStore):
    """Files can be listed and not be read."""

    async def read(self, folder: str, name: str) -> IO[bytes]:
        return Unreadable(b"x" * 1000)


def channel_of(store: FolderStore, form: FileFormat[Record]) -> ChannelFiles[Record]:
    return ChannelFiles("t/c1", ChannelType.BASE, FileSettings(store, form, 1, 60, Backoff(0.01, 2, 0.05, 0)))


async def write(channel: ChannelFiles[Record], *batches: Batch) -> None:
    for page, batch in enumerate(batches, 1):
        written = channel.write(batch.records, CHANNEL, batch.records[0], OpenGuard(), page=page)
        await asyncio.wait_for(await written, 10)
        channel.checkpointed(page)
    await channel.end(abandoned=False)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "t" / "c1").iterdir())


@pytest.mark.parametrize("after", FORMS)
@pytest.mark.parametrize("before", FORMS)
async def test_a_replay_replaces_files_of_a_former_format(tmp_path: Path, before: str, after: str) -> None:
    first = channel_of(FolderStore(tmp_path), FORMS[before])
    await first.open(base_token(0))
    await write(first, rows(1, 2), rows(3, 4), rows(5))

    second = channel_of(FolderStore(tmp_path), FORMS[after])
    await second.open(base_token(3))
    await write(second, rows(3, 4, 5, 6))

    assert names(tmp_path) == [f"0000000000.2.{FORMS[before].suffix}", f"0000000001.4.{FORMS[after].suffix}"]


@pytest.mark.parametrize(
    "name", ["0000000000.2.jsonl", "0000000000.2.parquet", "0000000000.2.jsonl.gz", "0000000000.2.csv"]
)
async def test_a_file_that_nothing_can_read_is_named(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "t" / "c1"
    folder.mkdir(parents=True)
    (folder / name).write_bytes(b"a,b\n")

    with pytest.raises(SinkRejected, match=f"t/c1/{name}: .*") as refusal:
        await channel_of(FolderStore(tmp_path), FORMS["lines"]).open(base_token(3))
    assert refusal.value.code == "UnreadableFile"


@pytest.mark.parametrize("form", ["lines", "gzip", "parquet"])
async def test_a_disk_that_fails_for_a_moment_says_nothing_about_the_file(tmp_path: Path, form: str) -> None:
    channel = channel_of(FolderStore(tmp_path), FORMS[form])
    await channel.open(base_token(0))
    await write(channel, rows(1, 2))

    with pytest.raises(SinkError) as failure:
        await channel_of(BadDisk(tmp_path), FORMS[form]).open(base_token(3))
    assert failure.value.retryable
