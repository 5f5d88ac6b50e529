"""Refused records are tolerated: they are skipped or become dead letters, are counted and logged.

The change of a refused record is missing at the destination, so a row may be there in part (docs/architecture.md rule
17). While dead letters cannot be stored, no checkpoint passes them, and the next page with some waits: no record is
dropped without a trace. They are stored in files and confirmed later, so a sink with dead letters is a deferred one,
whatever it was before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ots_tunnel.fence import Guard
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import ChannelId, ChannelType, Token
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch, Confirmation, Contact, DeadLetter, Deferred, all_confirmed, confirmed
from ots_tunnel.sinks.key_text import key_text
from ots_tunnel.sinks.middleware.base import Middleware, Wrapping
from ots_tunnel.sinks.tally import MOST_KEYS, Tally

if TYPE_CHECKING:
    from ots_tunnel.sinks.middleware.dead_letters import DeadLetters

logger = logging.getLogger(__name__)


class Refused:
    """The records of one batch that are refused, until the sink has taken the batch."""

    def __init__(self) -> None:
        self._letters: dict[int, DeadLetter] = {}
        self._is_taken = False

    def __repr__(self) -> str:
        return f"Refused({len(self._letters)} records)"

    def add(self, record: Record, code: str, message: str) -> None:
        """See `OnRefused`.

        Raises:
            RuntimeError: the sink has taken the batch: a checkpoint could pass the record without a trace.
        """
        if self._is_taken:
            raise RuntimeError("a sink refuses a record after it has taken the batch")
        # A record that is written in pieces counts as one refused record.
        self._letters.setdefault(id(record), DeadLetter(record, code, message))

    def taken(self) -> list[DeadLetter]:
        """The refused records, once the sink has taken the batch."""
        self._is_taken = True
        return list(self._letters.values())


class RefusedKeys:
    """Counts the different keys of refused records, by their hashes, up to MOST_KEYS."""

    def __init__(self) -> None:
        self._hashes: set[int] = set()

    def add(self, letters: Sequence[DeadLetter]) -> int:
        """Take refused records; the number of different keys so far."""
        for letter in letters:
            if len(self._hashes) < MOST_KEYS:
                self._hashes.add(hash(letter.record.key))
        return len(self._hashes)


class Tolerant(Middleware):
    """Skips the records that the sink refuses."""

    def __init__(self) -> None:
        self._tally = Tally()
        self._keys = RefusedKeys()

    def __repr__(self) -> str:
        return "Tolerant()"

    async def portions(self, batch: Batch, guard: Guard) -> AsyncGenerator[Batch]:
        """See `Middleware.portions`."""
        refused = Refused()
        yield replace(batch, on_refused=refused.add)
        if letters := refused.taken():
            self._tally.records_skipped += len(letters)
            self._tally.keys_refused = self._keys.add(letters)
            _warn("refused records are skipped", batch, letters)

    def tally(self) -> Tally:
        """See `Middleware.tally`."""
        return self._tally


class LetteringSink(Wrapping[Deferred], Deferred):
    """Stores a batch without the records that the wrapped sink refuses, and those as dead letters.

    Args:
        letters: stores refused records.
    """

    def __init__(self, sink: Deferred, letters: DeadLetters) -> None:
        super().__init__(sink)
        self._letters = letters
        #: Channels that have not written a batch since `begin`.
        self._begun: set[ChannelId] = set()
        #: Of each channel the last confirmation of a page without letters, behind the one of the sink that it is for.
        self._plain: dict[ChannelId, tuple[Confirmation, Confirmation]] = {}
        self._tally = Tally()
        self._keys = RefusedKeys()

    def __repr__(self) -> str:
        return f"LetteringSink({self._sink!r}, {self._letters!r})"

    async def open(self) -> None:
        """See `Channels.open`."""
        await self._letters.open()
        await super().open()

    async def begin(self, channel_id: ChannelId, channel_type: ChannelType, start: Token) -> None:
        """See `Channels.begin`."""
        await self._letters.begin(channel_id, channel_type, start)
        self._begun.add(channel_id)
        self._plain.pop(channel_id, None)
        await super().begin(channel_id, channel_type, start)

    async def take(self, batch: Batch, guard: Guard) -> Confirmation:
        """See `Deferred.take`; refused records count as stored once they are dead letters."""
        await self._resume(batch, guard)
        refused = Refused()
        lettered: Confirmation = asyncio.get_running_loop().create_future()
        try:
            stored = await self._sink.take(replace(batch, on_refused=refused.add, after=lettered), guard)
            letters = refused.taken()
            written = await self._write(batch, letters, guard) if letters else confirmed()
        except BaseException:
            lettered.cancel()
            raise
        written.add_done_callback(partial(_pass_on, lettered))
        # also without letters: the pages of a file are confirmed in one round, or a checkpoint could come between them
        return all_confirmed([stored, written]) if letters else self._without_letters(batch.channel_id, stored, written)

    def _without_letters(self, channel_id: ChannelId, stored: Confirmation, written: Confirmation) -> Confirmation:
        """The confirmation of a page: one for all pages that the sink confirms at once, which take no memory then."""
        before = self._plain.get(channel_id)
        if before is None or before[0] is not stored:
            before = self._plain[channel_id] = (stored, all_confirmed([stored, written]))
        return before[1]

    async def _write(self, batch: Batch, letters: Sequence[DeadLetter], guard: Guard) -> Confirmation:
        _warn("refused records become dead letters", batch, letters)
        written = await self._letters.write(batch, letters, guard)
        self._tally.records_dead_lettered += len(letters)
        self._tally.keys_refused = self._keys.add(letters)
        return written

    async def pass_over(self, batch: Batch, guard: Guard) -> None:
        """See `Deferred.pass_over`."""
        await self._resume(batch, guard)
        await self._sink.pass_over(batch, guard)

    def checkpointed(self, channel_id: ChannelId, page: int) -> None:
        """See `Channels.checkpointed`."""
        super().checkpointed(channel_id, page)
        self._letters.checkpointed(channel_id, page)

    async def end(self, channel_id: ChannelId, *, abandoned: bool) -> None:
        """See `Channels.end`."""
        self._plain.pop(channel_id, None)
        ended = False
        try:
            await super().end(channel_id, abandoned=abandoned)
            ended = True
        finally:
            # After a failed sink no checkpoint follows: letters that wait for one would never end.
            await self._letters.end(channel_id, abandoned=abandoned or not ended)

    def tally(self) -> Tally:
        """See `Channels.tally`."""
        return super().tally() + self._tally

    def contact(self) -> Contact:
        """See `Channels.contact`; a place of dead letters that fails blocks its channel, too."""
        known, lettering = super().contact() or Contact(), self._letters.contact().failing
        failing = [write for write in (known.failing, lettering) if write is not None]
        return replace(known, failing=min(failing, key=lambda write: write.since, default=None))

    async def _resume(self, batch: Batch, guard: Guard) -> None:
        """Remove what this replay replaces, before the first batch of a channel."""
        if batch.channel_id in self._begun:
            await self._letters.resume(batch, guard)
            self._begun.discard(batch.channel_id)


def _pass_on(lettered: Confirmation, written: Confirmation) -> None:
    """Let what waits for letters go on, or fail, once they are written."""
    if lettered.done():
        return
    if written.cancelled():
        lettered.cancel()
    elif (error := written.exception()) is not None:
        lettered.set_exception(error)
        lettered.exception()  # perhaps no file waits for it, and the confirmation of the batch has it as well
    else:
        lettered.set_result(None)


def _warn(sentence: str, batch: Batch, letters: Sequence[DeadLetter]) -> None:
    first = letters[0]
    logger.warning(
        sentence,
        extra={
            "action": LogAction.RECORDS_REFUSED,
            "channel_id": batch.channel_id,
            "records": len(letters),
            "error": f"{first.code}: {first.message}",
            "key": key_text(first.record.key),
        },
    )
