"""The demo's scenario on a real cluster of its own, beside one that `make demo` may have left running."""

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
    """The cluster `ott-test`, with all that is built for it; the scenario starts it, and it is down at the end."""
    found = Cluster("ott-test")
    try:
        local_cluster.run_script("packages.sh", timeout=900)
        local_cluster.build()
        local_cluster.build_images()
    except ClusterUnavailable as error:
        _skip(error)
    yield found
    found.down(keep_images=True)  # a cache as the archives are: importing the Spark image takes a minute


@pytest.fixture
def run_scenario(cluster: Cluster) -> RunScenario:
    """Run the demo's scenario in small; keywords are those of `Scenario`."""

    def run_small(**changes: Any) -> Result:
        try:
            return run(Scenario(cluster=cluster.name, **{"rows": 6000, "poll_seconds": 3, **changes}), Story())
        except ClusterUnavailable as error:
            _skip(error)

    return run_small


def _skip(error: ClusterUnavailable) -> Any:
    pytest.skip(f"the cluster needs Linux, root and the packages of tests/cluster/packages.sh: {error}")
