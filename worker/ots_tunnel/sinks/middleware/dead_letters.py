"""The place for records that a sink refuses for good: files of JSON lines, the error beside the record.

They are files as the files sink makes them: whole or not at all, and a replay replaces them, so a record that is
taken the second time is no dead letter any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ots_tunnel.config import FileStoreConfig, WorkerConfig
from ots_tunnel.fence import Guard
from ots_tunnel.model import ChannelId, TunnelId
from ots_tunnel.sinks import Batch, Confirmation, DeadLetter
from ots_tunnel.sinks.files.channel_folders import ChannelFolders
from ots_tunnel.sinks.files.json_lines import JsonLines
from ots_tunnel.sinks.files.places import open_store
from ots_tunnel.sinks.files.settings import FileSettings
from ots_tunnel.sinks.json_record import json_form
from ots_tunnel.sinks.retries import write_backoff

#: A file of dead letters is published so soon: the channel's checkpoint waits for it.
MAX_SECONDS = 5.0
MAX_BYTES = 16_777_216


def letter_form(letter: DeadLetter, channel_id: ChannelId) -> dict[str, Any]:
    """One dead letter as a JSON object: the record's, with the member `error`."""
    return {**json_form(letter.record, channel_id), "error": {"code": letter.code, "message": letter.message}}


class DeadLetters(ChannelFolders[DeadLetter]):
    """Stores dead letters; its calls are those of a sink."""

    async def write(self, batch: Batch, letters: Sequence[DeadLetter], guard: Guard) -> Confirmation:
        """Store the letters of one batch; see `Sink.write`."""
        return await self.store(batch, letters, guard)


def open_dead_letters(config: WorkerConfig, place: FileStoreConfig) -> DeadLetters:
    """The place that a document names.

    Raises:
        ConfigError: files of credentials are missing.
    """
    store = open_store(place, path="delivery.deadLetter.files", deadline=config.client.write_deadline)
    backoff = write_backoff(config.delivery.retry)
    files = FileSettings(store, JsonLines(letter_form), MAX_BYTES, MAX_SECONDS, backoff)
    return DeadLetters(TunnelId(config.source.tunnel_id), files)
