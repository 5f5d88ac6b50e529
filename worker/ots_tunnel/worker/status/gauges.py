"""The gauges of `/metrics`, computed from the worker's status at each scrape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ots_tunnel.exposition import Family
from ots_tunnel.model import ChannelStatus
from ots_tunnel.worker.status.worker_status import WorkerStatus


class StatusCollector:
    """The gauges of a worker, computed at each scrape."""

    def __init__(self, status: WorkerStatus) -> None:
        self._status = status

    def collect(self) -> Iterator[Family]:
        """All gauges of the worker."""
        status, tunnel = self._status, self._status.metrics.tunnel
        busy = status.busy_ratio()
        shares: dict[tuple[str, ...], float] = {} if busy is None else {(): busy}
        yield _gauge("busy_ratio", "Share of time in which the sink was writing.", shares, tunnel)
        held = status.budget.used_bytes if status.budget else 0
        yield _gauge("inflight_bytes", "Bytes reserved for reads or held until written.", {(): held}, tunnel)
        states: dict[tuple[str, ...], float] = {(state.name,): 0.0 for state in ChannelStatus}
        for view in status.channels.values():
            states[(view.status.name,)] += 1
        yield _gauge("channels", "Channels held, by state.", states, tunnel, ("state",))
        yield from self._channel_gauges(tunnel)

    def _channel_gauges(self, tunnel: str) -> Iterator[Family]:
        now = self._status.source_clock()
        lags: dict[tuple[str, ...], float] = {}
        caught_up: dict[tuple[str, ...], float] = {}
        ages: dict[tuple[str, ...], float] = {}
        for channel_id, view in self._status.channels.items():
            key = (view.progress.channel_type.value, channel_id)
            if (lag := view.progress.lag(now)) is not None:
                lags[key] = lag
                caught_up[key] = float(view.progress.caught_up)
            ages[key] = view.checkpoint_age()
        labels = ("channel_type", "channel")
        yield _gauge(
            "channel_lag_seconds",
            "Seconds since the channel's consume point, by the service's clock.",
            lags,
            tunnel,
            labels,
        )
        yield _gauge(
            "caught_up", "1 when the last read reached the log's end and is confirmed.", caught_up, tunnel, labels
        )
        yield _gauge("checkpoint_age_seconds", "Seconds for which progress is not durable.", ages, tunnel, labels)


def _gauge(
    name: str,
    text: str,
    samples: Mapping[tuple[str, ...], float],
    tunnel: str,
    labels: tuple[str, ...] = (),
) -> Family:
    family = Family(f"ots_tunnel_{name}", "gauge", text)
    for values, sample in samples.items():
        family.add(dict(zip(("tunnel", *labels), (tunnel, *values), strict=True)), sample)
    return family
