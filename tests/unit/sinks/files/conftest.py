"""Channels of a files sink over a folder, and records for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ots_tunnel.model import Action, ChannelId, ChannelType, SequenceInfo, Token
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.protocol.plainbuffer.codec import encode_primary_key, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.protocol.token import TokenContent, build_token
from ots_tunnel.sinks import Batch
from ots_tunnel.sinks.files import pending_file
from ots_tunnel.sinks.files.channel_files import ChannelFiles
from ots_tunnel.sinks.files.folder import FolderStore
from ots_tunnel.sinks.files.json_lines import JsonLines, Lines
from ots_tunnel.sinks.files.settings import FileSettings
from ots_tunnel.sinks.json_bytes import json_lines

CHANNEL = ChannelId("c1")


def change(number: int) -> Record:
    """The stream's record with this number."""
    sequence = SequenceInfo(0, 1_000_000 + number, 0)
    return Record(Action.PUT, encode_row((("pk", number),), (Column("x", "v", 5),), sequence=sequence))


def existing(number: int) -> Record:
    return Record(Action.PUT, encode_row((("pk", number),), (Column("x", "v", 5),)))


def changes(*numbers: int) -> Batch:
    return Batch(CHANNEL, ChannelType.STREAM, [change(number) for number in numbers])


def rows(*numbers: int) -> Batch:
    return Batch(CHANNEL, ChannelType.BASE, [existing(number) for number in numbers])


def base_token(number: int) -> Token:
    return build_token(TokenContent(primary_key=encode_primary_key((("pk", number),))))


def contents(folder: Path) -> list[list[int]]:
    """Numbers of the records in every published file, in the order of the file names."""
    return [
        [json.loads(line)["key"]["pk"] for line in path.read_text().splitlines()]
        for path in sorted(folder.rglob("*.jsonl"))
        if not path.name.startswith(".")
    ]


Opener = Callable[..., ChannelFiles[Record]]


@pytest.fixture
def open_channel(tmp_path: Path) -> Opener:
    def opened(
        channel_type: ChannelType = ChannelType.STREAM,
        *,
        max_bytes: int = 1,
        max_seconds: float = 60,
        lines: Lines[Record] = json_lines,
    ) -> ChannelFiles[Record]:
        backoff = Backoff(0.01, 2, 0.05, 0)
        files = FileSettings(FolderStore(tmp_path), JsonLines(lines), max_bytes, max_seconds, backoff, lambda: 0.5)
        return ChannelFiles("t/c1", channel_type, files)

    return opened


@pytest.fixture(autouse=True)
def patient_removal(monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder of these tests hangs: a removal that takes a busy machine longer than a second is waited for."""
    monkeypatch.setattr(pending_file, "REMOVAL_SECONDS", 60.0)
