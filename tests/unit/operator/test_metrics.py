"""The page of metrics: what it has of each object follows the status, and leaves nothing behind."""

from __future__ import annotations

import urllib.request
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ots_tunnel.errors import ConnectError
from ots_tunnel.protocol.service_codes import service_error
from ots_tunnel.version import __version__
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.metrics.operator_metrics import MAX_CODES
from ots_tunnel_operator.server import Health, HealthServer
from tests.support.metric_pages import OPERATOR, labelled

WANTED = {"wanted_workers": 2, "catchup_ratio": 0.8, "lag_limit_seconds": 900, "retention_limit_percent": 50}
STATUS: dict[str, Any] = {
    "phase": "Streaming",
    "readyReplicas": 2,
    "conditions": [
        {"type": "Ready", "status": "True", "reason": "Consuming"},
        {"type": "Stalled", "status": "False", "reason": "AsExpected"},
    ],
    "lag": {"seconds": 12, "retentionUsedPercent": 3},
    "channels": {"total": 9, "base": 4, "stream": 5, "open": 3, "closing": 1, "terminated": 4, "unowned": 1},
    "base": {"percent": 100},
    "throughput": {"rowsPerSecond": 500},
    "autoscaling": {"recommendedReplicas": 4, "usefulMaxReplicas": 5},
    "snapshot": {"omittedCells": 7},
}


@pytest.fixture
def metrics() -> OperatorMetrics:
    return OperatorMetrics()


def value(metrics: OperatorMetrics, name: str, **labels: str) -> float | None:
    place = {} if name.startswith("operator_") else {"namespace": "shop", "name": "copy"}
    return metrics.registry.get_sample_value(f"ots_tunnel_{name}", place | labels)


def test_the_scraped_page_has_every_name_with_its_labels(metrics: OperatorMetrics) -> None:
    metrics.observed("shop", "copy", STATUS, WANTED)
    metrics.doubted("shop", "another")
    metrics.acted("shop", "copy", "ScaleDown")
    metrics.passed("shop", "copy", 0.1)
    metrics.failed("AuthFailed")
    metrics.api_refused("GET", "429")
    metrics.service_refused(ConnectError("no route"))

    with (
        HealthServer(Health(metrics), "127.0.0.1", 0) as server,
        urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=10) as answer,
    ):
        families = list(text_string_to_metric_families(answer.read().decode()))

    assert labelled(families) == OPERATOR


def test_a_condition_has_the_reason_of_now_only(metrics: OperatorMetrics) -> None:
    metrics.observed("shop", "copy", STATUS, WANTED)
    ready = {"type": "Ready", "status": "False", "reason": "LagHigh"}
    metrics.observed("shop", "copy", STATUS | {"conditions": [ready]}, WANTED)

    assert value(metrics, "condition", type="Ready", reason="LagHigh") == 0
    assert value(metrics, "condition", type="Ready", reason="Consuming") is None


def test_what_is_unknown_has_no_sample_but_its_conditions(metrics: OperatorMetrics) -> None:
    metrics.observed("shop", "copy", STATUS, WANTED)
    ready = {"type": "Ready", "status": "Unknown", "reason": "EndpointUnreachable"}
    metrics.observed("shop", "copy", STATUS | {"conditions": [ready]}, None)

    assert value(metrics, "condition", type="Ready", reason="EndpointUnreachable") == -1
    assert value(metrics, "phase", phase="Streaming") == 1
    assert [value(metrics, name) for name in ("lag_seconds", "unowned_channels", "wanted_workers")] == [None] * 3


@pytest.mark.parametrize(
    ("gaps", "count"),
    [
        (None, 0.0),
        ([{"channel": "c1", "accepted": False}, {"channel": "c2", "accepted": True}], 1.0),
    ],
)
def test_possible_gaps_count_until_they_are_accepted(
    metrics: OperatorMetrics, gaps: list[dict[str, Any]] | None, count: float
) -> None:
    status = STATUS | {"possibleGaps": gaps}

    metrics.observed("shop", "copy", status, WANTED)
    assert value(metrics, "unaccepted_gaps") == count
    # a pass that observed nothing keeps the record of them
    metrics.observed("shop", "copy", status, None)
    assert value(metrics, "unaccepted_gaps") == count


def test_an_object_that_is_gone_has_no_sample(metrics: OperatorMetrics) -> None:
    metrics.observed("shop", "copy", STATUS, WANTED)
    metrics.acted("shop", "copy", "ApplyObject")
    metrics.forget("shop", "copy")

    assert not [sample for family in metrics.registry.collect() for sample in family.samples if "name" in sample.labels]


def test_of_an_object_that_perhaps_nobody_serves_nothing_else_is_known(metrics: OperatorMetrics) -> None:
    metrics.observed("shop", "copy", STATUS, WANTED)
    metrics.doubted("shop", "copy")

    samples = [sample for family in metrics.registry.collect() for sample in family.samples if "name" in sample.labels]
    assert [(sample.name, sample.value) for sample in samples] == [("ots_tunnel_claim_unreadable", 1.0)]


def test_actions_are_counted_by_kind(metrics: OperatorMetrics) -> None:
    for action in ("ApplyObject", "ApplyObject", "ScaleDown"):
        metrics.acted("shop", "copy", action)

    assert value(metrics, "actions_total", action="ApplyObject") == 2
    assert value(metrics, "actions_total", action="ScaleDown") == 1


def test_the_leader_is_asked_at_every_scrape(metrics: OperatorMetrics) -> None:
    health = Health(metrics)

    assert value(metrics, "operator_leader") == 0
    health.leading = True
    assert value(metrics, "operator_leader") == 1


def test_errors_of_the_service_are_counted_by_their_code(metrics: OperatorMetrics) -> None:
    metrics.service_refused(service_error("OTSTunnelServerUnavailable", "busy"))
    metrics.service_refused(ConnectError("no route"))

    assert value(metrics, "operator_service_errors_total", code="OTSTunnelServerUnavailable") == 1
    assert value(metrics, "operator_service_errors_total", code="ConnectError") == 1


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("OTSObjectNotExist", "Requested table does not exist."),
        ("OTSParameterInvalid", "tunnel not exist"),
        ("OTSParameterInvalid", "table not exist"),
    ],
)
def test_that_something_is_not_there_is_an_answer_and_no_error(
    metrics: OperatorMetrics, code: str, message: str
) -> None:
    metrics.service_refused(service_error(code, message))

    assert value(metrics, "operator_service_errors_total", code=code) is None


def test_the_version_is_told(metrics: OperatorMetrics) -> None:
    assert value(metrics, "operator_build_info", version=__version__) == 1


def test_an_endpoint_that_makes_codes_up_makes_no_more_samples(metrics: OperatorMetrics) -> None:
    """An object names its endpoint, and whatever answers there may have any code, and of any length."""
    for number in range(10 * MAX_CODES):
        metrics.service_refused(service_error(f"Made{number}", "up"))
    metrics.service_refused(service_error("x" * 100_000, "long"))
    metrics.service_refused(service_error("OTSAuthFailed", "known"))

    counted = [sample for family in metrics.registry.collect() for sample in family.samples if "code" in sample.labels]
    codes = {sample.labels["code"] for sample in counted if "service_errors" in sample.name}
    assert len(codes) == MAX_CODES + 2
    assert value(metrics, "operator_service_errors_total", code="Other") == 9 * MAX_CODES + 1
    assert value(metrics, "operator_service_errors_total", code="OTSAuthFailed") == 1
