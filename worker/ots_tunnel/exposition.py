"""Metrics and their text for Prometheus (format 0.0.4): what a worker needs of it.

The usual library brings an HTTP server and a client with it, and takes as much memory as the worker's own code.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Sample(NamedTuple):
    """One line of the text."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Family:
    """A metric with its samples.

    Args:
        name: without `_total`, which the samples of a counter have.
        type: counter, gauge or histogram.
        documentation: says what it is.
    """

    name: str
    type: str
    documentation: str
    samples: list[Sample] = field(default_factory=list)

    @property
    def full_name(self) -> str:
        """The name as the text has it."""
        return f"{self.name}_total" if self.type == "counter" else self.name

    def add(self, labels: Mapping[str, str], value: float) -> None:
        """Append a sample."""
        self.samples.append(Sample(self.full_name, labels, value))


class Collector(Protocol):
    """Gives metrics at a scrape."""

    def collect(self) -> Iterable[Family]:
        """The metrics as they are now."""
        ...


class Registry:
    """All metrics of a process."""

    def __init__(self) -> None:
        self._collectors: list[Collector] = []

    def register(self, collector: Collector) -> None:
        """Serve the metrics of a collector, too."""
        self._collectors.append(collector)

    def collect(self) -> Iterator[Family]:
        """All metrics, in the order of their registration."""
        for collector in self._collectors:
            yield from collector.collect()

    def value(self, name: str, labels: Mapping[str, str]) -> float | None:
        """The value of the sample of this name with these labels; None where there is none."""
        found = (sample for family in self.collect() for sample in family.samples if sample.name == name)
        return next((sample.value for sample in found if sample.labels == labels), None)


class Count:
    """A number that is counted or set."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1) -> None:
        """Add to it."""
        self.value += amount

    def set(self, value: float) -> None:
        """Replace it."""
        self.value = value


class Distribution:
    """How many values lay in each bucket, and their sum.

    Args:
        bounds: upper ends of the buckets, the last one is infinite.
    """

    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * len(bounds)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Take a value."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value


Child = TypeVar("Child", Count, Distribution)


class Metric(Generic[Child]):
    """A metric with a child for each combination of label values; `counter`, `gauge` and `histogram` make one.

    Args:
        new: makes a child.
        add: appends the samples of a child with these labels.
    """

    def __init__(
        self,
        family: Family,
        labels: Sequence[str],
        new: Callable[[], Child],
        add: Callable[[Family, Mapping[str, str], Child], None],
    ) -> None:
        self._family = family
        self._labels = tuple(labels)
        self._new: Callable[[], Child] = new
        self._add: Callable[[Family, Mapping[str, str], Child], None] = add
        self._children: dict[tuple[str, ...], Child] = {}

    def __repr__(self) -> str:
        return f"Metric({self._family.name})"

    def labels(self, *values: str) -> Child:
        """The child with these values of the labels; it is served from the first call on."""
        child = self._children.get(values)
        if child is None:
            assert len(values) == len(self._labels), "a value for each label"
            child = self._children[values] = self._new()
        return child

    def collect(self) -> Iterator[Family]:
        """See `Collector.collect`."""
        family = replace(self._family, samples=[])
        for values, child in self._children.items():
            self._add(family, dict(zip(self._labels, values, strict=True)), child)
        yield family


def counter(registry: Registry, name: str, text: str, labels: Sequence[str]) -> Metric[Count]:
    """A metric that only grows."""
    return _registered(registry, Metric(Family(name, "counter", text), labels, Count, _add_count))


def gauge(registry: Registry, name: str, text: str, labels: Sequence[str]) -> Metric[Count]:
    """A metric that is set."""
    return _registered(registry, Metric(Family(name, "gauge", text), labels, Count, _add_count))


def histogram(
    registry: Registry, name: str, text: str, labels: Sequence[str], bounds: Sequence[float]
) -> Metric[Distribution]:
    """A metric of values by their size.

    Args:
        bounds: upper ends of the buckets; one without an end is added.
    """
    ends = (*bounds, math.inf)

    def add(family: Family, labels: Mapping[str, str], child: Distribution) -> None:
        numbers = list(accumulate(child.counts))
        for end, number in zip(ends, numbers, strict=True):
            family.samples.append(Sample(f"{name}_bucket", {**labels, "le": _number(end)}, number))
        family.samples.append(Sample(f"{name}_count", labels, numbers[-1]))
        family.samples.append(Sample(f"{name}_sum", labels, child.total))

    return _registered(registry, Metric(Family(name, "histogram", text), labels, lambda: Distribution(ends), add))


def text_of(registry: Registry) -> bytes:
    """The text of all metrics."""
    return "".join(map(_text, registry.collect())).encode()


def _registered(registry: Registry, metric: Metric[Child]) -> Metric[Child]:
    registry.register(metric)
    return metric


def _add_count(family: Family, labels: Mapping[str, str], child: Count) -> None:
    family.add(labels, child.value)


def _text(family: Family) -> str:
    help_text = family.documentation.replace("\\", r"\\").replace("\n", r"\n")
    head = f"# HELP {family.full_name} {help_text}\n# TYPE {family.full_name} {family.type}\n"
    return head + "".join(f"{each.name}{_labels(each.labels)} {_number(each.value)}\n" for each in family.samples)


def _labels(labels: Mapping[str, str]) -> str:
    pairs = (f'{name}="{_escaped(value)}"' for name, value in sorted(labels.items()))
    return f"{{{','.join(pairs)}}}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "NaN" if math.isnan(value) else repr(float(value))
