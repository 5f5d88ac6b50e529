"""The demo in small with a snapshot by Spark, under the real Spark operator, also with a killed driver."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.cluster.local_cluster import Cluster, ClusterError
from tests.cluster_scenarios.conftest import RunScenario

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("cluster")]

DRIVER = "flights-snapshot-driver"


@pytest.mark.timeout(1800)
def test_spark_copies_existing_rows_and_workers_the_changes(cluster: Cluster, run_scenario: RunScenario) -> None:
    result = run_scenario(engine="spark", disturbed=False)

    assert sum(result.changes.values()) > 0
    assert result.comparison.differences == 0, result.comparison.first
    assert result.comparison.rows > 0
    found = json.loads(cluster.kubectl("-n", "demo", "get", "ott,sparkapplication,deployment", "-o", "json"))["items"]
    tunnel, application, *deployments = found
    workers = next(item for item in deployments if item["metadata"]["name"] == "flights")
    snapshot = tunnel["status"]["snapshot"]
    assert (snapshot["state"], snapshot["consistent"]) == ("Completed", True)
    assert application["status"]["applicationState"]["state"] == "COMPLETED"
    # the tunnel first, then the snapshot, then the workers; times are whole seconds
    moments = [
        tunnel["status"]["tunnel"]["createdTime"],
        application["status"]["lastSubmissionAttemptTime"],
        application["status"]["terminationTime"],
        snapshot["finishedTime"],
        workers["metadata"]["creationTimestamp"],
    ]
    assert moments == sorted(moments)


@pytest.mark.long
@pytest.mark.lasts(150)
@pytest.mark.timeout(1800)
def test_a_new_driver_copies_the_splits_that_a_killed_one_left(cluster: Cluster, run_scenario: RunScenario) -> None:
    # Enough rows for five splits, so that the kill comes between two of them. The workers start a write deadline after
    # the second driver's submission, because the first driver's pods are gone and cannot prove that they have ended.
    cluster.down(keep_images=True)  # the record of an earlier run would be mistaken for this run's
    with killed_driver(cluster) as kill:
        result = run_scenario(engine="spark", rows=120_000, changes_per_second=100, patience=1200)

    assert kill.error is None
    assert 0 < kill.done < kill.total
    log = cluster.kubectl("-n", "demo", "logs", DRIVER)
    left = next(line for line in map(json.loads, _own_lines(log)) if line["action"] == "started")
    assert int(left["message"].split()[0]) <= kill.total - kill.done
    assert result.comparison.differences == 0, result.comparison.first
    assert result.comparison.rows > 0


@dataclass
class Kill:
    """Record of progress at the time of the kill."""

    done: int = 0
    total: int = 0
    error: Exception | None = None


@contextmanager
def killed_driver(cluster: Cluster) -> Iterator[Kill]:
    """Kill the driver's pod once, as soon as some but not all splits are recorded."""
    kill, ended = Kill(), threading.Event()

    def watch() -> None:
        while not ended.wait(1):
            try:
                kill.done, kill.total = _recorded(cluster)
            except ClusterError:
                continue  # the driver is still starting
            if 0 < kill.done < kill.total:
                try:
                    cluster.kubectl("-n", "demo", "delete", "pod", DRIVER, "--force", "--grace-period=0")
                except ClusterError as error:
                    kill.error = error
                return

    thread = threading.Thread(target=watch, name="killer", daemon=True)
    thread.start()
    try:
        yield kill
    finally:
        ended.set()
        thread.join(timeout=60)


def _recorded(cluster: Cluster) -> tuple[int, int]:
    """Return the number of finished splits and of all; zeros before the record exists."""
    words = ("-n", "demo", "get", "configmap", "flights-snapshot", "--ignore-not-found", "-o", "json")
    text = cluster.kubectl(*words) if cluster.kubeconfig.exists() else ""
    data = json.loads(text).get("data", {}) if text else {}
    return int(data.get("done", 0)), int(data.get("total", 0))


def _own_lines(log: str) -> list[str]:
    """Return our program's lines among those of Spark."""
    return [line for line in log.splitlines() if line.startswith("{")]
