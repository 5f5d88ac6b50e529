"""How late a query is, from the progress of its channels. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from ots_tunnel.worker.progress.channel_progress import ChannelProgress


def lag_of_channels(channels: Iterable[ChannelProgress], now: float) -> float | None:
    """Seconds by which the slowest channel is late; None while no channel tells.

    A channel that was read to its end has nothing that waits, however long its last read is ago: a table that nobody
    changes is not late.

    Args:
        channels: those that the query has open.
        now: Unix seconds.
    """
    lags = [0.0 if channel.caught_up else channel.lag(now) for channel in channels]
    return max((lag for lag in lags if lag is not None), default=None)
