"""The text of metrics, read back by Prometheus' own library, and beside what that library writes."""

from __future__ import annotations

import math
from collections.abc import Mapping

import prometheus_client
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from ots_tunnel.exposition import Family, Registry, counter, gauge, histogram, text_of

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=8)
BOUNDS = (0.1, 1, 30)


def read(text: str) -> dict[str, tuple[str, str, set[tuple[str, frozenset[tuple[str, str]], float]]]]:
    """Name of each metric to its type, its words and its samples."""
    return {
        family.name: (
            family.type,
            family.documentation,
            {(each.name, frozenset(each.labels.items()), each.value) for each in family.samples},
        )
        for family in text_string_to_metric_families(text)
        if not family.name.endswith("_created")
    }


@given(
    st.dictionaries(texts, st.floats(0, allow_nan=False), min_size=1, max_size=4),
    st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0, 30.0, 31.0]), max_size=6),
    texts.filter(lambda text: text == text.strip()),
)
def test_a_page_says_what_that_of_the_library_says(
    counts: Mapping[str, float], observed: list[float], words: str
) -> None:
    ours, theirs = Registry(), prometheus_client.CollectorRegistry()
    counted = counter(ours, "a_records", words, ("kind",))
    set_to = gauge(ours, "a_level", words, ("kind", "other"))
    timed = histogram(ours, "a_seconds", words, (), BOUNDS)
    their_counter = prometheus_client.Counter("a_records", words, ("kind",), registry=theirs)
    their_gauge = prometheus_client.Gauge("a_level", words, ("kind", "other"), registry=theirs)
    their_histogram = prometheus_client.Histogram("a_seconds", words, registry=theirs, buckets=BOUNDS)
    timed.labels()
    for kind, value in counts.items():
        counted.labels(kind).inc(value)
        counted.labels(kind).inc()
        their_counter.labels(kind).inc(value)
        their_counter.labels(kind).inc()
        set_to.labels(kind, "x").set(-value)
        their_gauge.labels(kind, "x").set(-value)
    for seconds in observed:
        timed.labels().observe(seconds)
        their_histogram.observe(seconds)

    assert read(text_of(ours).decode()) == read(prometheus_client.generate_latest(theirs).decode())


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1e300, 5e-324, -0.0, 2**60])
def test_every_number_is_read_back(value: float) -> None:
    registry = Registry()
    gauge(registry, "a_level", "", ()).labels().set(value)

    ((_, _, samples),) = read(text_of(registry).decode()).values()
    ((_, _, found),) = samples
    assert repr(found) == repr(float(value))


def test_a_metric_without_a_sample_has_its_words() -> None:
    registry = Registry()
    counter(registry, "a_records", "Records.", ("kind",))

    assert text_of(registry) == b"# HELP a_records_total Records.\n# TYPE a_records_total counter\n"


def test_a_collector_gives_its_metrics_at_each_scrape() -> None:
    class Levels:
        level = 0

        def collect(self) -> list[Family]:
            self.level += 1
            family = Family("a_level", "gauge", "Level.")
            family.add({"kind": "x"}, self.level)
            return [family]

    registry = Registry()
    registry.register(Levels())

    assert registry.value("a_level", {"kind": "x"}) == 1
    assert registry.value("a_level", {"kind": "x"}) == 2
    assert registry.value("a_level", {"kind": "y"}) is None
    assert b'a_level{kind="x"} 4.0\n' in text_of(registry)
