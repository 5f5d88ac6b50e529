"""How busy a worker is, beside the limits of its rate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel_operator.api.source import RateLimit
from ots_tunnel_operator.assess.scaling.busy import busy_share, worker_limit
from ots_tunnel_operator.world.report import WorkerReport
from tests.support.operator.scaled_worlds import scaled
from tests.support.operator.worlds import resource
from tests.unit.operator.assess.scaling.test_figures import found_in

LIMIT = {"rateLimit": {"rowsPerSecondPerWorker": 1000}}


def report(busy: int | None, rate: float | None) -> WorkerReport:
    found = scaled().pods[0].report
    assert found is not None
    return replace(found, busy_percent=busy, rows_per_second=rate)


def share(busy: int | None, rate: float | None, **spec: Any) -> float | None:
    return busy_share(resource(**spec).spec, report(busy, rate))


def test_without_a_limit_it_is_the_time_in_the_sink() -> None:
    assert share(40, 90_000.0) == 0.4
    assert share(40, 90_000.0, delivery={"rateLimit": {"rowsPerSecondPerWorker": 0}}) == 0.4


def test_at_half_of_its_limit_a_worker_that_never_waits_is_half_busy() -> None:
    assert share(3, 500.0, delivery=LIMIT) == 0.5


def test_where_the_sink_is_slower_than_the_limit_its_time_counts() -> None:
    assert share(90, 500.0, delivery=LIMIT) == 0.9


def test_it_is_never_more_than_1() -> None:
    assert share(80, 1100.0, delivery=LIMIT) == 1.0


def test_a_limit_of_the_reads_counts_as_well() -> None:
    of = resource().spec
    source = of.source.model_copy(update={"rate_limit": RateLimit.model_validate({"rowsPerSecondPerWorker": 1000})})
    limited = of.model_copy(update={"source": source})

    assert busy_share(limited, report(3, 700.0)) == 0.7


def test_behind_a_filter_the_rows_of_the_writes_are_not_known() -> None:
    assert share(3, 500.0, delivery=LIMIT | {"filter": {"actions": ["DELETE"]}}) == 0.03


@pytest.mark.parametrize(
    ("spec", "limit"),
    [
        ({}, None),
        ({"delivery": {"rateLimit": {}}}, None),
        ({"delivery": LIMIT}, 1000),
        ({"source__rateLimit": {"rowsPerSecondPerWorker": 300}, "delivery": LIMIT}, 300),
        ({"delivery": LIMIT | {"filter": {"actions": ["DELETE"]}}}, None),
    ],
)
def test_the_lower_limit_is_that_of_a_worker(spec: dict[str, Any], limit: int | None) -> None:
    assert worker_limit(resource(**spec).spec) == limit


@pytest.mark.parametrize(("busy", "rate"), [(None, 5.0), (5, None)])
def test_what_a_worker_does_not_tell_is_unknown(busy: int | None, rate: float | None) -> None:
    assert share(busy, rate, delivery=LIMIT) is None


def test_a_fleet_at_half_of_its_limits_does_not_look_idle() -> None:
    """120 rows/s of each worker, which may do 240: with half of them each one would be at its limit."""
    of = scaled(busy=5, delivery={"rateLimit": {"rowsPerSecondPerWorker": 240}})

    assert found_in(of).busy == 0.5
