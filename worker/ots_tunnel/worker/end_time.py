"""Where a bounded stream ends: pure (docs/architecture.md 3, endTime).

The service bounds a tunnel only in the past; for any other time the worker stops by itself. A stream channel is done
when it has seen a later record, or an empty read answered after the end. The page with the boundary is written up to
it and never checkpointed, so it is read again on a resume.
"""

from __future__ import annotations

import enum
from bisect import bisect_right
from collections.abc import Set
from dataclasses import dataclass, replace

from ots_tunnel.client.tunnel import Page
from ots_tunnel.model import ChannelId, ChannelStatus, ClientId, Stage, TunnelDescription
from ots_tunnel.protocol.record import Record


@dataclass(frozen=True, slots=True)
class CutPage:
    """A page up to the end time.

    Args:
        page: without what is later.
        done: whether the channel needs no further read.
        whole: whether nothing was cut off: only then may the token behind it be stored.
    """

    page: Page
    done: bool
    whole: bool


def cut_page(page: Page, end_us: int) -> CutPage:
    """Leave out what was committed after `end_us` (Unix microseconds).

    Raises:
        CodecError: a record of a stream channel has no position.
    """
    if not page.records:
        return CutPage(page, page.service_time is not None and page.service_time * 1e6 > end_us, True)
    if _time(page.records[-1]) <= end_us:
        return CutPage(page, False, True)
    kept = bisect_right(page.records, end_us, key=_time)
    return CutPage(replace(page, records=page.records[:kept]), True, False)


def _time(record: Record) -> int:
    sequence = record.sequence
    return 0 if sequence is None else sequence.timestamp_us


class Completion(enum.Enum):
    """How far a tunnel is from where one of its clients stands."""

    OPEN = "there is something to read"
    MINE = "every channel of this client, and every channel that nobody has, is done"
    THEIRS = "as MINE, and a client whose id comes first is there to take over and end it"
    ALL = "every channel is done"


def completion(
    tunnel: TunnelDescription, client_id: ClientId | None, done: Set[ChannelId], *, settled: bool
) -> Completion:
    """Judge a tunnel.

    Args:
        client_id: who asks.
        done: its channels that have reached the end time.
        settled: whether the same was found two heartbeats ago: a channel that still waits then is the child of one
            that stopped at the end time, and has nothing before it.
    """
    if tunnel.tunnel.stage != Stage.STREAM or not tunnel.channels:
        return Completion.OPEN
    others: set[ClientId] = set()
    for channel in tunnel.channels:
        if channel.status is ChannelStatus.TERMINATED or channel.channel_id in done:
            continue
        if channel.status is ChannelStatus.WAIT and done and settled:
            continue
        if channel.client_id and channel.client_id != client_id:
            others.add(channel.client_id)
            continue
        return Completion.OPEN
    if not others:
        return Completion.ALL
    # Clients that waited for each other's channels, which are held until somebody leaves, would wait for ever.
    leaves = client_id is not None and done and min(others) < client_id
    return Completion.THEIRS if leaves else Completion.MINE
