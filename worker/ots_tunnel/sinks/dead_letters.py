"""The place for records that a sink refuses for good: files of JSON lines, the error beside the record.

They are files as the files sink makes them: whole or not at all, and a replay replaces them, so a record that is
taken the second time is no dead letter any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ots_tunnel.config import FileStoreConfig, WorkerConfig
from ots_tunnel.fence import Guard
from ots_tunnel.model import ChannelId, ChannelType, Token, TunnelId
from ots_tunnel.sinks import Batch, Confirmation
from ots_tunnel.sinks.dead_letter import DeadLetter
from ots_tunnel.sinks.files.channel_files import ChannelFiles, Files
from ots_tunnel.sinks.files.formats import JsonLines
from ots_tunnel.sinks.files.names import folder_of
from ots_tunnel.sinks.files.stores import open_store
from ots_tunnel.sinks.json_form import json_form
from ots_tunnel.sinks.retries import write_backoff

#: A file of dead letters is published so soon: the channel's checkpoint waits for it.
MAX_SECONDS = 5.0
MAX_BYTES = 16_777_216


def letter_form(letter: DeadLetter, channel_id: ChannelId) -> dict[str, Any]:
    """One dead letter as a JSON object: the record's, with the member `error`."""
    return {**json_form(letter.record, channel_id), "error": {"code": letter.code, "message": letter.message}}


class DeadLetters:
    """Stores dead letters; its calls are those of a sink."""

    def __init__(self, tunnel_id: TunnelId, files: Files[DeadLetter]) -> None:
        self._tunnel_id = tunnel_id
        self._files = files
        self._channels: dict[ChannelId, ChannelFiles[DeadLetter]] = {}

    def __repr__(self) -> str:
        return f"DeadLetters({self._files.store!r})"

    async def open(self) -> None:
        """See whether letters can be stored.

        Raises:
            SinkRejected, SinkError: they cannot.
        """
        await self._files.store.check()

    async def begin(self, channel_id: ChannelId, channel_type: ChannelType, start: Token) -> None:
        """See `Sink.begin`."""
        channel = ChannelFiles(folder_of(self._tunnel_id, channel_id), channel_type, self._files)
        await channel.open(start)
        self._channels[channel_id] = channel

    async def resume(self, batch: Batch, guard: Guard) -> None:
        """Before the first batch of a channel is written: remove letters that this replay decides about anew."""
        await self._channels[batch.channel_id].resume(batch.head or batch.records[0], guard)

    async def write(self, batch: Batch, letters: Sequence[DeadLetter], guard: Guard) -> Confirmation:
        """Store the letters of one batch; see `Sink.write`."""
        head, channel = batch.head or batch.records[0], self._channels[batch.channel_id]
        return await channel.write(letters, batch.channel_id, head, guard, alone=batch.comes_again)

    def checkpointed(self, channel_id: ChannelId) -> None:
        """See `Sink.checkpointed`."""
        if channel_id in self._channels:
            self._channels[channel_id].checkpointed()

    async def end(self, channel_id: ChannelId, *, abandoned: bool) -> None:
        """See `Sink.end`."""
        channel = self._channels.get(channel_id)
        if channel is not None:
            await channel.end(abandoned=abandoned)
            if self._channels.get(channel_id) is channel:  # it may have been begun again meanwhile
                del self._channels[channel_id]


def open_dead_letters(config: WorkerConfig, place: FileStoreConfig) -> DeadLetters:
    """The place that a document names.

    Raises:
        ConfigError: files of credentials are missing.
    """
    store = open_store(place, path="delivery.deadLetter.files", deadline=config.client.write_deadline)
    backoff = write_backoff(config.delivery.retry)
    files = Files(store, JsonLines(letter_form), MAX_BYTES, MAX_SECONDS, backoff)
    return DeadLetters(TunnelId(config.source.tunnel_id), files)
