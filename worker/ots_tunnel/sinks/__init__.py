"""Interface between the worker and a destination of records; `choice` opens the one that a document names.

Theory of operation. A channel's pipeline reads pages and hands each to the sink as a `Batch`. The sink confirms a batch
as a whole, once every record of it is stored, and only then is a checkpoint behind the batch written. Whatever was
not confirmed is read again after a restart: a sink stores at least once (docs/architecture.md rule 1).

There are two kinds of sinks:

    immediate   `write` returns None when the batch is stored           table, http, kafka, stdout, count
    deferred    `write` returns a confirmation that ends later,         files, python with manual checkpoints
                so that several pages can share one file

The calls for one channel follow each other; calls for different channels overlap:

    open                                              once; the destination is there
        begin(channel, start)                         the channel is opened at a checkpoint
            write(batch, guard) -> confirmation       any number of times, in commit order
            checkpointed(channel, token)              a checkpoint is durable: earlier batches never come again
        end(channel, abandoned)                       every confirmation of the channel has ended
    close

Right before bytes leave, a sink asks the batch's guard, which raises OwnershipLost once another client may own the
channel (docs/architecture.md rule 4). A sink repeats what fails for a moment, without a limit of tries. It raises
SinkRejected for what no repetition repairs, unless the batch tolerates refused records.

Example: pages A and B go into one file. `write(A)` and `write(B)` return confirmations a and b. The file appears, a
and b end, and the pipeline writes the checkpoint behind B. If the worker is killed before that, the next `begin` has
the checkpoint before A, and the sink replaces the file.
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

__all__ = ["Batch", "Confirmation", "DeadLetter", "Guard", "Immediate", "OnRefused", "Sink", "all_confirmed"]

#: Ends when every record of a batch is stored; raises what `Sink.write` raises. The pipeline may cancel it.
Confirmation = asyncio.Future[None]

#: Called with a record that the destination refuses for good, the reason's code and its text.
OnRefused = Callable[[Record, str, str], None]

#: The token of records that were not read from a tunnel.
NO_TOKEN = Token("")


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of one channel in commit order, usually one page.

    Args:
        start: the token that the page was read at: a name for its position, the same in every replay.
        following: the token of the page after it.
        head: the page's first record, also where a transform left it out; None means the first of `records`.
        on_refused: called with every record that is refused for good, while the others are stored; None means that
            the first refusal is raised.
    """

    channel_id: ChannelId
    channel_type: ChannelType
    records: Sequence[Record]
    start: Token = NO_TOKEN
    following: Token = NO_TOKEN
    head: Record | None = None
    on_refused: OnRefused | None = None

    @property
    def is_read_again(self) -> bool:
        """Whether no checkpoint will follow it: the page is cut at the end time, and every resume reads it again."""
        return self.start != NO_TOKEN and self.start == self.following

    def __repr__(self) -> str:
        return f"Batch({self.channel_type}, {len(self.records)} records)"


class Sink(Protocol):
    """Stores records at least once and in order per primary key; see the module for the order of calls."""

    async def open(self) -> None:
        """Connect, and check that records can be written.

        Raises:
            SinkRejected: the destination cannot take these records, such as a missing table.
        """
        ...

    async def begin(self, channel_id: ChannelId, channel_type: ChannelType, start: Token) -> None:
        """A channel is opened at a checkpoint: its records at and after `start` come again, stored or not."""
        ...

    async def write(self, batch: Batch, guard: Guard) -> Confirmation | None:
        """Store every record of `batch`; repeat transient failures until they pass or the call is cancelled.

        Returns:
            None when every record is stored. A confirmation from a sink that holds records, outside of the memory
            budget, until more have come: the pipeline hands over later batches meanwhile, and the confirmations of a
            channel end in the order of its batches.

        Raises:
            SinkRejected: records are refused for good.
            OwnershipLost: the guard forbids to send; a part of the records may be stored.
        """
        ...

    def checkpointed(self, channel_id: ChannelId, token: Token) -> None:
        """The service has stored a checkpoint of the channel: what was confirmed before never comes again."""
        ...

    async def end(self, channel_id: ChannelId, *, abandoned: bool) -> None:
        """A channel is closed: store the records that are held, or drop them if `abandoned`; confirmations end here.

        Raises:
            SinkRejected, OwnershipLost: as `write`.
        """
        ...

    async def close(self) -> None:
        """Release connections; only `tally` is called afterwards."""
        ...

    def tally(self) -> Tally:
        """Counts so far, beside stored records."""
        ...


class Immediate:
    """The calls of `Sink` that do nothing in a sink that confirms when `write` returns."""

    async def begin(self, channel_id: ChannelId, channel_type: ChannelType, start: Token) -> None:
        """Records that come again are written again."""

    def checkpointed(self, channel_id: ChannelId, token: Token) -> None:
        """Nothing waits for a checkpoint."""

    async def end(self, channel_id: ChannelId, *, abandoned: bool) -> None:
        """No records are held."""

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


def all_confirmed(confirmations: Sequence[Confirmation]) -> Confirmation | None:
    """One confirmation for all of `confirmations`, None without any; it fails with the first failure.

    It ends in the round of the loop after the last of them, in whatever order they end.
    """
    if len(confirmations) <= 1:
        return confirmations[0] if confirmations else None
    whole: Confirmation = asyncio.get_running_loop().create_future()

    def settle(ended: Confirmation) -> None:
        error = None if ended.cancelled() else ended.exception()
        if whole.done():
            return
        if error is not None:
            whole.set_exception(error)
        elif ended.cancelled():
            whole.cancel()
        elif all(confirmation.done() for confirmation in confirmations):
            whole.set_result(None)

    for confirmation in confirmations:
        confirmation.add_done_callback(settle)
    return whole
