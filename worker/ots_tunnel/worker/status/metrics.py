"""The worker's Prometheus metrics (docs/operations.md).

Counters and histograms are fed where things happen. Gauges are computed from the worker's status at a scrape, so that
a closed channel leaves none behind (`gauges.StatusCollector`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ots_tunnel.errors import ServiceError, TunnelError
from ots_tunnel.exposition import Count, Distribution, Metric, Registry, counter, gauge, histogram
from ots_tunnel.model import Action, ChannelType
from ots_tunnel.version import __version__
from ots_tunnel.worker.status.rates import BusyClock

#: Seconds; calls take milliseconds, a write to a busy destination up to a minute.
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
#: Seconds; for steps that only compute.
SHORT_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1)

_ACTION_LABELS = {int(action): action.name.lower() for action in Action}


class WorkerMetrics:
    """Counters and histograms of one worker.

    Args:
        tunnel: the tunnel's name, a label of everything.
        sink: the sink's kind, such as `tablestore`.
    """

    def __init__(self, tunnel: str, sink: str = "") -> None:
        self.registry = Registry()
        self.busy = BusyClock()
        self.rows_total = 0
        self.bytes_total = 0
        by_type = ("tunnel", "channel_type")

        def timed(
            name: str, text: str, labels: tuple[str, ...] = by_type, bounds: tuple[float, ...] = BUCKETS
        ) -> Metric[Distribution]:
            return histogram(self.registry, f"ots_tunnel_{name}", text, labels, bounds)

        def counted(name: str, text: str, labels: tuple[str, ...]) -> Metric[Count]:
            return counter(self.registry, f"ots_tunnel_{name}", text, labels)

        version = ("tunnel", "version")
        build = gauge(self.registry, "ots_tunnel_build_info", "1; a label has the worker's version.", version)
        build.labels(tunnel, __version__).set(1)
        self.tunnel = tunnel
        self._sink = sink
        self._records = counted("records", "Records confirmed by the sink.", (*by_type, "action"))
        self._bytes = counted("bytes", "Bytes of confirmed pages.", by_type)
        self._read = timed("read_seconds", "Time of one ReadRecords with its retries.")
        self._decode = timed(
            "decode_seconds",
            "Time to check one page and cut it into records; their columns are decoded on demand.",
            bounds=SHORT_BUCKETS,
        )
        self._write = timed(
            "sink_seconds", "Time of one write: until the sink has stored a page, or holds it.", (*by_type, "sink")
        )
        self._checkpoint = timed("checkpoint_seconds", "Time of one stored checkpoint.")
        self._rebalances = counted(
            "rebalances", "Channels handed over: taken from, or given to, another client.", ("tunnel", "direction")
        )
        self._possible_gaps = counted(
            "possible_gaps", "Times that changes before a channel's next records may be missing.", ("tunnel",)
        )
        self._possible_gaps.labels(tunnel)
        self._retries = counted("retries", "Calls that were repeated.", ("tunnel", "operation", "code"))

    @contextmanager
    def reading(self, channel_type: ChannelType) -> Iterator[None]:
        """Time the block as the read of one page."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._child(self._read, channel_type).observe(time.perf_counter() - began)

    def decoded(self, channel_type: ChannelType, seconds: float) -> None:
        """Count the seconds in which a page was checked and cut into records."""
        self._child(self._decode, channel_type).observe(seconds)

    @contextmanager
    def writing(self, channel_type: ChannelType) -> Iterator[None]:
        """Time the block as the write of one page."""
        began = time.perf_counter()
        try:
            with self.busy.busy():
                yield
        finally:
            self._child(self._write, channel_type, self._sink).observe(time.perf_counter() - began)

    def confirmed(self, channel_type: ChannelType, actions: Mapping[int, int], size_bytes: int) -> None:
        """The sink has confirmed a page; `actions` counts its records of each action."""
        self.rows_total += sum(actions.values())
        self.bytes_total += size_bytes
        self._child(self._bytes, channel_type).inc(size_bytes)
        for action, rows in actions.items():
            self._child(self._records, channel_type, _ACTION_LABELS[action]).inc(rows)

    def checkpoint_stored(self, channel_type: ChannelType, seconds: float) -> None:
        """Count the seconds that storing a checkpoint took."""
        self._child(self._checkpoint, channel_type).observe(seconds)

    def handed_over(self, direction: str) -> None:
        """Count a channel that was `taken` from, or `given` to, another client."""
        self._rebalances.labels(self.tunnel, direction).inc()

    def possible_gap(self) -> None:
        """Count a place in a channel where changes may be missing."""
        self._possible_gaps.labels(self.tunnel).inc()

    def _child(self, metric: Metric[Any], *labels: str) -> Any:
        return metric.labels(self.tunnel, *labels)

    def call_repeated(self, operation: str, error: TunnelError) -> None:
        """Count a call that failed and is repeated."""
        code = error.code if isinstance(error, ServiceError) else type(error).__name__
        self._retries.labels(self.tunnel, operation, code).inc()
