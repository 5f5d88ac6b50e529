"""Metrics of the operator (docs/operations.md). Labels are bounded: a reason, or the name of an object."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

#: Gauges per object: metric -> path of the figure in the status.
_FIGURES = {
    "lag_seconds": ("lag", "seconds"),
    "open_channels": ("channels", "open"),
    "unowned_channels": ("channels", "unowned"),
    "rows_per_second": ("throughput", "rowsPerSecond"),
    "ready_workers": ("readyReplicas",),
}


class OperatorMetrics:
    """Counters of the process and gauges per object; the loops write them, the HTTP server's thread reads them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._seconds = Histogram(
            "ots_tunnel_operator_reconcile_seconds", "Duration of a pass over one object.", registry=self.registry
        )
        self._errors = Counter(
            "ots_tunnel_operator_reconcile_errors",
            "Passes that ended with a problem.",
            ["reason"],
            registry=self.registry,
        )
        self._writes = Counter("ots_tunnel_operator_status_writes", "Statuses written.", registry=self.registry)
        self._gauges = {
            name: Gauge(f"ots_tunnel_{name}", text, ["namespace", "name"], registry=self.registry)
            for name, text in {
                "lag_seconds": "Lag of the slowest channel in seconds.",
                "open_channels": "Channels that a worker reads.",
                "unowned_channels": "Channels that are ready to be read but are assigned to no worker.",
                "rows_per_second": "Rows per second, summed over all workers.",
                "ready_workers": "Worker pods that are ready.",
                "unaccepted_gaps": "Possible gaps that onPossibleGap Continue has not accepted.",
            }.items()
        }
        self._lock = threading.Lock()
        self._passes: dict[tuple[str, str], float] = {}
        self._failing_since: float | None = None

    def passed(self, namespace: str, name: str, seconds: float) -> None:
        """Record the end of a pass that observed its object, and its duration."""
        self.tried(namespace, name, seconds)
        with self._lock:
            self._failing_since = None

    def tried(self, namespace: str, name: str, seconds: float) -> None:
        """Record the end of a pass, and its duration."""
        self._seconds.observe(seconds)
        with self._lock:
            now = time.monotonic()
            self._passes[namespace, name] = now
            self._failing_since = now if self._failing_since is None else self._failing_since

    def failed(self, reason: str) -> None:
        """Count a pass that ended with a problem."""
        self._errors.labels(reason).inc()

    def wrote_status(self) -> None:
        """Count a write of a status."""
        self._writes.inc()

    def observed(self, namespace: str, name: str, status: Mapping[str, Any]) -> None:
        """Set the gauges of one object from its status; an unknown figure has no sample."""
        for metric, path in _FIGURES.items():
            value: Any = status
            for key in path:
                value = value.get(key) if isinstance(value, Mapping) else None
            if value is None:
                self._gauges[metric].remove(namespace, name)
            else:
                self._gauges[metric].labels(namespace, name).set(value)
        if status:
            gaps = status.get("possibleGaps") or ()
            count = sum(not gap.get("accepted") for gap in gaps)
            self._gauges["unaccepted_gaps"].labels(namespace, name).set(count)

    def forget(self, namespace: str, name: str) -> None:
        """Remove the samples of an object that no longer exists, or that another operator serves."""
        with self._lock:
            self._passes.pop((namespace, name), None)
            if not self._passes:
                self._failing_since = None
        for gauge in self._gauges.values():
            gauge.remove(namespace, name)

    def oldest_pass(self) -> float:
        """Seconds since the last pass over the object that has waited longest; 0 without objects."""
        with self._lock:
            return max((time.monotonic() - last for last in self._passes.values()), default=0.0)

    def failing_seconds(self) -> float:
        """Seconds for which every pass, over whichever object, has failed to observe it; 0 after one that could."""
        with self._lock:
            return 0.0 if self._failing_since is None else time.monotonic() - self._failing_since
