"""Status of a worker: the document of `/channels` and the gauges of `/metrics`.

Unknown is None, never 0 (docs/architecture.md rule 11).
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from ots_tunnel.model import ChannelId, ChannelStatus
from ots_tunnel.protocol.lifecycle import ClientEvent, ClientState, after
from ots_tunnel.protocol.possible_gap import Gap
from ots_tunnel.worker.pages.budget import ByteBudget
from ots_tunnel.worker.progress.channel_progress import ChannelProgress
from ots_tunnel.worker.status.metrics import WorkerMetrics

#: Seconds over which a rate is the mean: long enough for a heartbeat interval of 10 s, at which it is sampled.
WINDOW = 15.0


@dataclass(slots=True)
class ChannelView:
    """A channel that this worker holds: its progress, and its status in the next heartbeat."""

    progress: ChannelProgress
    status: ChannelStatus
    checkpoint_age: Callable[[], float] = field(default=lambda: 0.0, repr=False)


class Rate:
    """Mean growth per second of a counter over the last `WINDOW` seconds."""

    def __init__(self, read: Callable[[], float], clock: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._clock = clock
        self._samples: deque[tuple[float, float]] = deque([(clock(), read())])

    def sample(self) -> float | None:
        """Take a sample and return the rate; None in the first second, when it is unknown."""
        now, value = self._clock(), self._read()
        if now - self._samples[-1][0] >= 1:
            self._samples.append((now, value))
        while len(self._samples) > 2 and now - self._samples[1][0] >= WINDOW:
            self._samples.popleft()
        since, base = self._samples[0]
        return (value - base) / (now - since) if now - since >= 1 else None


class WorkerStatus:
    """Figures of one worker, written by the worker and its sessions, read by the status server."""

    def __init__(
        self,
        tunnel_id: str,
        client_tag: str,
        metrics: WorkerMetrics,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.tunnel_id = tunnel_id
        self.client_tag = client_tag
        self.state = ClientState.READY
        self.client_id: str | None = None
        self.last_heartbeat: float | None = None
        self.draining = False
        self.completed = False
        self.error: str | None = None
        self.hand_overs = 0
        self.channels: dict[ChannelId, ChannelView] = {}
        #: The last gap of each channel, also of those that another client has meanwhile.
        self.possible_gaps: dict[ChannelId, Gap] = {}
        self.budget: ByteBudget | None = None
        self.metrics = metrics
        self.wall = wall
        self._rows = Rate(lambda: metrics.rows_total, clock)
        self._busy = Rate(metrics.busy.seconds, clock)

    def __repr__(self) -> str:
        return f"WorkerStatus({self.client_id}, {len(self.channels)} channels)"

    @property
    def is_ready(self) -> bool:
        """Whether a heartbeat of the present client was answered."""
        return self.last_heartbeat is not None

    def happened(self, event: ClientEvent) -> None:
        """Move the client's state.

        Raises:
            InvalidTransition: the event is not possible in this state.
        """
        self.state = after(self.state, event)

    def sample(self) -> None:
        """Sample the rates, so that their windows are filled without scrapes; called at every heartbeat."""
        self._rows.sample()
        self._busy.sample()

    def busy_ratio(self) -> float | None:
        """Share of the last seconds in which a sink was writing, 0 to 1; None while unknown."""
        share = self._busy.sample()
        return None if share is None else min(1.0, share)

    def document(self) -> dict[str, Any]:
        """The answer of `/channels`."""
        now, rate, busy = self.wall(), self._rows.sample(), self.busy_ratio()
        return {
            "tunnelId": self.tunnel_id,
            "state": self.state.value,
            "clientId": self.client_id,
            "clientTag": self.client_tag,
            "time": iso_time(now),
            "rowsTotal": self.metrics.rows_total,
            "bytesTotal": self.metrics.bytes_total,
            "rowsPerSecond": None if rate is None else round(rate, 1),
            "busyPercent": None if busy is None else round(100 * busy),
            "handOvers": self.hand_overs,
            "lastHeartbeatTime": iso_time(self.last_heartbeat),
            "draining": self.draining,
            "error": self.error,
            "completed": self.completed,
            "possibleGaps": [gap_document(*found) for found in sorted(self.possible_gaps.items())],
            "channels": [channel_document(view, now) for _, view in sorted(self.channels.items())],
        }


def gap_document(channel_id: ChannelId, gap: Gap) -> dict[str, Any]:
    """One entry of `possibleGaps`."""
    return {"channel": channel_id, "from": iso_time(gap.start), "to": iso_time(gap.end)}


def channel_document(view: ChannelView, now: float) -> dict[str, Any]:
    """One entry of `/channels`."""
    progress = view.progress
    lag = progress.lag(now)
    return {
        "id": progress.channel_id,
        "type": progress.channel_type.value,
        "state": view.status.name,
        "rowsTotal": progress.rows,
        "caughtUp": progress.caught_up,
        "caughtUpTime": iso_time(progress.caught_up_time),
        "consumedUpTo": iso_time(progress.consumed_up_to),
        "lagSeconds": None if lag is None else math.floor(lag),
        "finished": progress.finished,
        "endReached": progress.end_reached,
        "error": progress.error,
    }


def iso_time(time_s: float | None) -> str | None:
    """Unix seconds as RFC 3339 in UTC with milliseconds; None stays None."""
    if time_s is None:
        return None
    return datetime.fromtimestamp(time_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class StatusCollector(Collector):
    """The gauges of a worker, computed at each scrape."""

    def __init__(self, status: WorkerStatus) -> None:
        self._status = status

    def collect(self) -> Iterator[GaugeMetricFamily]:
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

    def _channel_gauges(self, tunnel: str) -> Iterator[GaugeMetricFamily]:
        now = self._status.wall()
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
        yield _gauge("lag_seconds", "Seconds since the channel's consume point.", lags, tunnel, labels)
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
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"ots_tunnel_{name}", text, labels=("tunnel", *labels))
    for values, sample in samples.items():
        family.add_metric([tunnel, *values], sample)
    return family
