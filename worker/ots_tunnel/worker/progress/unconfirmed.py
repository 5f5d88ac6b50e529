"""Pages that a sink has taken and not confirmed yet; they are confirmed in the order in which they were read.

A page takes about 2 KB here, and there may be any number: a dead letter that cannot be stored holds all behind it, and
a file may be filled for an hour. So neighbours are joined to one page where they are confirmed at one moment: they have
one confirmation, or that of the second has ended, as those of pages without records have, and it waits for the first.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from ots_tunnel.sinks import Confirmation
from ots_tunnel.worker.pages.read_page import ReadPage

#: Seconds that confirmations may take to pass through the middleware once the sink has ended the channel; it needs no
#: more than a few rounds of the loop.
SETTLE_SECONDS = 1.0
#: Pages from which on neighbours are joined, again whenever they have doubled: a pass over all costs little then.
JOINED_FROM = 32


class UnconfirmedPages:
    """The unconfirmed pages of one channel, without their records.

    Args:
        on_confirmed: called with every page once it and all before it are stored.
    """

    def __init__(self, on_confirmed: Callable[[ReadPage], None]) -> None:
        self._on_confirmed = on_confirmed
        self._waiting: deque[tuple[ReadPage, Confirmation]] = deque()
        self._added = asyncio.Event()
        self._join_at = JOINED_FROM

    def __repr__(self) -> str:
        return f"UnconfirmedPages({len(self._waiting)})"

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, page: ReadPage, confirmation: Confirmation) -> None:
        """Take a page; if its confirmation has ended, it waits only for the pages before it.

        Raises:
            SinkRejected, OwnershipLost: a confirmation failed.
        """
        self._waiting.append((page, confirmation))
        self._confirm_stored()
        if self._waiting:
            self._added.set()
        if len(self._waiting) >= self._join_at:
            self._join()

    async def run(self) -> None:
        """Watch the confirmations; runs until it is cancelled.

        Raises:
            SinkRejected, OwnershipLost: a confirmation failed.
        """
        while True:
            if not self._waiting:
                self._added.clear()
                await self._added.wait()
                continue
            _, confirmation = self._waiting[0]
            await asyncio.wait((confirmation,))
            self._confirm_stored()

    async def settle(self) -> None:
        """Confirm the remaining pages after the sink has ended the channel.

        Raises:
            SinkRejected, OwnershipLost: a confirmation failed. RuntimeError: the sink left one open.
        """
        unfinished = [each for _, each in self._waiting if not each.done()]
        if unfinished:
            await asyncio.wait(unfinished, timeout=SETTLE_SECONDS)
        self._confirm_stored()
        if self._waiting:
            raise RuntimeError(f"the sink ended the channel with {len(self._waiting)} pages unconfirmed")

    def close(self) -> None:
        """Cancel the confirmations that are left."""
        waiting, self._waiting = self._waiting, deque()
        for _, confirmation in waiting:
            confirmation.cancel()

    def _join(self) -> None:
        """Join neighbours that are confirmed at one moment."""
        joined: deque[tuple[ReadPage, Confirmation]] = deque()
        for page, confirmation in self._waiting:
            if joined and _end_together(joined[-1][1], confirmation):
                joined[-1][0].join(page)
            else:
                joined.append((page, confirmation))
        self._waiting, self._join_at = joined, max(JOINED_FROM, 2 * len(joined))

    def _confirm_stored(self) -> None:
        self._pop_stored()
        if self._waiting:
            _, confirmation = self._waiting[0]
            if confirmation.cancelled():
                raise RuntimeError("the sink cancelled the confirmation of a page")
            if confirmation.done():
                confirmation.result()

    def _pop_stored(self) -> None:
        while self._waiting and _is_stored(self._waiting[0][1]):
            self._on_confirmed(self._waiting.popleft()[0])
        self._join_at = max(JOINED_FROM, min(self._join_at, 2 * len(self._waiting)))


def _end_together(first: Confirmation, second: Confirmation) -> bool:
    return first is second or _is_stored(second)


def _is_stored(confirmation: Confirmation) -> bool:
    return confirmation.done() and not confirmation.cancelled() and confirmation.exception() is None
