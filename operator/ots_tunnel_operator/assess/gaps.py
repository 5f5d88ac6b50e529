"""Changes that may be missing because nobody read them in time, as seen from outside and by the workers. Pure.

Theory of operation
-------------------
The stream keeps changes for its retention, and only those since it was enabled. Whoever reads later may go on behind
changes that are gone, without an error (docs/architecture.md 3.8). Two parties look:

    the worker     compares each page with what it consumed before; it reports a gap in /channels, or ends with one; of
                   a query the driver does, in its record
    the operator   compares in every look until when a channel was consumed with what the stream keeps

A stream without a tunnel has no consume points; there `assess.shards.trimmed` finds what is gone.

The operator's finding is the weaker one: the log may still hold what is older than the retention, and the consume
point of an idle table may stand still. It holds while it is seen, that of a shard also until this process has looked
at the shard, and stops no worker, since a worker that reads on refutes it. A worker's finding is recorded for good.
While it is not accepted, workers are stopped: they could only find it again.

A retention that is raised later brings nothing back, but neither a look nor a worker notices any more that something
was dropped: what was read last is within it. So a finding that would go for that reason alone is a lasting one: it is
recorded for good and stops the workers, as one of theirs. The look that sees the longer retention first still counts
with the one in the status: the retention may have been raised while no operator looked. A finding that only this shows
is lasting at once, before workers start that would read on behind it.
`spec.source.tunnel.onPossibleGap: Continue` accepts every gap of the status, and a worker that has it reports what it
has passed. Changes that are lost later are not accepted, although a worker that knows nothing of the past lets each gap
of a shard begin with the stream: of a gap that includes an accepted one only what lies behind that one counts.

A channel was consumed until the latest of five times: its consume point (without one, the start that
`protocol.possible_gap` gives it), the read mark (`assess.read_mark`), what a worker reports, what a worker reported to
this operator before, and where the gap begins that an operator has recorded. Of a channel that was never consumed
any one that has ended may be the parent: only a worker asks whose child it is, and reports what the operator passes
over. The mark keeps the restart of a worker on an idle table from looking like a gap, also to an operator that has
restarted as well.

Example: retention 7 days, no worker since 1 June. From 8 June on the object is Stalled with PossibleGap: changes from
1 June to (now - 7 days) may be missing. The end moves on with time; it is rounded up to a full hour, so that it costs
one status write an hour. It never moves back: a retention that is raised does not bring back what was lost.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from ots_tunnel.errors import PossibleGap
from ots_tunnel.model import ChannelInfo, ChannelStatus, ChannelType, Token
from ots_tunnel.protocol.possible_gap import ended_channels, read_until, within_stream
from ots_tunnel.query.record import QueryProgress
from ots_tunnel_operator.assess.completion import end_time, is_completed
from ots_tunnel_operator.assess.gap import Gap, beyond, recorded_gaps
from ots_tunnel_operator.assess.lag import is_initialised
from ots_tunnel_operator.assess.read_mark import ReadMark
from ots_tunnel_operator.assess.reported import HELD, reported_channels
from ots_tunnel_operator.assess.shards.trimmed import trimmed
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.report import ReportedGap
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import World

#: The end of a gap that is still growing is rounded up to this many seconds.
_ROUNDED_TO = 3600.0
#: Seconds by which two answers of the service may differ in its time.
_CLOCK_SECONDS = 60.0


def find_gaps(world: World, mark: ReadMark | None, query: QueryProgress | None = None) -> tuple[Gap, ...]:
    """Every gap to show, those that are not accepted first.

    Args:
        world: what was observed.
        mark: `read_mark` of this world.
        query: the record of a query on this very tunnel; None without one.
    """
    recorded = {gap.key: gap for gap in recorded_gaps(world.resource.status)}
    found = {key: gap for key, gap in recorded.items() if gap.is_final or not _is_looked_at(world, gap.channel)}
    # the start makes a gap the one that was accepted, and only another process may have seen what tells it
    since = {gap.channel: gap.start for gap in recorded.values() if not gap.by_worker}
    accepts = world.resource.spec.source.goes_on_behind_gaps
    # the status shows a part of those that a query has passed
    known_gaps = (*recorded.values(), *_passed(query))
    accepted = () if accepts else tuple(gap for gap in known_gaps if gap.accepted)
    seen = (*_from_outside(world, mark, since), *_of_shards(world, found.values(), since, accepts=accepts))
    for whole in (*_of_workers(world.pods), *_of_query(query), *seen):
        gap = whole if whole.accepted else beyond(whole, accepted)
        known = found.get(gap.key)
        before = known or recorded.get(gap.key)
        if known is not None and known.is_final and not gap.by_worker:
            continue  # no look refutes it
        if before is not None and gap.by_worker and not (before.by_worker or gap.accepted or accepts):
            before = None  # it begins where the operator's does, and that one says nothing of its end
        is_accepted = gap.accepted or (before is not None and before.accepted)
        found[gap.key] = replace(gap, end=_widest_end(gap, before), accepted=is_accepted)
    for gap in recorded.values():
        if gap.key not in found and _is_hidden(world, mark, gap):
            found[gap.key] = replace(gap, lasting=True)
    gaps = (replace(gap, accepted=gap.accepted or accepts) for gap in found.values())
    return tuple(sorted(gaps, key=_place))


def _place(gap: Gap) -> tuple[object, ...]:
    """What sorts gaps: the first one that is not accepted is the problem; of accepted ones the latest are shown."""
    return gap.accepted, -gap.end if gap.accepted else 0.0, not gap.by_worker, gap.start, gap.channel


def gap_problem(gaps: Sequence[Gap], resource: Resource) -> Problem | None:
    """The first gap as a problem; None without one that is not accepted.

    Args:
        gaps: those of `find_gaps`, in their order.
        resource: the object.
    """
    gap = next(iter(gaps), None)
    if gap is None or gap.accepted:
        return None
    source = resource.spec.source
    return Problem(
        Reason.POSSIBLE_GAP,
        f"{source.gap_field} 'Stop': changes of {source.part} {gap.channel} from {timestamp(gap.start)} to "
        f"{timestamp(gap.end)} may be missing, because they were not read while table {source.table!r} kept its "
        f"stream: to go on without them, use onPossibleGap Continue; {resource.start_over()}",
        stops=gap.is_final,
    )


def _widest_end(gap: Gap, before: Gap | None) -> float:
    """The end of a gap of which an earlier look has told; that of a worker's finding is exact."""
    is_worse = before is not None and (before.is_final or not gap.by_worker)
    return max(gap.end, before.end) if before is not None and is_worse else gap.end


def _of_workers(pods: Iterable[Pod]) -> Iterable[Gap]:
    for pod in pods:
        found: tuple[ReportedGap, ...] = pod.gaps + (pod.report.gaps if pod.report is not None else ())
        for gap in found:
            yield Gap(gap.channel_id, gap.start, gap.end, by_worker=True, accepted=gap.is_passed)


def _of_query(query: QueryProgress | None) -> Iterable[Gap]:
    """What drivers have gone on without, and what the last one has ended with."""
    yield from _passed(query)
    error = None if query is None else PossibleGap.read(query.error)
    if error is not None:
        yield Gap(error.channel_id, error.start, error.end, by_worker=True)


def _passed(query: QueryProgress | None) -> Iterable[Gap]:
    for gap in () if query is None else query.passed_gaps:
        yield Gap(gap.channel_id, gap.start, gap.end, by_worker=True, accepted=True)


def _of_shards(world: World, known: Collection[Gap], since: Mapping[str, float], *, accepts: bool) -> Iterable[Gap]:
    if is_completed(world):
        return
    of_workers = (gap for gap in (*known, *_of_workers(world.pods)) if gap.by_worker)
    # behind one that was accepted the stream may have dropped more since
    told = {gap.channel for gap in of_workers if accepts or not gap.accepted}
    for shard, start, end in trimmed(world, told, since):
        yield Gap(shard, start, _rounded_up(end), by_worker=False)


def _is_looked_at(world: World, channel: str) -> bool:
    """Whether this look would have found the gap of a channel anew.

    Of a shard that no worker reports, only a read of its record tells that: the first looks of a process may lack it.
    """
    if not isinstance(world.tunnel, Tunnel):
        return False
    if channel in world.peeks:
        return True
    if world.resource.spec.source.stream is None:
        return is_completed(world) or _kept_since(world) is not None
    # a lease that is gone tells nothing: another program deletes those of shards that the stream has dropped
    shards = world.tunnel.description.channels
    if is_completed(world):
        return any(shard.channel_id == channel for shard in shards)
    has_ended = any(shard.channel_id == channel and shard.status is ChannelStatus.TERMINATED for shard in shards)
    reported = reported_channels(world.pods).get(channel)
    return has_ended or (reported is not None and reported.channel.state in HELD)


def _rounded_up(end: float) -> float:
    return math.ceil(end / _ROUNDED_TO) * _ROUNDED_TO


def _from_outside(world: World, mark: ReadMark | None, since: Mapping[str, float]) -> Iterable[Gap]:
    kept = _kept_since(world)
    if kept is None or not isinstance(world.tunnel, Tunnel) or is_completed(world):
        return
    reported = _reported_until(world.pods)
    start = world.source.stream_start if isinstance(world.source, Table) else None
    raised = _raised_by(world)
    channels = world.tunnel.description.channels
    are_given_out = any(channel.status in (ChannelStatus.OPEN, ChannelStatus.CLOSING) for channel in channels)
    for channel in channels:
        if channel.channel_type is not ChannelType.STREAM or channel.status is ChannelStatus.TERMINATED:
            continue
        if channel.status is ChannelStatus.WAIT and are_given_out:
            continue  # a child: until they have ended, its parents stand for it
        told = reported.get(channel.channel_id), since.get(channel.channel_id)
        until = _consumed_until(world, world.tunnel, channel, mark, told)
        # a tunnel may be a moment older than the stream that it enables: only what was consumed counts there
        enabled = start if start is not None and channel.consume_point_ns else 0.0
        end = min(max(kept, enabled), end_time(world))
        if until is not None and until < end:
            is_shown_once = until >= max(kept - raised, enabled)
            yield Gap(channel.channel_id, until, _rounded_up(end), by_worker=False, lasting=is_shown_once)


def _is_hidden(world: World, mark: ReadMark | None, gap: Gap) -> bool:
    """Whether a recorded finding would go although nothing was read since: the retention was raised."""
    kept = _kept_since(world)
    if kept is None or not isinstance(world.tunnel, Tunnel) or is_completed(world):
        return False
    channels = world.tunnel.description.channels
    channel = next((found for found in channels if found.channel_id == gap.channel), None)
    if channel is None or channel.status is ChannelStatus.TERMINATED or kept >= gap.start - _CLOCK_SECONDS:
        return False
    reported = _reported_until(world.pods).get(gap.channel)
    until = _consumed_until(world, world.tunnel, channel, mark, (reported,))
    return until is not None and int(until) <= int(gap.start)


def _kept_since(world: World) -> float | None:
    """Time since which the stream has every change, by the service's clock; None is unknown."""
    if not isinstance(world.tunnel, Tunnel) or not is_initialised(world.tunnel.description):
        return None
    if world.resource.spec.source.stream is not None:
        return None  # until when a shard was read, only its worker knows, whoever runs it
    table = world.source if isinstance(world.source, Table) else None
    now = world.tunnel.description.service_time
    if table is None or not table.stream_retention_seconds or now is None:
        return None
    return now - table.stream_retention_seconds + _raised_by(world)


def _raised_by(world: World) -> float:
    """Seconds by which the retention is longer than that of the status; 0 where it is not."""
    before = world.resource.recorded_tunnel.get("streamRetentionSeconds")
    table = world.source if isinstance(world.source, Table) else None
    if table is None or not table.stream_retention_seconds or not before:
        return 0.0
    return max(0.0, table.stream_retention_seconds - float(before))


def _reported_until(pods: Iterable[Pod]) -> dict[str, float]:
    """Channel id -> until when the worker that holds it reports it as consumed, Unix seconds."""
    until: dict[str, float] = {}
    for pod in pods:
        for found in pod.report.channels if pod.report is not None else ():
            if found.state in HELD and found.consumed_up_to is not None:
                until[found.channel_id] = max(until.get(found.channel_id, 0.0), found.consumed_up_to)
    return until


def _consumed_until(
    world: World, tunnel: Tunnel, channel: ChannelInfo, mark: ReadMark | None, told: Iterable[float | None]
) -> float | None:
    """Until when a channel was certainly consumed, Unix seconds; None is unknown."""
    described, marked = tunnel.description, mark.time if mark is not None else None
    known = (
        read_until(channel.channel_id, Token(""), described, parents=ended_channels(described), mark=marked),
        world.consumed_until.get(channel.channel_id),
        *told,
    )
    until = max((time for time in known if time is not None), default=None)
    if until is None or not isinstance(world.source, Table):
        return until
    return within_stream(until, tunnel.description, world.source.stream_start)
