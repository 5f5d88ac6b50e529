"""Pages that a sink has taken over and not confirmed yet: their order is kept, their records are not."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

from ots_tunnel.client.tunnel import Page
from ots_tunnel.model import ChannelType, SequenceInfo, Token
from ots_tunnel.protocol.page import count_actions
from ots_tunnel.sinks import Confirmation


@dataclass(frozen=True, slots=True)
class HandedPage:
    """What has to be known of a page when it is confirmed."""

    next_token: Token
    rows: int
    size_bytes: int
    may_more: bool | None
    service_time: float | None
    actions: Mapping[int, int]
    last: SequenceInfo | None

    @classmethod
    def of(cls, page: Page, channel_type: ChannelType, following: Token) -> Self:
        """The facts of a page; only stream records have a position.

        Args:
            following: the token to store once it is confirmed.

        Raises:
            CodecError: the last record is malformed.
        """
        is_stream = channel_type is ChannelType.STREAM
        return cls(
            following,
            page.rows,
            page.size_bytes,
            page.may_more,
            page.service_time,
            count_actions(page.records),
            page.records[-1].sequence if page.records and is_stream else None,
        )


class HandedPages:
    """The pages of one channel between hand-over and confirmation.

    Args:
        confirmed: told of every page once it and all before it are stored.
    """

    def __init__(self, confirmed: Callable[[HandedPage], None]) -> None:
        self._confirmed = confirmed
        self._waiting: deque[tuple[HandedPage, Confirmation | None]] = deque()
        self._failed = asyncio.get_running_loop().create_future()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def failed(self) -> asyncio.Future[None]:
        """Never has a result; raises what a confirmation raised."""
        return self._failed

    def add(self, page: HandedPage, confirmation: Confirmation | None) -> None:
        """Take a page; without a confirmation it is stored already, and waits for those before it."""
        if confirmation is None and not self._waiting:
            self._confirmed(page)
            return
        self._waiting.append((page, confirmation))
        if confirmation is not None:
            confirmation.add_done_callback(self._advance)

    def settle(self) -> None:
        """Confirm what is left after the sink has ended the channel.

        Raises:
            SinkRejected, OwnershipLost: a confirmation failed. RuntimeError: the sink left one open.
        """
        self._advance()
        if self._failed.done():
            self._failed.result()
        if self._waiting:
            raise RuntimeError(f"the sink ended the channel with {len(self._waiting)} pages unconfirmed")

    def close(self) -> None:
        """Forget what is not confirmed."""
        waiting, self._waiting = self._waiting, deque()
        for _, confirmation in waiting:
            if confirmation is not None:
                confirmation.remove_done_callback(self._advance)
                confirmation.cancel()
        self._failed.cancel()

    def _advance(self, _: Confirmation | None = None) -> None:
        while self._waiting:
            page, confirmation = self._waiting[0]
            if confirmation is not None:
                if not confirmation.done() or confirmation.cancelled():
                    return
                error = confirmation.exception()
                if error is not None:
                    if not self._failed.done():
                        self._failed.set_exception(error)
                    return
            self._waiting.popleft()
            self._confirmed(page)
