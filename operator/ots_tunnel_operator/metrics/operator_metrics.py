"""Every metric of the process, and what the liveness probe asks of the passes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from ots_tunnel.errors import NoStream, ObjectNotExist, ServiceError, TableNotFound, TunnelNotFound
from ots_tunnel.protocol.service_codes import ERROR_CLASSES
from ots_tunnel.version import __version__
from ots_tunnel_operator.metrics.objects import ObjectMetrics

#: Seconds; a pass takes milliseconds, one that waits for a slow instance up to a minute.
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
#: Most codes of the service that are counted apart, beside those that it is known to have, and the longest of them: an
#: endpoint is whatever an object names, and may answer with any text.
MAX_CODES = 50
MAX_CODE = 64
#: Stands for all further ones.
OTHER = "Other"


class OperatorMetrics:
    """Counters of the process and gauges per object; the loops write them, the HTTP server's thread reads them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

        def counter(name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
            return Counter(f"ots_tunnel_operator_{name}", text, labels, registry=self.registry)

        def gauge(name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
            return Gauge(f"ots_tunnel_operator_{name}", text, labels, registry=self.registry)

        gauge("build_info", "1; the label has the operator's version.", ("version",)).labels(__version__).set(1)
        self._leader = gauge("leader", "1 while this process works, 0 while it stands by for another one.")
        gauge(
            "oldest_pass_seconds", "Seconds since the last pass over the object that has waited longest."
        ).set_function(self.oldest_pass)
        self._seconds = Histogram(
            "ots_tunnel_operator_reconcile_seconds",
            "Duration of a pass over one object.",
            registry=self.registry,
            buckets=BUCKETS,
        )
        self._errors = counter("reconcile_errors", "Passes that ended with a problem.", ("reason",))
        self._writes = counter("status_writes", "Statuses written.")
        self._api_errors = counter(
            "api_errors", "Calls to the API server that were refused or got no answer.", ("method", "code")
        )
        self._service_errors = counter(
            "service_errors",
            "Calls to Tablestore that failed after their retries; that something is not there is an answer.",
            ("code",),
        )
        self._codes: set[str] = set()
        self._objects = ObjectMetrics()
        self.registry.register(self._objects)
        self._lock = threading.Lock()
        self._passes: dict[tuple[str, str], float] = {}
        self._failing_since: float | None = None

    def leader_is(self, leads: Callable[[], bool]) -> None:
        """Ask this at every scrape whether the process leads."""
        self._leader.set_function(lambda: float(leads()))

    def passed(self, namespace: str, name: str, seconds: float) -> None:
        """Record the end of a pass that observed its object, or found that it may not, and its duration."""
        self.tried(namespace, name, seconds)
        with self._lock:
            self._failing_since = None

    def tried(self, namespace: str, name: str, seconds: float) -> None:
        """Record the end of a pass that says nothing for the process, and its duration."""
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

    def api_refused(self, method: str, code: str) -> None:
        """Count a call of the API server that failed: HTTP method, and the status or the name of the error."""
        self._api_errors.labels(method, code).inc()

    def service_refused(self, error: Exception) -> None:
        """Count a call of Tablestore that failed; that table, tunnel or stream does not exist is none."""
        if isinstance(error, NoStream | ObjectNotExist | TableNotFound | TunnelNotFound):
            return
        self._service_errors.labels(self._counted(error)).inc()

    def _counted(self, error: Exception) -> str:
        """The code by which an error is counted."""
        code = error.code if isinstance(error, ServiceError) else type(error).__name__
        if code in ERROR_CLASSES or code in self._codes:
            return code
        if len(self._codes) >= MAX_CODES or len(code) > MAX_CODE:
            return OTHER
        self._codes.add(code)
        return code

    def acted(self, namespace: str, name: str, action: str) -> None:
        """Count a change that was decided and carried out for an object."""
        self._objects.acted((namespace, name), action)

    def observed(
        self, namespace: str, name: str, status: Mapping[str, Any], wanted: Mapping[str, float] | None = None
    ) -> None:
        """Set the gauges of one object from its status (`ObjectMetrics.observed`)."""
        self._objects.observed((namespace, name), status, wanted)

    def doubted(self, namespace: str, name: str) -> None:
        """Say that perhaps no operator serves an object (`ObjectMetrics.doubted`)."""
        self._objects.doubted((namespace, name))

    def ended(self, namespace: str, name: str) -> None:
        """Say that no pass over an object will come any more: the liveness probe waits for none."""
        with self._lock:
            self._passes.pop((namespace, name), None)
            if not self._passes:
                self._failing_since = None

    def forget(self, namespace: str, name: str) -> None:
        """Remove the samples of an object that no longer exists, or that another operator serves."""
        self.ended(namespace, name)
        self._objects.forget((namespace, name))

    def oldest_pass(self) -> float:
        """Seconds since the last pass over the object that has waited longest; 0 without objects."""
        with self._lock:
            return max((time.monotonic() - last for last in self._passes.values()), default=0.0)

    def failing_seconds(self) -> float:
        """Seconds for which every pass, over whichever object, has failed to observe it; 0 after one that could."""
        with self._lock:
            return 0.0 if self._failing_since is None else time.monotonic() - self._failing_since
