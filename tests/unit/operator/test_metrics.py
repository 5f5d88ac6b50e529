"""The gauges of an object follow its status."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel_operator.metrics import OperatorMetrics


@pytest.mark.parametrize(
    ("status", "gaps"),
    [
        ({"phase": "Streaming"}, 0.0),
        ({"possibleGaps": [{"channel": "c1", "accepted": False}, {"channel": "c2", "accepted": True}]}, 1.0),
    ],
)
def test_possible_gaps_count_until_they_are_accepted(status: dict[str, Any], gaps: float) -> None:
    metrics = OperatorMetrics()
    labels = {"namespace": "shop", "name": "copy"}

    metrics.observed("shop", "copy", status)
    assert metrics.registry.get_sample_value("ots_tunnel_unaccepted_gaps", labels) == gaps
    # a pass that observed nothing says nothing new of them
    metrics.observed("shop", "copy", {})
    assert metrics.registry.get_sample_value("ots_tunnel_unaccepted_gaps", labels) == gaps
    metrics.forget("shop", "copy")
    assert metrics.registry.get_sample_value("ots_tunnel_unaccepted_gaps", labels) is None
