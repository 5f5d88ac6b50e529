"""The read mark: until when every stream channel of a tunnel was certainly read, kept for workers to come. Pure.

Theory of operation
-------------------
Where the service does not advance the token of an idle channel, only the workers know that they have read it to its
end, and they forget it when they end. So the operator keeps a mark, in status.readUntil and in the workers' document:

    at this time, by the service's clock, every stream channel of this tunnel, parents included, had been read to its
    end, and the sink had confirmed what was read

A look may move it to the earliest of these times:

    the description's service time    a channel that began later is not listed, and has nothing older
    for every listed stream channel that has not ended, until when a worker reports it as consumed

A channel that has ended was read to its end. One that waits for its parents, or that nobody reports, holds the mark
where it is. Only reports of workers on this very tunnel count. A mark of another tunnel is void.

A query by Spark looks at tunnel and channels itself, in the same way, and its record has the time. It tells nothing to
the next driver, which finds the time of each channel in Spark's log.

It is moved only when it tells something new: when it is later, by more than a tenth of the retention, than what the
consume points and the mark as it stands tell of some channel. So a table whose consume points move costs no write, and
one whose consume points stand still two in a tenth of the retention: the status and the ConfigMap.

When the last worker goes because nothing is to be read (docs/architecture.md rule 18), it is moved in any case: from
then on nobody reports, and a tunnel that is lost while nobody reads takes its consume points along.

Example: retention 10 h, one channel, consume point 12:00, mark none. At 12:59 the worker has read until 12:59, and
there is no mark. At 13:01 it is 13:01, at 14:02 it is 14:02. A worker that starts at 23:00 finds that 14:02 is within
the retention.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

from ots_tunnel.model import Token, TunnelDescription
from ots_tunnel.protocol.possible_gap import ended_channels, read_until
from ots_tunnel.protocol.read_by_all import read_by_all, unended
from ots_tunnel.query.record import QueryProgress
from ots_tunnel_operator.times import parse_time, timestamp
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import World

#: Share of the retention by which a mark is later than what is known without it.
_NEWS = 0.1


@dataclass(frozen=True, slots=True)
class ReadMark:
    """Every stream channel of a tunnel had been read to its end at `time`, Unix seconds by the service's clock."""

    tunnel_id: str
    time: float

    def document(self) -> dict[str, str]:
        """The mark as status.readUntil has it."""
        return {"tunnelId": self.tunnel_id, "time": timestamp(self.time)}


def read_mark(world: World, query: QueryProgress | None = None, *, is_last: bool = False) -> ReadMark | None:
    """The mark of the recorded tunnel after this look; None without one.

    Args:
        world: what was observed.
        query: the record of a query on this very tunnel; None without one.
        is_last: whether the last worker goes now, so that no look moves it for a while.
    """
    kept = _kept(world)
    table = world.source
    if not isinstance(world.tunnel, Tunnel) or not isinstance(table, Table) or not table.stream_retention_seconds:
        return kept
    description = world.tunnel.description
    tunnel_id = str(description.tunnel.tunnel_id)
    if tunnel_id != world.resource.recorded_tunnel.get("id"):
        return kept
    found = _read(world, description, query)
    if found is None:
        return kept
    known, news = _known_without(description, kept), _NEWS * table.stream_retention_seconds
    if is_last:
        known, news = (None if kept is None else kept.time), 0.0
    if known is not None and found - known <= news:
        return kept
    return ReadMark(tunnel_id, floor(found))


def _kept(world: World) -> ReadMark | None:
    recorded = world.resource.status.get("readUntil") or {}
    tunnel_id, time = recorded.get("tunnelId"), parse_time(recorded.get("time"))
    if not tunnel_id or time is None or tunnel_id != world.resource.recorded_tunnel.get("id"):
        return None
    return ReadMark(str(tunnel_id), time)


def _read(world: World, description: TunnelDescription, query: QueryProgress | None) -> float | None:
    """The time at which every listed stream channel had been read to its end; None is unknown."""
    if world.resource.spec.uses_query:
        return None if query is None else query.read_until
    reported: dict[str, float] = {}
    for pod in world.pods:
        if pod.report is None or pod.report.tunnel_id != description.tunnel.tunnel_id:
            continue
        for channel in pod.report.channels:
            if channel.consumed_up_to is not None:
                reported[channel.channel_id] = max(reported.get(channel.channel_id, 0.0), channel.consumed_up_to)
    return read_by_all(description, reported)


def _known_without(description: TunnelDescription, kept: ReadMark | None) -> float | None:
    """Until when the channel of which the least is known was read, as the next worker would see it; None is unknown."""
    mark = kept.time if kept is not None else None
    parents = ended_channels(description)
    known = [
        read_until(channel.channel_id, Token(""), description, parents=parents, mark=mark)
        for channel in unended(description)
    ]
    return None if None in known else min((time for time in known if time is not None), default=None)
