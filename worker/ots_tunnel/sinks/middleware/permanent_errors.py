"""Middleware that tolerates refused records: they are skipped or become dead letters, are counted and logged.

The change of a refused record is missing at the destination, so a row may be there in part (docs/architecture.md rule
17). Dead letters that cannot be stored block their channel: no record is dropped without a trace.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from ots_tunnel.fence import Guard
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import ChannelId, ChannelType, Token
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch, Confirmation, DeadLetter, Sink, all_confirmed
from ots_tunnel.sinks.key_text import key_text
from ots_tunnel.sinks.middleware.base import WrappingSink
from ots_tunnel.sinks.tally import Tally

if TYPE_CHECKING:
    from ots_tunnel.sinks.middleware.dead_letters import DeadLetters

logger = logging.getLogger(__name__)


class ErrorTolerantSink(WrappingSink):
    """Stores a batch without the records that the wrapped sink refuses.

    Args:
        letters: stores refused records; None skips them.
    """

    def __init__(self, sink: Sink, letters: DeadLetters | None = None) -> None:
        super().__init__(sink)
        self._letters = letters
        #: Channels that have not written a batch since `begin`.
        self._begun: set[ChannelId] = set()
        self._tally = Tally()

    def __repr__(self) -> str:
        return f"ErrorTolerantSink({self._sink!r}, {self._letters!r})"

    async def open(self) -> None:
        """See `Sink.open`."""
        if self._letters is not None:
            await self._letters.open()
        await super().open()

    async def begin(self, channel_id: ChannelId, channel_type: ChannelType, start: Token) -> None:
        """See `Sink.begin`."""
        if self._letters is not None:
            await self._letters.begin(channel_id, channel_type, start)
            self._begun.add(channel_id)
        await super().begin(channel_id, channel_type, start)

    async def write(self, batch: Batch, guard: Guard) -> Confirmation | None:
        """See `Sink.write`; refused records count as stored once they are skipped or are dead letters."""
        if self._letters is not None and batch.channel_id in self._begun:
            await self._letters.resume(batch, guard)
            self._begun.discard(batch.channel_id)
        letters: dict[int, DeadLetter] = {}

        def on_refused(record: Record, code: str, message: str) -> None:
            # A record that is written in pieces counts as one refused record.
            letters.setdefault(id(record), DeadLetter(record, code, message))

        stored = await self._sink.write(replace(batch, on_refused=on_refused), guard)
        if not letters:
            return stored
        lettered = await self._handle(batch, list(letters.values()), guard)
        return all_confirmed([confirmation for confirmation in (stored, lettered) if confirmation is not None])

    def checkpointed(self, channel_id: ChannelId, token: Token) -> None:
        """See `Sink.checkpointed`."""
        super().checkpointed(channel_id, token)
        if self._letters is not None:
            self._letters.checkpointed(channel_id, token)

    async def end(self, channel_id: ChannelId, *, abandoned: bool) -> None:
        """See `Sink.end`."""
        ended = False
        try:
            await super().end(channel_id, abandoned=abandoned)
            ended = True
        finally:
            if self._letters is not None:
                # After a failed sink no checkpoint follows: letters that wait for one would never end.
                await self._letters.end(channel_id, abandoned=abandoned or not ended)

    def tally(self) -> Tally:
        """See `Sink.tally`."""
        return super().tally() + self._tally

    async def _handle(self, batch: Batch, letters: list[DeadLetter], guard: Guard) -> Confirmation | None:
        first = letters[0]
        extra = {
            "action": LogAction.RECORDS_REFUSED,
            "channel_id": batch.channel_id,
            "records": len(letters),
            "error": f"{first.code}: {first.message}",
            "key": key_text(first.record.key),
        }
        if self._letters is None:
            self._tally.records_skipped += len(letters)
            logger.warning("refused records are skipped", extra=extra)
            return None
        logger.warning("refused records become dead letters", extra=extra)
        confirmation = await self._letters.write(batch, letters, guard)
        self._tally.records_dead_lettered += len(letters)
        return confirmation
