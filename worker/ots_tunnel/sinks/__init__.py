"""Interface between the worker and a destination of records; `choice` opens the one that a document names.

Theory of operation. A channel's pipeline reads pages and hands each to the sink as a `Batch`. The sink confirms a batch
as a whole, once every record of it is stored, and only then is a checkpoint behind the batch written. Whatever was
not confirmed is read again after a restart: a sink stores at least once (docs/architecture.md rule 1).

There are two kinds of sinks. They are two types with different calls, so that the type checker refuses code that takes
one for the other:

    Immediate   `write` returns when the batch is stored                table, http, kafka, stdout, count, python
    Deferred    `take` returns a confirmation that ends later,          files, python with manual checkpoints
                so that several pages can share one file

An immediate sink can play a deferred one (`middleware.base.AtOnce`). The other way needs somebody who waits for the
confirmations, and nobody does that: a deferred sink behind middleware is a deferred sink.

The calls for one channel follow each other; calls for different channels overlap:

    open                                              once; the destination is there
        begin(channel, start)                         the channel is opened at a checkpoint
            turn(channel)                             before each batch: a wait that may be given up
            write(batch, guard)                       any number of times, in commit order; `take` of a deferred sink
            checkpointed(channel, page)               a checkpoint is durable: these pages never come again
        end(channel, abandoned)                       every confirmation of the channel has ended
    close

Right before bytes leave, a sink asks the batch's guard, which raises OwnershipLost once another client may own the
channel (docs/architecture.md rule 4). A sink repeats what fails for a moment, without a limit of tries. It raises
SinkRejected for what no repetition repairs, unless the batch tolerates refused records.

Example: pages A and B go into one file. `take(A)` and `take(B)` return confirmations a and b. The file appears, a
and b end, and the pipeline writes the checkpoint behind B. If the worker is killed before that, the next `begin` has
the checkpoint before A, and the sink replaces the file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import ClassVar

from ots_tunnel.fence import Guard
from ots_tunnel.model import ChannelId, ChannelType, Token
from ots_tunnel.sinks.batch import NO_TOKEN, Batch, DeadLetter, OnRefused
from ots_tunnel.sinks.confirmation import Confirmation, all_confirmed, confirmed
from ots_tunnel.sinks.contact import Contact
from ots_tunnel.sinks.cost import PageCost
from ots_tunnel.sinks.tally import Tally

__all__ = [
    "NO_TOKEN",
    "Batch",
    "Channels",
    "Confirmation",
    "Contact",
    "DeadLetter",
    "Deferred",
    "Guard",
    "Immediate",
    "OnRefused",
    "PageCost",
    "Sink",
    "all_confirmed",
    "confirmed",
]


class Channels(ABC):
    """The calls that both kinds of sinks have; see the module for their order."""

    #: Memory that a page takes while the sink is given it; middleware adds its own.
    cost: PageCost = PageCost()

    @abstractmethod
    async def open(self) -> None:
        """Connect, and check that records can be written.

        Raises:
            SinkRejected: the destination cannot take these records, such as a missing table.
        """

    @abstractmethod
    async def begin(self, channel_id: ChannelId, channel_type: ChannelType, start: Token) -> None:
        """A channel is opened at a checkpoint: its records at and after `start` come again, stored or not."""

    def turn(self, channel_id: ChannelId) -> Coroutine[None, None, None] | None:
        """What the next batch of the channel waits for before anything of it is done; None is nothing.

        The wait may be given up, and the batch with it: nothing has left, and nothing is in doubt.
        """
        return None

    @abstractmethod
    def checkpointed(self, channel_id: ChannelId, page: int) -> None:
        """The service has stored a checkpoint of the channel: its pages up to `Batch.page` never come again."""

    @abstractmethod
    async def end(self, channel_id: ChannelId, *, abandoned: bool) -> None:
        """A channel is closed: store the records that are held, or drop them if `abandoned`; confirmations end here.

        Raises:
            SinkRejected, OwnershipLost: as `write`.
        """

    @abstractmethod
    async def close(self) -> None:
        """Release connections; only `tally` and `contact` are called afterwards."""

    def tally(self) -> Tally:
        """Counts so far, beside stored records."""
        return Tally()

    def contact(self) -> Contact | None:
        """What is known of the destination; None where the sink does not tell."""
        return None


class Immediate(Channels):
    """Stores records at least once and in order per primary key, before `write` returns."""

    async def begin(self, channel_id: ChannelId, channel_type: ChannelType, start: Token) -> None:
        """Records that come again are written again."""

    def checkpointed(self, channel_id: ChannelId, page: int) -> None:
        """Nothing waits for a checkpoint."""

    async def end(self, channel_id: ChannelId, *, abandoned: bool) -> None:
        """No records are held."""

    @abstractmethod
    async def write(self, batch: Batch, guard: Guard) -> None:
        """Store every record of `batch`; repeat transient failures until they pass or the call is cancelled.

        Raises:
            SinkRejected: records are refused for good.
            OwnershipLost: the guard forbids to send; a part of the records may be stored.
        """


class Deferred(Channels):
    """Stores records at least once and in order per primary key, and says later that it has."""

    #: Whether records leave this process: a write or a checkpoint that is given up may then still take effect, and its
    #: channel waits for D before it is read again (`fence`).
    sends: ClassVar[bool] = True
    #: Whether `take` is given pages without records as well: their tokens tell how far the channel was read.
    every_page: ClassVar[bool] = False

    @abstractmethod
    async def take(self, batch: Batch, guard: Guard) -> Confirmation:
        """Take every record of `batch`; the sink holds them outside of the memory budget, until more have come.

        Returns:
            A confirmation that ends when every record is stored. The pipeline hands over later batches meanwhile, and
            the confirmations of a channel end in the order of its batches.

        Raises:
            SinkRejected: records are refused for good.
            OwnershipLost: the guard forbids to send; a part of the records may be stored.
        """

    async def pass_over(self, batch: Batch, guard: Guard) -> None:
        """Middleware leaves out every record of `batch`; its position still tells where a replay begins.

        Raises:
            SinkError, OwnershipLost: as `take`.
        """
        return None


#: A sink of either kind.
Sink = Immediate | Deferred
