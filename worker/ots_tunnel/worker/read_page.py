"""One page in flight: from its read until the sink has confirmed it.

The service bounds a tunnel only by a time in the past; for any other end time the worker stops by itself. A stream
channel is done when it has seen a later record, or an empty read that was answered after the end. The page with the
boundary is written up to it and its token is never stored, so every resume reads it again (docs/architecture.md 3.4).
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ots_tunnel.client.tunnel import Page
from ots_tunnel.model import SequenceInfo, Token
from ots_tunnel.protocol.page import count_actions
from ots_tunnel.protocol.record import Record
from ots_tunnel.worker.budget import Share


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
    """

    start: Token
    following: Token
    answer: Page
    share: Share = field(repr=False)
    position: SequenceInfo | None = None
    is_last: bool = False
    #: Records of each action; they are counted while the records are there.
    actions: Mapping[int, int] = field(init=False, repr=False)
    #: Set by `release`.
    released: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    def __post_init__(self) -> None:
        self.actions = count_actions(self.answer.records)

    @property
    def rows(self) -> int:
        """Number of its records, also after `release`."""
        return sum(self.actions.values())

    @property
    def reached_log_end(self) -> bool:
        """Whether the page ends where the log ended when it was read (docs/protocol.md 4.7)."""
        return not self.rows if self.answer.may_more is None else not self.answer.may_more

    def release(self) -> None:
        """Drop the records and give their room back: they are stored, or the sink keeps them outside the budget."""
        answer = self.answer
        self.answer = Page([], answer.next_token, answer.may_more, answer.size_bytes, answer.service_time)
        self.share.release()
        self.released.set()


@dataclass(frozen=True, slots=True)
class CutPage:
    """A page up to the end time.

    Args:
        page: without later records.
        done: whether the channel needs no further read.
        whole: whether no record was cut off: only then may the token behind it be stored.
    """

    page: Page
    done: bool
    whole: bool


def cut_page(page: Page, end_us: int) -> CutPage:
    """Leave out records committed after `end_us` (Unix microseconds).

    Raises:
        CodecError: a record of a stream channel has no position.
    """
    if not page.records:
        return CutPage(page, page.service_time is not None and page.service_time * 1e6 > end_us, True)
    if _commit_time_us(page.records[-1]) <= end_us:
        return CutPage(page, False, True)
    kept = bisect_right(page.records, end_us, key=_commit_time_us)
    return CutPage(replace(page, records=page.records[:kept]), True, False)


def _commit_time_us(record: Record) -> int:
    sequence = record.sequence
    return 0 if sequence is None else sequence.timestamp_us
