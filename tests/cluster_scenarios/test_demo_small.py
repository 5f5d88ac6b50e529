"""The demo in small: workers copy a table on a real Kubernetes, and both tables are equal."""

from __future__ import annotations

import pytest

from tests.cluster_scenarios.conftest import RunScenario

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("cluster"), pytest.mark.timeout(1800)]


def test_workers_copy_a_table_that_changes_through_split_scaling_and_a_killed_pod(run_scenario: RunScenario) -> None:
    result = run_scenario()

    assert result.rows == 6000
    assert sum(result.changes.values()) > 0
    assert result.hand_overs > 0
    assert result.comparison.differences == 0, result.comparison.first
    assert result.comparison.rows > 0
