"""The calls of one shard as a channel's: its records, and the checkpoint in its lease.

A token is the text of a position; the end of the shard is `FINISHED`. The checkpoint is read when no earlier one of
this worker can be carried out any more (`HeldLease.settle`): every replay begins there.

Once a page is read from TRIM_HORIZON, its place becomes the checkpoint, before the page goes to the sink
(`following.first_place`).
"""

from __future__ import annotations

from ots_tunnel.client.page import Page
from ots_tunnel.model import FINISHED, Checkpoint, Token
from ots_tunnel.stream.following.first_place import first_place
from ots_tunnel.stream.following.reader import ShardReader
from ots_tunnel.stream.holding.held_lease import HeldLease
from ots_tunnel.stream.lease.lease import SHARD_END, TRIM_HORIZON, Position
from ots_tunnel.transport import BeforeAnswer

#: Counter of a lease that was taken for the first time.
FIRST_TAKE = 1


def token_of(position: Position) -> Token:
    """The token of a position; an empty position is the oldest record."""
    return FINISHED if position == SHARD_END else Token(position or TRIM_HORIZON)


def position_of(token: Token) -> Position:
    """The position of a token."""
    return SHARD_END if token == FINISHED else Position(token)


class ShardCursor:
    """The records of a shard, and the checkpoint in the lease that is held."""

    def __init__(self, reader: ShardReader, held: HeldLease) -> None:
        self._reader = reader
        self._held = held

    def __repr__(self) -> str:
        return f"ShardCursor({self._held.shard_id})"

    async def get(self) -> Checkpoint:
        """The stored checkpoint; its number is 0 for a shard that no worker has read.

        Raises:
            OwnershipLost: the lease is not held any more.
            TunnelError: it is not known whether it is.
        """
        token = token_of(await self._held.settle())
        is_unread = token == Token(TRIM_HORIZON) or self._held.taken.counter <= FIRST_TAKE
        return Checkpoint(token, 0 if is_unread else 1)

    async def put(self, checkpoint: Checkpoint) -> None:
        """Store a checkpoint, which renews the lease; see `HeldLease.store`."""
        await self._held.store(position_of(checkpoint.token))

    async def read(self, token: Token, before_answer: BeforeAnswer) -> Page:
        """The page at a token; see `ShardReader.read`.

        Raises:
            OwnershipLost: the lease is not held any more. TunnelError: as there, or the place of the first page could
                not be stored.
        """
        page = await self._reader.read(position_of(token), before_answer)
        place = first_place(self._reader, self._held)
        if place is not None:
            await self._held.store(place)
        following = FINISHED if page.next_iterator is None else Token(page.next_iterator)
        return Page(page.records, following, page.may_more, page.size_bytes, page.service_time)
