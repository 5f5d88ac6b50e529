"""`workers.podTemplate` is judged by a real API server before anything of it is applied."""

from __future__ import annotations

from typing import Any

import pytest

from tests.operator.scenes.pass_scene import PassScene

pytestmark = [pytest.mark.api, pytest.mark.lasts(10)]

GOOD: dict[str, Any] = {"spec": {"nodeSelector": {"disk": "ssd"}}}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "unknown field": ({"spec": {"nodeSelektor": {"disk": "ssd"}}}, "nodeSelektor"),
    "invalid value": ({"spec": {"tolerations": [{"key": "spot", "operator": "Perhaps"}]}}, "Perhaps"),
    "wrong type": ({"spec": {"containers": [{"name": "worker", "args": "run"}]}}, "args"),
    "missing volume": (
        {"spec": {"containers": [{"name": "worker", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}},
        "volumeMounts",
    ),
}


def trials(scene: PassScene) -> list[str]:
    """The Deployments that the API server is asked about from now on."""
    asked: list[str] = []
    original = scene.kube.try_apply

    async def try_apply(manifest: dict[str, Any]) -> None:
        asked.append(manifest["metadata"]["name"])
        await original(manifest)

    scene.kube.try_apply = try_apply
    return asked


def children(scene: PassScene) -> list[str]:
    pairs = (("configmap", "flights-copy-config"), ("deployment", "flights-copy"))
    return [scene.read(kind, name)["metadata"]["resourceVersion"] for kind, name in pairs]


@pytest.fixture
def scene(flights_scene: PassScene) -> PassScene:
    flights_scene.secret()
    return flights_scene


async def test_a_refused_template_leaves_everything_as_it_is_and_is_asked_about_once(scene: PassScene) -> None:
    scene.apply(workers={"podTemplate": GOOD})
    await scene.running()
    await scene.until(lambda: scene.status().get("replicas") == 1)
    asked = trials(scene)

    for name, (template, word) in BAD.items():
        before = children(scene)
        # a change of the document, too: pods that start again must not meet it
        scene.apply(workers={"podTemplate": template, "lanesPerChannel": 3})
        for _ in range(3):
            await scene.step()

        status, reason, message = scene.condition("Stalled")
        assert (status, reason) == ("True", "PodTemplateRefused"), (name, scene.condition("Ready"))
        assert word in message, (name, message)
        assert scene.condition("Ready")[:2] == ("False", "PodTemplateRefused")
        assert children(scene) == before, name
        assert asked == ["flights-copy"], name
        asked.clear()

    scene.apply(workers={"podTemplate": GOOD | {"metadata": {"labels": {"team": "shop"}}}})
    await scene.step()

    assert scene.condition("Stalled")[0] == "False"
    template = scene.read("deployment", "flights-copy")["spec"]["template"]
    assert template["metadata"]["labels"]["team"] == "shop"


async def test_a_refused_template_of_a_new_object_starts_nothing(scene: PassScene) -> None:
    scene.apply(workers={"podTemplate": BAD["unknown field"][0]})
    await scene.until(lambda: scene.status().get("phase") == "Failed")

    assert scene.condition("Stalled")[1] == "PodTemplateRefused"
    assert (scene.names("deployments"), "flights-copy-config" in scene.names("configmaps")) == ([], False)


async def test_a_settled_object_is_never_asked_about_not_even_after_a_restart_of_the_operator(scene: PassScene) -> None:
    scene.apply(workers={"podTemplate": GOOD})
    await scene.running()
    asked = trials(scene)

    for _ in range(2):
        await scene.step()
    scene.caches.clear()
    await scene.step()

    assert asked == []
