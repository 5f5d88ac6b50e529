"""The fleet of the long scenarios: started once, shared by all of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

import pytest

from tests.cluster import local_cluster
from tests.cluster.local_cluster import Cluster, ClusterUnavailable
from tests.cluster_scenarios.fleet.copy import Copy
from tests.cluster_scenarios.fleet.fleet import Fleet, started
from tests.cluster_scenarios.fleet.report import report
from tests.demo.environment import Images

#: Makes an object's `Copy`, with the keywords of its constructor.
MakeCopy = Callable[..., Copy]


@pytest.fixture(scope="session")
def fleet(cluster: Cluster) -> Iterator[Fleet]:
    """Start cluster, emulator, source table and chart. Its tests are in one folder, hence in a row."""
    lines = local_cluster.build_images("app")
    try:
        with started(cluster, Images(lines["APP_IMAGE"], lines["APP_ARCHIVE"])) as found:
            yield found
    except ClusterUnavailable as error:
        pytest.skip(f"no cluster on this machine: {error}")


@pytest.fixture(scope="module")
def applied(fleet: Fleet) -> Iterator[Copy]:
    """An object for the tests of a module. It is deleted under Retain, so that the next module's continues its copy."""
    found = Copy(fleet, "life")
    found.apply(replicas=2)
    yield found
    found.delete()


@pytest.fixture
def make_copy(fleet: Fleet) -> Iterator[MakeCopy]:
    """Return `Copy` for this fleet; what a test has left of its objects is deleted at its end."""
    made: list[Copy] = []

    def make(name: str, **names: str) -> Copy:
        made.append(Copy(fleet, name, **names))
        return made[-1]

    yield make
    for each in made:
        each.delete()


@pytest.fixture
def copy(fleet: Fleet, applied: Copy) -> Copy:
    """The object with two workers at rest, whatever the test before has left, so that each test can run alone."""
    with fleet.step("the object has two workers at rest"):
        applied.edit(replicas=2)
        applied.until_at_rest(workers=2)
        applied.tunnel.until_spread(2)
    return applied


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what a person needs to the report of a failed test, while the cluster still shows it."""
    found = yield
    fleet = getattr(item, "funcargs", {}).get("fleet")
    if found.failed and isinstance(fleet, Fleet):
        found.sections.append(("the cluster", report(fleet.kube, fleet.scenario)))
    return found
