"""A cluster with both operators, a table, and the volumes of a query."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.cluster import local_cluster
from tests.cluster.local_cluster import Cluster, ClusterUnavailable
from tests.cluster_scenarios.fleet.fleet import Fleet, started
from tests.cluster_scenarios.fleet.report import report
from tests.demo.environment import Images
from tests.demo.lake.volumes import Volumes


@pytest.fixture(scope="module")
def fleet(cluster: Cluster) -> Iterator[Fleet]:
    """Start cluster, emulator and source table, and install the Spark operator and the chart."""
    local_cluster.build("cluster", "spark")
    lines = local_cluster.build_images("app", "spark")
    images = Images(lines["APP_IMAGE"], lines["APP_ARCHIVE"], lines["SPARK_IMAGE"], lines["SPARK_ARCHIVE"])
    try:
        with started(cluster, images) as found:
            yield found
    except ClusterUnavailable as error:
        pytest.skip(f"no cluster on this machine: {error}")


@pytest.fixture(scope="module")
def volumes(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Volumes:
    """Return folders with their claims in the object's namespace."""
    found = Volumes(Path(tmp_path_factory.mktemp("lake")), fleet.scenario.namespace)
    fleet.kube.apply(*found.manifests())
    return found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what a person needs to the report of a failed test, while the cluster still shows it."""
    found = yield
    fleet = getattr(item, "funcargs", {}).get("fleet")
    if found.failed and isinstance(fleet, Fleet):
        found.sections.append(("the cluster", report(fleet.kube, fleet.scenario)))
    return found
