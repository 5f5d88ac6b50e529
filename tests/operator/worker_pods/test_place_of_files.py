"""A place of files that nothing was written to is exchanged for another one: its workers end first."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel_operator import names
from ots_tunnel_operator.kube.kinds import CONFIG_MAP, DEPLOYMENT, POD, TUNNEL, Manifest
from tests.operator.scenes.model_scene import NAME, ModelScene, open_model_scene
from tests.support.operator.objects import tunnel_object

pytestmark = pytest.mark.timeout(120)


def place(host: str) -> dict[str, Any]:
    keys = {"secretRef": {"name": "ots-credentials"}}
    return {"url": "s3://shop/orders", "endpoint": f"http://{host}", "credentials": keys}


async def begin(scene: ModelScene) -> None:
    """An object whose only worker is still being started."""
    sink = {"files": place("former:9000")}
    body = tunnel_object(NAME, source__endpoint=scene.emulator.endpoint, sink=sink)
    await scene.kube.create(TUNNEL, body)
    await scene.until(lambda: bool(scene.names("Deployment")))
    labels = names.labels(NAME, names.ROLE_WORKER)
    pod = {"metadata": {"name": "w-1", "namespace": "default", "labels": labels}, "spec": {"containers": []}}
    await scene.kube.create(POD, pod)


async def workers(scene: ModelScene) -> tuple[int, str]:
    """The number of the Deployment, and the place that it was applied with."""
    found: Manifest | None = await scene.kube.get(DEPLOYMENT, "default", NAME)
    assert found is not None
    return found["spec"]["replicas"], found["metadata"]["annotations"][names.ANNOTATION_FILES_PLACE]


async def end_worker(scene: ModelScene) -> None:
    """Do as the controllers of the cluster do for a Deployment of 0 workers."""
    scene.api.finalize(("Pod", "default", "w-1"))
    found = await scene.kube.get(DEPLOYMENT, "default", NAME)
    assert found is not None
    status = {"observedGeneration": found["metadata"]["generation"], "replicas": 0}
    await scene.kube.patch(DEPLOYMENT, "default", NAME, {"status": status}, "status")


async def test_a_worker_that_is_being_started_ends_before_another_place_is_used() -> None:
    async with open_model_scene() as scene:
        await begin(scene)
        await scene.edit({"sink": {"files": {"endpoint": "http://other:9000"}}})
        await scene.steps(3)
        assert await workers(scene) == (0, "s3://shop/orders in former:9000")

        await end_worker(scene)
        await scene.steps(2)

        assert await workers(scene) == (1, "s3://shop/orders in other:9000")


@pytest.mark.parametrize("with_document", [False, True], ids=["Deployment", "Deployment and ConfigMap"])
async def test_a_deployment_that_somebody_has_deleted_does_not_forget_the_place(with_document: bool) -> None:
    async with open_model_scene() as scene:
        await begin(scene)
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await scene.kube.patch(POD, "default", "w-1", {"status": ready}, "status")
        await scene.edit({"sink": {"files": {"endpoint": "http://other:9000"}}})
        await scene.kube.delete(DEPLOYMENT, "default", NAME)
        if with_document:
            await scene.kube.delete(CONFIG_MAP, "default", names.config_name(NAME))
        await scene.steps(3)

        assert scene.names("Deployment") == []
        assert await scene.reason("SinkReady") == "InvalidSpec"

        await scene.edit({"sink": {"files": {"endpoint": "http://former:9000"}}})
        await scene.steps(2)

        assert await workers(scene) == (1, "s3://shop/orders in former:9000")
