"""Whether changes may be missing between what a channel has consumed and what it reads next; pure.

Theory of operation
-------------------
The service keeps a change for the retention of the table's stream. A channel that is read later may go on behind
changes that are gone, without an error (docs/protocol.md 4.8). The log is trimmed from its beginning, by age. So three
times decide, all by the service's clock:

    read until    everything committed until then has been consumed
    answered      when the next page was read
    first         commit time of the first record of that page

    read until                      first             may be missing
    unknown                         any               unknown: nothing is said
    within the retention            any               nothing: whatever follows is still kept
    before it                       at or before it   nothing: the log still has what was consumed, so all that follows
    before it                       later             changes from `read until` to `first`
    before it                       no record         changes from `read until` to `answered`

*Possible* means that neither the service nor the table can tell: perhaps nothing was written in that time.

How far a channel has been read. While it is open, its pages tell: a page that reached the log's end covers everything
until its answer, any other everything until its last record. When it is opened (`read_until`):

    1. The consume point of its description, because only a checkpoint moves it. A cursor may be moved by the service.
    2. The time in the token of its checkpoint, if there is no consume point, and a client has stored it.
    3. For a channel that was never consumed, the start of the tunnel: its start offset, or its creation. A tunnel that
       starts at the earliest change promises none of those from before its creation.
    4. A channel that was never consumed and has parents begins where they ended. A description does not tell whose
       child a channel is, so the caller has to: the end of any other channel says nothing, and hides what is lost.

The service may leave the token of an idle channel where it is; then nothing of this moves while workers read to the
log's end for weeks. A *read mark* is the evidence that outlives them: at its time, by the service's clock, every stream
channel of the tunnel, parents included, had been read to its end and confirmed. So it holds for each channel: those of
then were read, a channel that began later has nothing older, and one that began before with nothing but its parent's
end behind it was among those that were read. It belongs to one tunnel. The later of it and of 1 to 4 counts.

A read may also be refused because the log is trimmed there. Where the channel goes on behind that, the retention proves
nothing any more: the service has said that it dropped something (`gap_of_refusal`).

Nothing is lost that a stream never had. Where the stream was enabled before the tunnel was created, and so has not been
enabled again since, changes from before it was enabled are not missing, although a start offset may lie there.

Example: retention 168 h, the consume point is 1 June, 12:00, and the first page is answered on 9 June at 12:00. What
was written from 1 June, 12:00, to 2 June, 12:00, is gone. The first record is of 5 June: changes between 1 June, 12:00,
and 5 June may be missing.

Source: docs/protocol.md 2.4, 4.2, 4.8; docs/architecture.md 3.8.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from ots_tunnel.errors import CodecError
from ots_tunnel.model import ChannelId, ChannelInfo, ChannelStatus, ChannelType, Token, TunnelDescription, TunnelInfo
from ots_tunnel.protocol.token import parse_token

#: Seconds, the longest retention of a stream (docs/data-plane.md 2.8).
LONGEST_RETENTION: Final = 168 * 3600.0
#: Seconds, the shortest one.
SHORTEST_RETENTION: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Gap:
    """Changes committed after `start` and before `end`, Unix seconds, may be missing."""

    start: float
    end: float


def possible_gap(read_until: float | None, *, answered: float, first: float | None, retention: float) -> Gap | None:
    """The changes that may be missing before a page; None when none are, or when it cannot be known.

    Args:
        read_until: Unix seconds until which everything is consumed; None is unknown.
        answered: Unix seconds of the page's answer.
        first: Unix seconds at which its first record was committed; None without records.
        retention: seconds for which the service keeps a change.
    """
    if read_until is None or read_until >= answered - retention:
        return None
    if first is not None and first <= read_until:
        return None
    return Gap(read_until, answered if first is None else first)


def gap_of_refusal(read_until: float | None, *, answered: float, first: float | None) -> Gap | None:
    """As `possible_gap`, before the first page behind records that the service has dropped, as it said itself.

    So the retention proves nothing, and where it is unknown how far the channel was read, anything may be missing.
    """
    start = read_until or 0.0
    if first is not None and first <= start:
        return None
    return Gap(start, max(start, answered if first is None else first))


def read_on(read_until: float | None, *, answered: float, last: float | None, reached_end: bool) -> float | None:
    """Until when everything is consumed once a page is; arguments as in `possible_gap`.

    Args:
        last: Unix seconds at which the page's last record was committed; None without records.
        reached_end: whether the page ends where the log ended.
    """
    known = [time for time in (read_until, last, answered if reached_end else None) if time is not None]
    return max(known, default=None)


def read_until(
    channel_id: ChannelId,
    token: Token,
    tunnel: TunnelDescription | None,
    *,
    parents: Collection[str] = (),
    mark: float | None = None,
) -> float | None:
    """Until when a channel's changes are consumed at the time it is opened, Unix seconds; None is unknown.

    Args:
        token: of the channel's checkpoint; an empty one tells nothing.
        tunnel: a description taken after the channel's last checkpoint; None is unknown.
        parents: ids of the channels that it follows; only those that the tunnel lists as ended count.
        mark: the read mark of this tunnel, Unix seconds; None is none.
    """
    known = [time for time in (_described(channel_id, token, tunnel, parents), mark) if time is not None]
    return max(known, default=None)


def within_stream(until: float, tunnel: TunnelDescription | None, enabled: float | None) -> float:
    """`until`, or the time at which the stream was enabled where that is later and no change can be missing before it.

    Args:
        until: until when a channel is consumed, Unix seconds.
        tunnel: None is unknown.
        enabled: when the table's stream was enabled last, Unix seconds; None is unknown.
    """
    # in whole microseconds, as the service has it: creating a tunnel may enable the stream at the very same moment
    if tunnel is None or enabled is None or round(enabled * 1e6) * 1000 > tunnel.tunnel.create_time_ns:
        return until
    return max(until, enabled)


def needs_parents(channel_id: ChannelId, token: Token, tunnel: TunnelDescription) -> bool:
    """Whether a channel's parents tell more than its tunnel.

    It was never consumed, is beside channels that have ended, and its tunnel is older than what every stream keeps.
    """
    info = next((channel for channel in tunnel.channels if channel.channel_id == channel_id), None)
    if info is None or info.consume_point_ns > 0 or _token_time_ns(token) > 0 or not ended_channels(tunnel):
        return False
    start, now = promised_since(tunnel.tunnel), tunnel.service_time
    return start is None or now is None or now - start > SHORTEST_RETENTION


def ended_channels(tunnel: TunnelDescription) -> tuple[ChannelId, ...]:
    """The stream channels that have ended: each may be a parent of those that were never consumed."""
    return tuple(channel.channel_id for channel in tunnel.channels if _has_ended(channel))


def _described(
    channel_id: ChannelId, token: Token, tunnel: TunnelDescription | None, parents: Collection[str]
) -> float | None:
    channels = tunnel.channels if tunnel is not None else ()
    info = next((channel for channel in channels if channel.channel_id == channel_id), None)
    if info is not None and info.consume_point_ns > 0:
        return info.consume_point_ns / 1e9
    if (time_ns := _token_time_ns(token)) > 0:
        return time_ns / 1e9
    if tunnel is None or info is None:
        return None
    ends = [found.consume_point_ns for found in channels if found.channel_id in parents and _has_ended(found)]
    if not ends:
        return promised_since(tunnel.tunnel)
    return max(ends) / 1e9 or None


def _token_time_ns(token: Token) -> int:
    try:
        return parse_token(token).timestamp
    except CodecError:
        return 0


def _has_ended(channel: ChannelInfo) -> bool:
    return channel.channel_type is ChannelType.STREAM and channel.status is ChannelStatus.TERMINATED


def promised_since(tunnel: TunnelInfo) -> float | None:
    """Time of the first change that a tunnel is to deliver, Unix seconds; None where that is not known."""
    config = tunnel.stream_config
    offset_ns = config.start_offset_ns if config is not None else 0
    return (offset_ns or tunnel.create_time_ns) / 1e9 or None
