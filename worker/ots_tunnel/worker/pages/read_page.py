"""One page in flight: from its read until the sink has confirmed it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ots_tunnel.client.page import Page
from ots_tunnel.fence import boottime
from ots_tunnel.model import SequenceInfo, Token
from ots_tunnel.protocol.page import count_actions, reached_log_end
from ots_tunnel.worker.pages.budget import Share


@dataclass(slots=True, eq=False)
class ReadPage:
    """A page that was read. It owns its records and their room in the byte budget until `release`.

    Args:
        start: the token at which it was read.
        following: the token to store once it is confirmed.
        answer: the service's answer; without records once they are released.
        share: the room of the records.
        position: of the last record; None without records, and on base channels.
        is_last: nothing after it lies before the end time.
        asked_at: when the read began, in seconds since boot: what the page says of the log's end is as old as that.
    """

    start: Token
    following: Token
    answer: Page
    share: Share = field(repr=False)
    position: SequenceInfo | None = None
    is_last: bool = False
    asked_at: float = field(default_factory=boottime, repr=False)
    #: Records of each action; they are counted while the records are there.
    actions: Mapping[int, int] = field(init=False, repr=False)
    #: How many pages of the channel were handed over with this one; 0 before it was.
    number: int = 0
    #: How many pages this one stands for, see `join`.
    pages: int = 1
    #: Whether it ends where the log ended when it was read.
    reached_log_end: bool = field(init=False, repr=False)
    #: The service's time where the log ended with it, or with the last one of those it stands for; None if with none.
    caught_up_time: float | None = field(init=False, repr=False)
    #: Set by `release`.
    released: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    def __post_init__(self) -> None:
        self.actions = count_actions(self.answer.records)
        self.reached_log_end = reached_log_end(self.answer.may_more, self.rows)
        self.caught_up_time = self.answer.service_time if self.reached_log_end else None

    @property
    def rows(self) -> int:
        """Number of its records, also after `release`."""
        return sum(self.actions.values())

    def join(self, following: ReadPage) -> None:
        """Stand for the page that follows as well, which is confirmed at the same moment; both are released.

        Rows and their bytes are those of both, everything else is that of the later one; what only the earlier one
        tells stays.
        """
        size_bytes = sum(page.answer.size_bytes for page in (self, following) if page.rows)
        self.actions = Counter(self.actions) + Counter(following.actions)
        self.answer = replace(following.answer, size_bytes=size_bytes)
        self.following, self.is_last, self.asked_at = following.following, following.is_last, following.asked_at
        self.position = following.position or self.position
        self.number, self.pages = following.number, self.pages + following.pages
        self.reached_log_end = following.reached_log_end
        if following.caught_up_time is not None:
            self.caught_up_time = following.caught_up_time

    def release(self) -> None:
        """Drop the records and give their room back: they are stored, or the sink keeps them outside the budget."""
        answer = self.answer
        self.answer = Page([], answer.next_token, answer.may_more, answer.size_bytes, answer.service_time)
        self.share.release()
        self.released.set()
