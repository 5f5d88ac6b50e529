"""Passes over an object whose new pod template the API server refuses: what the status says, and who may roll."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.kube.cluster import Cluster, Reader
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import TUNNEL, Kind, Manifest
from ots_tunnel_operator.loop.reconcile import Reconciler
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.names import ANNOTATION_OPERATOR, FINALIZER, LABEL_ROLE, config_name, workers_name
from ots_tunnel_operator.observe.observer import Observer
from ots_tunnel_operator.observe.rollouts import Rollouts
from ots_tunnel_operator.observe.trial import AGAIN_SECONDS
from ots_tunnel_operator.settings import WorkerNetwork
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.world import Competitor, World
from tests.support.kube.kube_memory import KubeMemory
from tests.support.operator.objects import tunnel_object
from tests.support.operator.scaled_worlds import scaled
from tests.support.operator.worlds import NOW, SETTINGS, UID, recorded

NAME = "flights-copy"
DENIED = KubeError(403, "Forbidden", "denied by a policy")
SELECTED = {"podTemplate": {"spec": {"nodeSelector": {"disk": "ssd"}}}}


class Labelled:
    """What watches keep: the objects with the operator's labels, so none of somebody else."""

    def __init__(self, kube: KubeMemory) -> None:
        self._kube = kube

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        found = await self._kube.get(kind, namespace, name)
        is_watched = found is not None and (kind is TUNNEL or LABEL_ROLE in (found["metadata"].get("labels") or {}))
        return found if is_watched else None

    async def stored_version(self, kind: Kind, namespace: str, name: str) -> str:
        found = await self.get(kind, namespace, name)
        return "" if found is None else str(found["metadata"].get("resourceVersion") or "")


class Scene:
    """Passes every 15 s over an object, by default with a part of its own in the template; its workers are at rest."""

    def __init__(self, **spec: Any) -> None:
        body = tunnel_object(replicas=2, **(spec or {"workers": SELECTED}))
        body["metadata"] |= {"uid": UID, "generation": 3, "finalizers": [FINALIZER]}
        body["metadata"]["annotations"] = {ANNOTATION_OPERATOR: "ots/mine"}
        self.kube = KubeMemory({("TablestoreTunnel", NAME): body | {"status": recorded()}})
        self.now, self.cache, self.rollouts = NOW, LoopCache(), Rollouts("2")
        self.install("worker:1")

    def install(self, image: str, network: WorkerNetwork | None = None) -> None:
        """Another release of the operator takes over."""
        self.reconciler = Reconciler(
            cast(Cluster, self.kube),
            cast(Observer, self),
            replace(SETTINGS, lease="ots/mine", worker_image=image, worker_network=network),
            OperatorMetrics(),
            lambda resource: None,
            clock=lambda: self.now,
            reader=cast(Reader, Labelled(self.kube)),
        )

    async def observe(self, resource: Resource, cache: LoopCache, *, elder: Competitor | None, now: float) -> World:
        found = replace(scaled("Disabled"), resource=resource, now=now)
        applied = self.kube.objects.get(("Deployment", NAME))
        if applied is None:
            return found
        count = applied["spec"]["replicas"]
        counts = dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas"), count) | {"observedGeneration": 1}
        body = applied | {"metadata": applied["metadata"] | {"generation": 1}, "status": counts}
        turn = self.rollouts.turn(resource)
        return replace(found, children={("Deployment", NAME): body}, rollout_turn=turn)

    async def passes(self, number: int) -> dict[str, str]:
        """The reasons of the conditions after some passes."""
        for _ in range(number):
            self.now += 15.0
            await self.reconciler.step("default", NAME, self.cache)
        self.rollouts.changed(self.body)
        return {item["type"]: item["reason"] for item in self.body["status"]["conditions"]}

    def ask_for(self, replicas: int) -> None:
        """Edit spec.replicas."""
        self.edit(replicas=replicas)

    def edit(self, **fields: Any) -> None:
        """Edit the spec."""
        self.body["spec"] |= fields
        self.body["metadata"]["generation"] += 1

    def places(self) -> int:
        """Objects that another one would wait for."""
        metadata = self.body["metadata"] | {"uid": "f" * 16}
        other = TablestoreTunnel.from_body(self.body | {"metadata": metadata, "status": {}})
        turn = self.rollouts.turn(Resource(other, {}))
        return turn.rolling + turn.ahead

    @property
    def body(self) -> dict[str, Any]:
        return self.kube.objects["TablestoreTunnel", NAME]

    @property
    def image(self) -> str:
        template = self.kube.objects["Deployment", NAME]["spec"]["template"]
        found: str = template["spec"]["containers"][0]["image"]
        return found


async def refused_scene() -> Scene:
    """Workers run, and a policy refuses the image of a new release."""
    scene = Scene()
    await scene.passes(3)
    scene.install("worker:2")
    scene.kube.trial_refusal = DENIED
    return scene


async def test_a_refused_template_is_told_as_long_as_it_is_refused_and_keeps_nobody_waiting() -> None:
    scene = await refused_scene()

    assert (await scene.passes(1))["Progressing"] == "RolloutWaiting"
    for _ in range(40):
        found = await scene.passes(1)
        assert (found["Progressing"], found["Degraded"]) == ("RolloutStuck", "PodTemplateRefused")
        assert scene.places() == 0
    assert scene.image == "worker:1"


async def test_a_template_that_is_taken_after_all_waits_for_its_turn_again() -> None:
    scene = await refused_scene()
    await scene.passes(5)

    scene.kube.trial_refusal = None
    scene.now += AGAIN_SECONDS
    assert (await scene.passes(1))["Progressing"] == "RolloutWaiting"
    await scene.passes(1)

    assert scene.image == "worker:2"


async def test_refused_workers_are_stopped_by_the_number_0() -> None:
    scene = await refused_scene()
    await scene.passes(3)

    scene.ask_for(0)
    await scene.passes(1)

    assert scene.kube.objects["Deployment", NAME]["spec"]["replicas"] == 0
    assert scene.image == "worker:1"


#: An object without a part of its own in the template: a policy of the cluster may refuse the release's image.
PLAIN = {"monitoring": {"lagDegradedSeconds": 900}}


async def test_a_release_that_a_policy_refuses_keeps_nobody_waiting_and_its_document_to_itself() -> None:
    scene = Scene(**PLAIN)
    await scene.passes(3)
    document = scene.kube.objects["ConfigMap", f"{NAME}-config"]
    scene.install("worker:2")
    scene.kube.trial_refusal = DENIED

    assert (await scene.passes(1))["Progressing"] == "RolloutWaiting"
    for _ in range(40):
        found = await scene.passes(1)
        assert (found["Progressing"], found["Degraded"]) == ("RolloutStuck", "PodTemplateRefused")
        assert scene.places() == 0
    (problem,) = (item for item in scene.body["status"]["conditions"] if item["type"] == "Degraded")
    assert (
        "spec.workers: the API server refuses the workers' Deployment (denied by a policy): let" in problem["message"]
    )
    assert "podTemplate" not in problem["message"]
    assert scene.image == "worker:1"
    assert scene.kube.objects["ConfigMap", f"{NAME}-config"] == document


@pytest.mark.parametrize("replicas", [0, 5])
async def test_the_number_of_workers_follows_although_a_policy_refuses_the_release(replicas: int) -> None:
    scene = Scene(**PLAIN)
    await scene.passes(3)
    scene.install("worker:2")
    scene.kube.trial_refusal = DENIED
    await scene.passes(3)

    scene.ask_for(replicas)
    await scene.passes(1)

    assert scene.kube.objects["Deployment", NAME]["spec"]["replicas"] == replicas
    assert scene.image == "worker:1"


async def test_stopped_workers_come_back_as_they_were_although_a_policy_refuses_the_release() -> None:
    """As those of an object that sleeps: rows wait for them."""
    scene = Scene(**PLAIN)
    await scene.passes(3)
    scene.ask_for(0)
    await scene.passes(2)
    scene.kube.trial_refusal = DENIED
    scene.install("worker:2")
    await scene.passes(2)

    scene.ask_for(1)
    await scene.passes(1)

    assert scene.kube.objects["Deployment", NAME]["spec"]["replicas"] == 1
    assert scene.image == "worker:1"


async def test_a_release_that_cannot_make_what_its_workers_need_keeps_nobody_waiting_and_their_number_follows() -> None:
    """Somebody has made a NetworkPolicy of the name before the operator was to."""
    scene = Scene(**PLAIN)
    await scene.passes(3)
    theirs = {"metadata": {"name": workers_name(NAME)}}
    scene.kube.objects["NetworkPolicy", workers_name(NAME)] = theirs
    scene.install("worker:2", WorkerNetwork(peers=()))

    for _ in range(6):
        found = await scene.passes(1)
        assert (found["Progressing"], found["Degraded"]) == ("RolloutStuck", "NameConflict")
        assert scene.places() == 0
    scene.ask_for(5)
    await scene.passes(1)

    assert scene.kube.objects["Deployment", NAME]["spec"]["replicas"] == 5
    assert scene.image == "worker:1"

    del scene.kube.objects["NetworkPolicy", workers_name(NAME)]
    await scene.passes(3)
    assert scene.image == "worker:2"


async def test_a_release_whose_child_a_policy_refuses_keeps_nobody_waiting() -> None:
    """As many such objects as may roll at once would keep all others at the former release."""
    scene = Scene(**PLAIN)
    await scene.passes(3)
    scene.kube.kind_refusals["NetworkPolicy"] = DENIED
    scene.install("worker:2", WorkerNetwork(peers=()))

    for _ in range(6):
        found = await scene.passes(1)
        assert (found["Progressing"], found["Degraded"]) == ("RolloutStuck", "ApiServerRefused")
        assert scene.places() == 0
    assert scene.image == "worker:1"

    scene.kube.kind_refusals.clear()
    await scene.passes(3)
    assert scene.image == "worker:2"


@pytest.mark.parametrize("status", [0, 409, 429, 500, 503])
async def test_a_refusal_that_may_pass_costs_no_place(status: int) -> None:
    scene = Scene(**PLAIN)
    await scene.passes(3)
    scene.kube.kind_refusals["NetworkPolicy"] = KubeError(status, "Busy", "try again")
    scene.install("worker:2", WorkerNetwork(peers=()))

    assert (await scene.passes(2))["Progressing"] in ("RolloutWaiting", "RollingWorkers")
    assert scene.places() == 1


@pytest.mark.parametrize(
    ("kind", "name"),
    [("ConfigMap", config_name(NAME)), ("ServiceAccount", workers_name(NAME)), ("NetworkPolicy", workers_name(NAME))],
)
async def test_workers_are_stopped_by_the_number_0_although_another_object_has_the_name_of_a_child(
    kind: str, name: str
) -> None:
    scene = Scene(**PLAIN)
    scene.install("worker:1", WorkerNetwork(peers=()))
    await scene.passes(3)
    assert scene.kube.objects["Deployment", NAME]["spec"]["replicas"] == 2
    scene.kube.objects[kind, name] = {"metadata": {"name": name}}

    scene.ask_for(0)
    found = await scene.passes(2)

    assert scene.kube.objects["Deployment", NAME]["spec"]["replicas"] == 0
    assert found["Degraded"] == "NameConflict"
    assert scene.kube.objects[kind, name] == {"metadata": {"name": name}}


async def test_workers_that_cannot_be_replaced_keep_their_document_after_an_edit() -> None:
    """One that starts again would read settings that its release may not know."""
    scene = Scene(**PLAIN)
    await scene.passes(3)
    document = scene.kube.objects["ConfigMap", config_name(NAME)]
    scene.kube.objects["NetworkPolicy", workers_name(NAME)] = {"metadata": {"name": workers_name(NAME)}}
    scene.install("worker:2", WorkerNetwork(peers=()))
    await scene.passes(3)

    scene.edit(workers={"heartbeatIntervalSeconds": 5})

    assert (await scene.passes(2))["Degraded"] == "NameConflict"
    assert scene.image == "worker:1"
    assert scene.kube.objects["ConfigMap", config_name(NAME)] == document


async def test_a_rollout_that_has_begun_says_so_although_what_comes_after_it_cannot_be_made() -> None:
    """Somebody has made a disruption budget of their own for these workers, which are replaced without ours."""
    scene = Scene(**PLAIN)
    await scene.passes(3)
    scene.kube.objects["PodDisruptionBudget", workers_name(NAME)] = {"metadata": {"name": workers_name(NAME)}}
    assert (await scene.passes(1))["Degraded"] == "NameConflict"
    scene.install("worker:2")

    assert (await scene.passes(1))["Progressing"] == "RolloutWaiting"
    found = await scene.passes(1)

    assert scene.image == "worker:2"
    assert (found["Progressing"], found["Degraded"]) == ("RollingWorkers", "NameConflict")
    assert scene.places() == 1


async def test_a_release_whose_document_has_a_taken_name_says_so_in_every_pass() -> None:
    scene = Scene(**PLAIN)
    await scene.passes(3)
    scene.kube.objects["ConfigMap", config_name(NAME)] = {"metadata": {"name": config_name(NAME)}}
    await scene.passes(1)
    scene.install("worker:2")
    await scene.passes(2)

    for _ in range(6):
        found = await scene.passes(1)
        assert (found["Progressing"], found["Degraded"]) == ("RolloutStuck", "NameConflict")
        assert scene.places() == 0
    assert scene.image == "worker:1"

    del scene.kube.objects["ConfigMap", config_name(NAME)]
    await scene.passes(3)
    assert scene.image == "worker:2"


async def test_a_taken_name_is_told_while_the_object_waits_for_its_turn() -> None:
    """It was told before the release, and pods that start meanwhile read what somebody else wrote."""
    scene = Scene(**PLAIN)
    await scene.passes(3)
    for number in range(3):
        rolling = {"type": "Progressing", "status": "True", "reason": "RollingWorkers"}
        metadata = scene.body["metadata"] | {"uid": f"other-{number}"}
        scene.rollouts.changed({"metadata": metadata, "status": {"conditions": [rolling]}})
    scene.kube.objects["ConfigMap", config_name(NAME)] = {"metadata": {"name": config_name(NAME)}}
    assert (await scene.passes(1))["Degraded"] == "NameConflict"

    scene.install("worker:2")

    for _ in range(6):
        assert (await scene.passes(1))["Degraded"] == "NameConflict"
    assert scene.image == "worker:1"


async def test_a_release_whose_document_a_policy_refuses_says_so_in_every_pass() -> None:
    """It said in turn that it is stuck and that it waits, and took a turn from others every other pass."""
    scene = Scene(**PLAIN)
    await scene.passes(3)
    scene.kube.edit("ConfigMap", config_name(NAME), "data", value={"worker.json": "of another client"})
    scene.kube.kind_refusals["ConfigMap"] = DENIED
    scene.install("worker:2")
    assert (await scene.passes(1))["Progressing"] == "RolloutWaiting"

    for _ in range(6):
        found = await scene.passes(1)
        assert (found["Progressing"], found["Degraded"]) == ("RolloutStuck", "ApiServerRefused")
        assert scene.places() == 0
    assert scene.image == "worker:1"

    scene.kube.kind_refusals.clear()
    await scene.passes(3)
    assert scene.image == "worker:2"
