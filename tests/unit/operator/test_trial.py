"""The API server is asked once whether it takes a pod template, before anything of it is applied."""

from __future__ import annotations

from typing import Any, cast

import pytest

from ots_tunnel_operator.apply.applier import Applier
from ots_tunnel_operator.apply.create import ActionFailed
from ots_tunnel_operator.kube.client import Kube
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.manifests.worker_deployment import deployment
from ots_tunnel_operator.manifests.worker_document import worker_config
from ots_tunnel_operator.observe.trial import AGAIN_SECONDS
from ots_tunnel_operator.plan.actions import ApplyObject, TryTemplate
from ots_tunnel_operator.reasons import Reason
from tests.support.kube.kube_memory import KubeMemory
from tests.support.operator.worlds import NOW, planned, recorded, resource, world

WORDS = 'Deployment.apps "flights-copy" is invalid: spec.template.spec.containers[0].image: Required value'
INVALID = KubeError(422, "Invalid", WORDS)


def rendered(image: str = "w:1", replicas: int = 1) -> Manifest:
    of = resource().object
    return deployment(of, worker_config(of, "t"), image, replicas)


def later(seconds: float = 0.0, cache: LoopCache | None = None) -> LoopCache:
    cache = cache or LoopCache()
    cache.keep_time(NOW + seconds)
    return cache


async def attempt(kube: KubeMemory, cache: LoopCache, manifest: Manifest) -> None:
    applier = Applier(cast(Kube, kube), resource(recorded()), cache)
    assert await applier.apply(TryTemplate(manifest)) is False


async def refusal(kube: KubeMemory, cache: LoopCache, manifest: Manifest) -> Any:
    with pytest.raises(ActionFailed) as caught:
        await attempt(kube, cache, manifest)
    return caught.value.problem


def test_it_is_planned_only_where_the_user_has_a_part_in_the_template() -> None:
    template = {"spec": {"nodeSelector": {"disk": "ssd"}}}
    with_template = planned(world(resource(recorded(), workers={"podTemplate": template}))).actions

    tried, *applied = with_template
    assert isinstance(tried, TryTemplate)
    (workers,) = (
        action.manifest
        for action in applied
        if isinstance(action, ApplyObject) and action.manifest["kind"] == "Deployment"
    )
    assert tried.manifest == workers
    assert not any(isinstance(action, TryTemplate) for action in planned(world()).actions)


async def test_a_template_is_asked_about_once_whatever_the_number_of_workers() -> None:
    kube, cache = KubeMemory(), later()

    for manifest in (rendered(), rendered(), rendered(replicas=5)):
        await attempt(kube, cache, manifest)
    assert kube.trials == 1
    await attempt(kube, cache, rendered("w:2"))
    assert (kube.trials, kube.writes) == (2, [])


async def test_a_deployment_that_is_as_rendered_is_not_asked_about() -> None:
    kube = KubeMemory()
    applier = Applier(cast(Kube, kube), resource(recorded()), later())
    await applier.apply(ApplyObject(rendered()))

    # as after a restart of the operator
    await attempt(kube, later(), rendered())
    assert kube.trials == 0


async def test_a_refusal_has_the_words_of_the_api_server_and_is_not_asked_for_in_each_pass() -> None:
    kube, cache = KubeMemory(trial_refusal=INVALID), later()

    problem = await refusal(kube, cache, rendered())
    assert (problem.reason, problem.stalled, problem.stops_workers) == (Reason.POD_TEMPLATE_REFUSED, True, False)
    assert WORDS in problem.message
    assert "workers that run keep running as they are" in problem.message
    assert await refusal(kube, later(AGAIN_SECONDS - 1, cache), rendered()) == problem
    assert kube.trials == 1
    # a policy may have changed meanwhile
    kube.trial_refusal = None
    await attempt(kube, later(AGAIN_SECONDS, cache), rendered())
    await attempt(kube, cache, rendered())
    assert kube.trials == 2


@pytest.mark.parametrize("replicas", [0, 2, 5])
async def test_the_number_of_workers_follows_whatever_the_template(replicas: int) -> None:
    """0 stops every worker, also with a template that nobody has corrected yet."""
    kube, cache = KubeMemory(), later()
    applier = Applier(cast(Kube, kube), resource(recorded()), cache)
    await applier.apply(ApplyObject(rendered(replicas=2)))
    template = kube.objects["Deployment", "flights-copy"]["spec"]["template"]
    kube.writes, kube.trial_refusal = [], INVALID

    for _ in range(2):
        problem = await refusal(kube, cache, rendered("w:2", replicas))

    assert problem.reason is Reason.POD_TEMPLATE_REFUSED
    assert (
        kube.objects["Deployment", "flights-copy"]["spec"] | {"template": template, "replicas": replicas}
        == (kube.objects["Deployment", "flights-copy"]["spec"])
    )
    assert kube.writes == ([] if replicas == 2 else [("patch", "Deployment", "flights-copy")])


async def test_a_corrected_template_is_asked_about_at_once() -> None:
    kube, cache = KubeMemory(trial_refusal=INVALID), later()
    await refusal(kube, cache, rendered())
    kube.trial_refusal = None

    await attempt(kube, cache, rendered("w:2"))
    assert kube.trials == 2


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (KubeError(400, "BadRequest", "unknown field"), Reason.POD_TEMPLATE_REFUSED),
        (KubeError(403, "Forbidden", "admission webhook denied the request"), Reason.POD_TEMPLATE_REFUSED),
        (
            KubeError(500, "", "failed to create typed patch object (a; b): .spec.foo: not declared"),
            Reason.POD_TEMPLATE_REFUSED,
        ),
        (KubeError(403, "Forbidden", 'x is forbidden: User "o" cannot patch resource'), Reason.API_SERVER_REFUSED),
        (KubeError(500, "InternalError", "etcd"), Reason.API_SERVER_REFUSED),
        (KubeError(0, "TimeoutError", "no answer"), Reason.API_SERVER_REFUSED),
    ],
)
async def test_only_an_answer_about_the_template_refuses_it(error: KubeError, reason: Reason) -> None:
    kube, cache = KubeMemory(trial_refusal=error), later()

    assert (await refusal(kube, cache, rendered())).reason is reason
    await refusal(kube, cache, rendered())
    assert kube.trials == (1 if reason is Reason.POD_TEMPLATE_REFUSED else 2)


async def test_a_deployment_of_another_owner_is_told_as_that() -> None:
    kube = KubeMemory(trial_refusal=INVALID)
    kube.objects["Deployment", "flights-copy"] = {"metadata": {"name": "flights-copy"}}

    assert (await refusal(kube, later(), rendered())).reason is Reason.NAME_CONFLICT
    assert kube.trials == 0
