"""The lag of a tunnel that a query of Spark follows. Pure.

The driver tells how old the oldest change is that waits, and nothing of single channels. While it does not run, consume
points tell the most that the lag can be, which is said only where the query has a problem: a table without changes
would look late in every restart. The retention goes on meanwhile: it counts from what was certainly read wherever no
driver tells the lag.
"""

from __future__ import annotations

from dataclasses import replace

from ots_tunnel_operator.assess.lag import Lag
from ots_tunnel_operator.assess.read_mark import ReadMark
from ots_tunnel_operator.assess.spark.query import Query
from ots_tunnel_operator.assess.spark.query_state import QueryState

#: States in which the consume points are all that is known.
_BY_POINTS = frozenset({QueryState.NOT_USED, QueryState.OPERATOR_MISSING, QueryState.RETRYING, QueryState.FAILED})


def lag_of_query(measured: Lag | None, query: Query) -> Lag | None:
    """The lag of a tunnel: of workers as measured, of a query as its driver tells.

    Args:
        measured: by the service and the reports of workers.
        query: of this world.
    """
    stopped = query.application is not None and query.application.suspend
    if measured is None or query.state in _BY_POINTS or stopped:
        return measured
    seconds = query.lag_seconds
    # how late a single channel is nobody tells
    channels = tuple(replace(channel, seconds=None, caught_up=None) for channel in measured.channels)
    return replace(measured, seconds=seconds, caught_up=None if seconds is None else seconds == 0, channels=channels)


def unread_behind(measured: Lag | None, query: Query, mark: ReadMark | None, now: float) -> Lag | None:
    """What may wait while no driver tells the lag: what came after the consume points, and after the time until which
    every channel was certainly read.

    Args:
        measured: by the service alone.
        query: of this world, whose record tells such a time.
        mark: of this world, which outlives the record.
        now: seconds since 1970, by the service's clock.
    """
    recorded = None if query.progress is None else query.progress.read_until
    kept = None if mark is None else mark.time
    known = [time for time in (recorded, kept) if time is not None]
    if measured is None or not known:
        return measured
    most = max(0, int(now - max(known)))
    channels = tuple(
        replace(channel, seconds=most if channel.seconds is None else min(channel.seconds, most))
        for channel in measured.channels
    )
    return replace(measured, seconds=max(channel.seconds or 0 for channel in channels), channels=channels)
