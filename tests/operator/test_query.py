"""The life of an object whose changes a query of Spark follows, on a real API server; the test acts for Spark.

Every pass starts from an empty cache, as after a restart of the operator.
"""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from ots_tunnel.query.record import QueryProgress, query_items
from ots_tunnel_operator.deletion.obstacles import Draining
from ots_tunnel_operator.deletion.policy import Policy
from ots_tunnel_operator.deletion.remains import Remains
from ots_tunnel_operator.kube.kinds import TUNNEL
from ots_tunnel_operator.kube.watched import SPARK_LABEL
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.times import timestamp
from tests.operator.scenes.pass_scene import FINALIZER, SETTINGS, PassScene
from tests.support.kube.api_server import ApiServer
from tests.support.operator.query_worlds import ALL_BY_QUERY, BY_QUERY

pytestmark = [pytest.mark.api, pytest.mark.timeout(500)]

NAME = "flights-copy"
QUERY = f"{NAME}-stream"
FINAL = QueryProgress(batch_id=1, error="records of a logged batch are gone", is_final=True)


@pytest.fixture
def scene(spark_api_server: ApiServer, flights_scene: PassScene) -> PassScene:
    return flights_scene


async def restarted_pass(scene: PassScene) -> None:
    """Run a pass without anything that earlier ones kept."""
    await scene.close()
    scene.caches.clear()
    await scene.step()


async def settled(scene: PassScene) -> None:
    for _ in range(2):
        await restarted_pass(scene)


async def begun(scene: PassScene, **changes: Any) -> dict[str, Any]:
    """Apply an object, and run passes until its application exists."""
    scene.secret()
    scene.apply(**BY_QUERY | changes)
    await scene.until(lambda: QUERY in scene.names("sparkapplications"))
    return scene.read("sparkapplication", QUERY)


def patch(scene: PassScene, kind: str, change: dict[str, Any], *options: str) -> None:
    document = json.dumps(change)
    scene.api.must("-n", scene.namespace, "patch", kind, QUERY, "--type=merge", "-p", document, *options)


def reach(scene: PassScene, state: str) -> None:
    """Do as the Spark operator does."""
    status = {
        "applicationState": {"state": state},
        "driverInfo": {"podName": f"{QUERY}-driver"},
        "lastSubmissionAttemptTime": timestamp(time.time()),
    }
    patch(scene, "sparkapplication", {"status": status}, "--subresource=status")


def start_driver(scene: PassScene) -> None:
    """Do as the Spark operator does; without a node the pod stays as it is."""
    labels = {SPARK_LABEL: QUERY, "spark-role": "driver"}
    metadata = {"name": f"{QUERY}-driver", "namespace": scene.namespace, "labels": labels}
    spec = {"containers": [{"name": "spark-kubernetes-driver", "image": "spark:test"}]}
    scene.api.must(
        "create", "-f", "-", document={"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    )


def record(scene: PassScene, progress: QueryProgress) -> None:
    """Do as the driver does."""
    label = scene.status()["tunnel"]["id"]
    items = {key: None for key in ("error", "isFinal")} | query_items(progress, label, time.time())
    patch(scene, "configmap", {"data": items})


async def test_a_query_follows_and_is_suspended_and_resumed(scene: PassScene) -> None:
    first = await begun(scene)

    assert first["spec"]["suspend"] is False
    assert scene.names("deployments") == []
    assert scene.stored()["tunnels"] == ["flights-copy"]
    assert scene.status()["filesPlace"] == "persistentVolumeClaim/lake:/flights"
    await settled(scene)
    assert scene.condition("Ready")[:2] == ("False", "StartingQuery")
    assert scene.status()["spark"] == {"application": QUERY, "state": "NEW"}

    # what runs is left alone by operators that start again
    start_driver(scene)
    reach(scene, "RUNNING")
    record(scene, QueryProgress(batch_id=3, rows_per_second=10, lag_seconds=0, channels=1))
    before = scene.read("sparkapplication", QUERY)["metadata"]["generation"]
    await settled(scene)
    assert scene.read("sparkapplication", QUERY)["metadata"]["generation"] == before
    found = scene.status()["spark"]
    assert (found["state"], found["batchId"], found["rowsPerSecond"], found["lagSeconds"]) == ("RUNNING", 3, 10, 0)
    assert scene.condition("SinkReady")[:2] == ("True", "SinkAvailable")
    # no client of the query is connected
    assert scene.condition("Ready")[:2] == ("False", "ChannelsUnowned")

    scene.apply(**BY_QUERY, suspend=True)
    await settled(scene)
    assert scene.read("sparkapplication", QUERY)["spec"]["suspend"] is True
    assert scene.condition("Suspended")[:2] == ("False", "Suspending")
    scene.api.must("-n", scene.namespace, "delete", "pod", f"{QUERY}-driver", "--now")
    reach(scene, "SUSPENDED")
    await settled(scene)
    assert scene.condition("Suspended")[:2] == ("True", "SuspendRequested")

    scene.apply(**BY_QUERY)
    await settled(scene)
    assert scene.read("sparkapplication", QUERY)["spec"]["suspend"] is False
    assert scene.condition("Ready")[:2] == ("False", "StartingQuery")


async def test_a_query_brings_existing_rows_before_it_is_ready(scene: PassScene) -> None:
    await begun(scene, **ALL_BY_QUERY)
    start_driver(scene)
    reach(scene, "RUNNING")
    record(scene, QueryProgress(batch_id=0, rows_per_second=10, channels=1))
    await settled(scene)

    status = scene.status()
    assert status["tunnel"]["type"] == "BaseAndStream"
    assert (status["phase"], status["base"]["percent"]) == ("BaseData", 0)
    assert scene.condition("Ready")[:2] == ("False", "BaseDataRunning")
    assert scene.condition("SinkReady")[:2] == ("True", "SinkAvailable")
    assert scene.names("deployments") == []
    # an engine of its own would be a second reader of the same rows
    assert scene.names("sparkapplications") == [QUERY]


async def test_a_final_error_stands_until_an_edit_replaces_the_application(scene: PassScene) -> None:
    first = await begun(scene)
    await settled(scene)
    reach(scene, "COMPLETED")
    record(scene, FINAL)
    await settled(scene)
    assert scene.condition("Stalled")[:2] == ("True", "QueryFailed")
    assert FINAL.error in scene.condition("Ready")[2]
    assert scene.read("sparkapplication", QUERY)["metadata"]["uid"] == first["metadata"]["uid"]

    scene.apply(**BY_QUERY | {"source__tunnel__onPossibleGap": "Continue"})
    await settled(scene)
    second = scene.read("sparkapplication", QUERY)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert scene.condition("Stalled")[0] == "False"
    assert "error" not in (scene.read("configmap", QUERY).get("data") or {})
    assert "onPossibleGap: Continue" in scene.read("configmap", f"{QUERY}-config")["data"]["query.yaml"]


async def test_an_application_that_has_lost_its_labels_gets_them_back(scene: PassScene) -> None:
    """No watch shows it any more, and its driver goes on."""
    first = await begun(scene)
    start_driver(scene)
    reach(scene, "RUNNING")
    await settled(scene)
    patch(scene, "sparkapplication", {"metadata": {"labels": None}})
    await settled(scene)

    found = scene.read("sparkapplication", QUERY)["metadata"]
    assert (found["uid"], found["labels"]) == (first["metadata"]["uid"], first["metadata"]["labels"])


@pytest.mark.parametrize("policy", ["Retain", "Delete"])
async def test_a_deletion_ends_the_query_before_the_tunnel(scene: PassScene, policy: str) -> None:
    await begun(scene, deletionPolicy=policy)
    reach(scene, "RUNNING")
    # the Spark operator takes its time
    patch(scene, "sparkapplication", {"metadata": {"finalizers": ["sparkoperator.k8s.io/test"]}})
    scene.api.must("-n", scene.namespace, "patch", "ott", NAME, "--type=merge", "-p", FINALIZER)
    scene.api.must("-n", scene.namespace, "delete", "ott", NAME, "--wait=false")
    body = await scene.kube.get(TUNNEL, scene.namespace, NAME)
    assert body is not None

    for _ in range(2):
        with pytest.raises(Exception, match="the query's SparkApplication is being removed") as waits:
            await Policy(scene.kube, SETTINGS).carry_out(Remains(body), LoopCache())
        assert isinstance(waits.value, Draining) == (policy == "Retain")
    assert scene.stored()["tunnels"] == ["flights-copy"]
    patch(scene, "sparkapplication", {"metadata": {"finalizers": None}})
    await scene.delete()

    assert QUERY not in scene.names("sparkapplications")
    assert scene.stored()["tunnels"] == (["flights-copy"] if policy == "Retain" else [])


async def test_an_object_applied_again_goes_on_with_the_tunnel_and_its_folder_of_checkpoints(scene: PassScene) -> None:
    await begun(scene)
    before = scene.read("configmap", f"{QUERY}-config")["data"]["query.yaml"]
    tunnel = scene.status()["tunnel"]["id"]
    await scene.delete()
    # there is no garbage collector here
    for kind in ("serviceaccount", "role", "rolebinding", "configmap"):
        for name in scene.names(kind):
            if name.startswith(NAME):
                scene.api.must("-n", scene.namespace, "delete", kind, name)

    scene.apply(**BY_QUERY)
    await scene.until(lambda: QUERY in scene.names("sparkapplications"))
    after = scene.read("configmap", f"{QUERY}-config")["data"]["query.yaml"]

    assert f"checkpointDirectory: /var/lib/ots/{tunnel}" in before
    assert f"checkpointDirectory: /var/lib/ots/{tunnel}" in after


async def test_a_query_without_a_volume_for_its_files_starts_nothing(scene: PassScene) -> None:
    scene.secret()
    scene.apply(**BY_QUERY | {"spark": {"checkpoint": {"claimName": "c"}}})
    await settled(scene)

    assert scene.condition("Stalled")[:2] == ("True", "InvalidSpec")
    assert "no volume is mounted at /lake/flights or above it" in scene.condition("SinkReady")[2]
    assert scene.names("sparkapplications") == []
    assert scene.stored()["tunnels"] == []
