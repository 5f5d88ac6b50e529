"""The lake demo in small under the real Spark operator: a mirror, with a killed driver, in a volume and in a bucket, in
Delta and in Iceberg.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.cluster.local_cluster import Cluster
from tests.demo.lake.bucket import Bucket
from tests.demo.lake.lake_object import DRIVER, NAME
from tests.demo.lake.run import BucketOf, Result, run
from tests.demo.progress import Story
from tests.demo.scenario import Scenario
from tests.support.sinks.s3_store import BUCKET, s3_store

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.long,
    pytest.mark.xdist_group("cluster"),
    pytest.mark.lasts(500),
    pytest.mark.timeout(3000),
]

SCENARIO = Scenario(engine="lake", rows=6_000, changes_per_second=100, patience=900, poll_seconds=3, name=NAME)


def mirrored(cluster: Cluster, bucket_of: BucketOf | None = None, scenario: Scenario = SCENARIO) -> Result:
    result = run(replace(scenario, cluster=cluster.name), Story(), bucket_of)
    assert sum(result.changes.values()) > 0
    assert result.comparison.rows > 0
    return result


def test_a_mirror_in_a_volume_equals_its_table(cluster: Cluster) -> None:
    result = mirrored(cluster)

    assert (result.comparison.differences, result.comparison.first) == (0, [])


def test_a_mirror_in_iceberg_equals_its_table(cluster: Cluster) -> None:
    """By the image with PySpark 4.1, submitted by a Spark operator with the other one."""
    result = mirrored(cluster, scenario=replace(SCENARIO, table_format="Iceberg"))

    assert (result.comparison.differences, result.comparison.first) == (0, [])
    words = ("-n", SCENARIO.namespace, "get", "pod", DRIVER, "-o", "jsonpath={.spec.containers[0].image}")
    assert "/ots-tunnel-spark-iceberg:" in cluster.kubectl(*words)


def test_a_mirror_in_a_bucket_equals_its_table(cluster: Cluster) -> None:
    names: list[str] = []

    @contextmanager
    def bucket_of(started: Cluster) -> Iterator[Bucket]:
        # the machine's own address in the cluster
        with s3_store(host=started.host_ip) as store:
            yield Bucket(BUCKET, store.url, "of-the-secret", "never-shown")
            names.extend(store.names())

    result = mirrored(cluster, bucket_of)

    assert (result.comparison.differences, result.comparison.first) == (0, [])
    assert {name.partition("/")[0] for name in names} == {"lake"}
    words = ("-n", SCENARIO.namespace)
    objects = cluster.kubectl(*words, "get", "ott,sparkapplication,pod,configmap,event", "-o", "json")
    assert json.loads(objects)["items"]
    assert "never-shown" not in objects + cluster.kubectl(*words, "logs", DRIVER)
