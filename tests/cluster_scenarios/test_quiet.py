"""Writes to the API server of a real cluster that one object causes: five minutes with a writer, five without."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.cluster.local_cluster import Cluster, ClusterUnavailable
from tests.demo import environment, objects
from tests.demo.kube import Kube
from tests.demo.progress import Story
from tests.demo.run import Demo
from tests.demo.scenario import Scenario
from tests.demo.workload import Workload
from tests.support.audit import AuditLog, others, patches_allowed, summary
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.xdist_group("cluster"),
    pytest.mark.long,
    pytest.mark.timeout(1800),
    pytest.mark.lasts(720),
]

WINDOW = 300.0
#: Seconds after the last change of a table within which the operator writes its final figures.
REST = 60.0


def test_writes_with_a_live_writer_and_after_it_has_stopped(cluster: Cluster) -> None:
    scenario, story = Scenario(cluster=cluster.name, rows=6000), Story()
    images = environment.build_images(scenario)
    try:
        kube = environment.start_local_cluster(scenario, images)
    except ClusterUnavailable as error:
        pytest.skip(f"no cluster on this machine: {error}")
    namespaces = (scenario.namespace, scenario.operator_namespace)
    with environment.emulator(kube, scenario, images, story) as endpoints:
        Demo(scenario, kube, endpoints, story).load()
        environment.install_operator(kube, scenario, images, story)
        kube.apply(objects.tablestore_tunnel(scenario))
        wait_until(lambda: _condition(kube, scenario, "Ready"), scenario.patience, "changes are followed", pause=1)
        wait_until(lambda: _available(kube, scenario), scenario.patience, "the Deployment is available", pause=1)
        writer = Workload(scenario, endpoints.data).writer()
        writer.start()
        try:
            wait_until(lambda: _rate(kube, scenario) not in (None, 0), scenario.patience, "rows move", pause=1)
            log = AuditLog(cluster.audit_log, namespaces)
            time.sleep(WINDOW)
            busy = log.writes()
        finally:
            changes = writer.stop(timeout=60)
        wait_until(lambda: _at_rest(kube, scenario), scenario.patience, "caught up, no rows move", pause=1)
        time.sleep(REST)
        log = AuditLog(cluster.audit_log, namespaces)
        time.sleep(WINDOW)
        still = log.writes()

    print(f"with a writer:\n{summary(busy)}\nwithout:\n{summary(still)}")
    assert sum(changes.values()) > 10 * WINDOW
    assert others(busy) == [], summary(busy)
    assert 1 <= sum(write.is_status for write in busy) <= patches_allowed(WINDOW), summary(busy)
    assert [write for write in still if not write.is_lease] == [], summary(still)
    assert sum(write.is_lease for write in still) > WINDOW / 10


def _status(kube: Kube, scenario: Scenario) -> dict[str, Any]:
    status: dict[str, Any] = kube.get("-n", scenario.namespace, "ott", scenario.name).get("status", {})
    return status


def _condition(kube: Kube, scenario: Scenario, kind: str) -> bool:
    conditions = _status(kube, scenario).get("conditions", ())
    return any(entry["type"] == kind and entry["status"] == "True" for entry in conditions)


def _available(kube: Kube, scenario: Scenario) -> bool:
    deployment = kube.get("-n", scenario.namespace, "deployment", scenario.name)
    return bool(deployment["status"].get("availableReplicas") == scenario.replicas)


def _rate(kube: Kube, scenario: Scenario) -> Any:
    return _status(kube, scenario).get("throughput", {}).get("rowsPerSecond")


def _at_rest(kube: Kube, scenario: Scenario) -> bool:
    return bool(_status(kube, scenario).get("lag", {}).get("caughtUp")) and _rate(kube, scenario) == 0
