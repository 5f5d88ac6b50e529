"""Where records go: one small interface; `choice` opens the implementation that a document names.

A sink confirms a batch as a whole, at once or later: only when every record of it is stored may a checkpoint be
written (docs/architecture.md rule 1).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ots_tunnel.fence import Guard
from ots_tunnel.model import ChannelId, ChannelType, Token
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.tally import Tally

__all__ = ["Batch", "Confirmation", "DeadLetter", "Guard", "Immediate", "Refused", "Sink", "both"]

#: Ends when every record of a batch is stored; raises what `Sink.write` raises. Whoever holds it may cancel it.
Confirmation = asyncio.Future[None]

#: Takes a record that is refused for good, the reason's code and its text.
Refused = Callable[[Record, str, str], None]

#: The token of records that were not read from a tunnel.
NOWHERE = Token("")


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of one channel in commit order, usually one page.

    Args:
        start: the token the page was read at, a name for its position that every replay repeats.
        following: the token of the page after it.
        head: the page's first record, whatever a transform left of the page; None means the first of `records`.
        refused: told of every record that is refused for good, while the others are stored; None means that the first
            refusal is raised.
    """

    channel_id: ChannelId
    channel_type: ChannelType
    records: Sequence[Record]
    start: Token = NOWHERE
    following: Token = NOWHERE
    head: Record | None = None
    refused: Refused | None = None

    @property
    def comes_again(self) -> bool:
        """Whether no checkpoint will be behind it: it is cut at the end time, and every resume reads it once more."""
        return self.start != NOWHERE and self.start == self.following

    def __repr__(self) -> str:
        return f"Batch({self.channel_type}, {len(self.records)} records)"


class Sink(Protocol):
    """Stores records at least once and in order per primary key.

    Calls for different channels may overlap; those of one channel follow each other: `begin`, any number of `write`,
    `end`.
    """

    async def open(self) -> None:
        """Connect and check that writing can begin.

        Raises:
            SinkRejected: the destination cannot take these records, such as a missing table.
        """
        ...

    async def begin(self, channel_id: ChannelId, channel_type: ChannelType, start: Token) -> None:
        """A channel is opened at a checkpoint: whatever is stored of it at or after `start` will come again."""
        ...

    async def write(self, batch: Batch, guard: Guard) -> Confirmation | None:
        """Store every record of `batch`; transient failures are tried again until they pass or we are cancelled.

        Returns:
            None when every record is stored. A confirmation from a sink that keeps records, outside of the memory
            budget, until more have come: the channel's later batches are handed over meanwhile, and its confirmations
            end in their order.

        Raises:
            SinkRejected: records are refused for good.
            OwnershipLost: the guard forbids to send; records may be stored in part.
        """
        ...

    def checkpointed(self, channel_id: ChannelId, token: Token) -> None:
        """The service has stored a checkpoint of the channel: what was confirmed before it never comes again."""
        ...

    async def end(self, channel_id: ChannelId, *, abandoned: bool) -> None:
        """A channel is closed: store what is held back of it, or drop it if `abandoned`; confirmations end here.

        Raises:
            SinkRejected, OwnershipLost: as `write`.
        """
        ...

    async def close(self) -> None:
        """Release connections; no call follows but `tally`."""
        ...

    def tally(self) -> Tally:
        """What was counted so far beside stored records."""
        ...


class Immediate:
    """The part of `Sink` that a sink without memory shares with all such sinks: it confirms when `write` returns."""

    async def begin(self, channel_id: ChannelId, channel_type: ChannelType, start: Token) -> None:
        """What comes again is written again."""

    def checkpointed(self, channel_id: ChannelId, token: Token) -> None:
        """Nothing waits for it."""

    async def end(self, channel_id: ChannelId, *, abandoned: bool) -> None:
        """Nothing is held back."""

    def tally(self) -> Tally:
        """Nothing is counted."""
        return Tally()


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that was refused for good, with the reason."""

    record: Record = field(repr=False)
    code: str
    message: str

    @property
    def size(self) -> int:
        """Bytes of the record as it came."""
        return self.record.size


def both(first: Confirmation, second: Confirmation) -> Confirmation:
    """Ends when both have; raises what the first one to fail raises."""
    whole: Confirmation = asyncio.get_running_loop().create_future()

    def look(ended: Confirmation) -> None:
        error = None if ended.cancelled() else ended.exception()
        if whole.done():
            return
        if error is not None:
            whole.set_exception(error)
        elif ended.cancelled():
            whole.cancel()
        elif first.done() and second.done():
            whole.set_result(None)

    first.add_done_callback(look)
    second.add_done_callback(look)
    return whole
