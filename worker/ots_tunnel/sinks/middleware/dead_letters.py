"""Dead letters: records that a sink refuses for good, in files of JSON lines with the error beside each record.

The files are published as those of the files sink: whole or not at all, and a replay replaces them. A record that the
sink accepts in the replay is therefore no longer among the dead letters.

A file has the letters of one page, and is published at once. With those of several pages a checkpoint could lie in the
middle of it: the replay from there would not find it by its position. And it waits for no checkpoint, which itself may
wait for a file of the sink, and that for these letters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ots_tunnel.config import FileStoreConfig, SinkDocument
from ots_tunnel.fence import Guard
from ots_tunnel.model import ChannelId, TunnelId
from ots_tunnel.sinks import Batch, Confirmation, DeadLetter
from ots_tunnel.sinks.files.channel_folders import ChannelFolders
from ots_tunnel.sinks.files.json_lines import JsonLines
from ots_tunnel.sinks.files.places import open_store
from ots_tunnel.sinks.files.settings import FileSettings
from ots_tunnel.sinks.json_bytes import joined, json_bytes
from ots_tunnel.sinks.json_record import json_text
from ots_tunnel.sinks.retries import write_backoff

#: Bytes at which a file of dead letters is published: those of any page are enough.
PAGE_BYTES = 1
#: Seconds after which one is at the latest.
MAX_SECONDS = 5.0


def letter_lines(letters: Sequence[DeadLetter], channel_id: ChannelId) -> Iterator[bytes]:
    """Dead letters as lines of JSON objects: that of the record with a member `error`.

    Raises:
        CodecError: a record is malformed.
    """
    return joined(_line(letter, channel_id) for letter in letters)


def _line(letter: DeadLetter, channel_id: ChannelId) -> bytes:
    error = json_text({"code": letter.code, "message": letter.message}).encode()
    return json_bytes(letter.record, channel_id).removesuffix(b"}") + b',"error":' + error + b"}\n"


class DeadLetters(ChannelFolders[DeadLetter]):
    """Stores dead letters; has the calls of a deferred sink but `take`."""

    def __init__(self, tunnel_id: TunnelId, files: FileSettings[DeadLetter]) -> None:
        super().__init__(tunnel_id, replace(files, max_bytes=PAGE_BYTES, is_in_step=False))

    async def write(self, batch: Batch, letters: Sequence[DeadLetter], guard: Guard) -> Confirmation:
        """Store the letters of one batch; see `Deferred.take`."""
        return await self.store(batch, letters, guard)


def open_dead_letters(config: SinkDocument, place: FileStoreConfig) -> DeadLetters:
    """Make the dead letters of a worker's document.

    Raises:
        ConfigError: files of credentials are missing.
    """
    store = open_store(place, path="delivery.deadLetter.files", deadline=config.client.write_deadline)
    backoff = write_backoff(config.delivery.retry)
    files = FileSettings(store, JsonLines(letter_lines), PAGE_BYTES, MAX_SECONDS, backoff)
    return DeadLetters(TunnelId(config.source.tunnel_id), files)
