"""The metrics of all objects, computed at a scrape from what the loops said last.

A sample whose labels follow the status, such as the reason of a condition, leaves none behind when the status changes.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ots_tunnel_operator.metrics.figures import GAUGES, Sample, figures, verdicts

#: Namespace and name.
Place = tuple[str, str]


class ObjectMetrics(Collector):
    """Samples by object; the loops write them, the HTTP server's thread reads them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._samples: dict[Place, tuple[tuple[str, Sample], ...]] = {}
        self._acted: dict[Place, Counter[str]] = {}

    def observed(self, place: Place, status: Mapping[str, Any], wanted: Mapping[str, float] | None) -> None:
        """Replace the samples of an object.

        Args:
            place: of the object.
            status: as it is to be stored.
            wanted: gauges that the spec and the plan give; None where this pass could not observe the object, whose
                figures are then unknown and have no sample.
        """
        samples = list(verdicts(status))
        if wanted is not None:
            samples += figures(status)
            samples += ((metric, ((), value)) for metric, value in wanted.items())
        with self._lock:
            self._samples[place] = tuple(samples)

    def doubted(self, place: Place) -> None:
        """Say of an object that names another operator that it cannot be read whether that one runs: nothing else of it
        is known here."""
        with self._lock:
            self._samples[place] = (("claim_unreadable", ((), 1.0)),)

    def acted(self, place: Place, action: str) -> None:
        """Count something that was decided and carried out for an object."""
        with self._lock:
            self._acted.setdefault(place, Counter())[action] += 1

    def forget(self, place: Place) -> None:
        """Remove the samples of an object."""
        with self._lock:
            self._samples.pop(place, None)
            self._acted.pop(place, None)

    def collect(self) -> Iterator[Metric]:
        """All metrics of all objects."""
        with self._lock:
            samples = tuple(self._samples.items())
            acted = [(place, action, count) for place, found in self._acted.items() for action, count in found.items()]
        families = {
            metric: GaugeMetricFamily(f"ots_tunnel_{metric}", text, labels=("namespace", "name", *labels))
            for metric, (text, labels) in GAUGES.items()
        }
        for place, found in samples:
            for metric, (labels, value) in found:
                families[metric].add_metric([*place, *labels], value)
        yield from families.values()
        text = "Changes that the operator decided and carried out, by kind."
        actions = CounterMetricFamily("ots_tunnel_actions", text, labels=("namespace", "name", "action"))
        for place, action, count in acted:
            actions.add_metric([*place, action], count)
        yield actions
