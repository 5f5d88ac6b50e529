"""How late a query is, from the progress of its channels. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from ots_tunnel.model import ChannelType
from ots_tunnel.worker.progress.channel_progress import ChannelProgress


def lag_of_channels(channels: Iterable[ChannelProgress], now: float) -> float | None:
    """Seconds by which the slowest channel of the stream is late; None without any, and while one of them is unknown.

    A channel that was read to its end has nothing that waits, however long its last read is ago: a table that nobody
    changes is not late. Nothing is known of one that is read from a checkpoint until the first batch is committed.

    Args:
        channels: those that the query has open.
        now: Unix seconds, by the service's clock.
    """
    stream = [channel for channel in channels if channel.channel_type is ChannelType.STREAM]
    lags = [0.0 if channel.caught_up else channel.lag(now) for channel in stream]
    known = [lag for lag in lags if lag is not None]
    return max(known, default=None) if len(known) == len(lags) else None
