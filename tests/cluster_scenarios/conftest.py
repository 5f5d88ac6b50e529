"""Fixtures that run the demo's scenario on a separate real cluster; the cluster of `make demo` stays unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cluster import local_cluster
from tests.cluster.local_cluster import Cluster, ClusterUnavailable
from tests.demo.progress import Story
from tests.demo.run import Result, run
from tests.demo.scenario import Scenario

RunScenario = Callable[..., Result]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Build everything for the cluster `ott-test`; the scenario starts it, and the fixture stops it at the end."""
    found = Cluster("ott-test")
    try:
        local_cluster.run_script("packages.sh", timeout=900)
        local_cluster.build()
        local_cluster.build_images()
    except ClusterUnavailable as error:
        _skip(error)
    yield found
    found.down(keep_images=True)  # images stay as a cache, because importing the Spark image takes a minute


@pytest.fixture
def run_scenario(cluster: Cluster) -> RunScenario:
    """Return a function that runs the demo's scenario in small; its keywords are those of `Scenario`."""

    def run_small(**changes: Any) -> Result:
        try:
            return run(Scenario(cluster=cluster.name, **{"rows": 6000, "poll_seconds": 3, **changes}), Story())
        except ClusterUnavailable as error:
            _skip(error)

    return run_small


def _skip(error: ClusterUnavailable) -> Any:
    pytest.skip(f"the cluster needs Linux, root and the packages of tests/cluster/packages.sh: {error}")
