"""Looks at the workers' PodMonitor: only where they matter, and a refusal stops nothing and is not repeated at once."""

from __future__ import annotations

from typing import Any, cast

import pytest

from ots_tunnel_operator.apply.applier import Applier
from ots_tunnel_operator.apply.create import ActionFailed
from ots_tunnel_operator.kube.client import Kube
from ots_tunnel_operator.kube.errors import KindMissing, KubeError
from ots_tunnel_operator.kube.kinds import POD_MONITOR, Kind, Manifest
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.manifests.pod_monitor import pod_monitor
from ots_tunnel_operator.observe.pod_monitor import AGAIN_SECONDS, observe_pod_monitor, with_refusal
from ots_tunnel_operator.plan.actions import ApplyObject, Aside, DeleteObject
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.absence import Failure, Missing, Unread
from ots_tunnel_operator.world.resource import Resource
from tests.support.kube.kube_memory import KubeMemory
from tests.support.operator.worlds import NOW, recorded, resource, world

NAME = "flights-copy-workers"
WANTED = resource(recorded(), monitoring={"podMonitor": True})
LEFT = resource(recorded(podMonitor=NAME))
MANIFEST = pod_monitor(WANTED.object)
NO_RIGHT = KubeError(403, "Forbidden", 'podmonitors "x" is forbidden: User "operator" cannot create resource')
NO_KIND = KindMissing(404, "NotFound", "the server could not find the requested resource")


class Api(KubeMemory):
    """An API server that may refuse looks, and counts them."""

    looks = 0
    blind: KubeError | None = None

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        assert kind is POD_MONITOR
        self.looks += 1
        if self.blind is not None:
            raise self.blind
        return await super().get(kind, namespace, name)


@pytest.fixture
def api() -> Api:
    return Api()


def at(cache: LoopCache, seconds: float) -> LoopCache:
    cache.keep_time(NOW + seconds)
    return cache


async def look(api: Api, of: Resource, cache: LoopCache | None = None) -> Any:
    return await observe_pod_monitor(cast(Kube, api), of, cache or at(LoopCache(), 0.0))


async def carry_out(api: Api, of: Resource, action: ApplyObject | DeleteObject, cache: LoopCache) -> bool:
    return await Applier(cast(Kube, api), of, cache).apply(Aside(action))


async def test_an_object_that_never_asked_costs_no_look(api: Api) -> None:
    assert await look(api, resource(recorded())) == Unread()
    assert api.looks == 0


async def test_one_is_seen_once_it_is_there(api: Api) -> None:
    assert await look(api, WANTED) == Missing()
    assert await carry_out(api, WANTED, ApplyObject(MANIFEST), LoopCache()) is True
    assert (await look(api, WANTED))["spec"] == MANIFEST["spec"]
    assert (await look(api, LEFT))["spec"] == MANIFEST["spec"]
    assert await carry_out(api, LEFT, DeleteObject(POD_MONITOR, NAME), LoopCache()) is True
    assert await look(api, LEFT) == Missing()


async def test_one_of_somebody_else_is_none_of_this_object_and_is_spared(api: Api) -> None:
    api.objects["PodMonitor", NAME] = {"metadata": {"name": NAME}}
    cache = at(LoopCache(), 0.0)

    assert await look(api, LEFT) == Missing()
    assert await carry_out(api, WANTED, ApplyObject(MANIFEST), cache) is False
    assert api.writes == []
    found = await look(api, WANTED, cache)
    assert "exists and belongs to something else" in found.problem.message


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (NO_KIND, "the cluster has no kind PodMonitor (monitoring.coreos.com/v1): install the Prometheus operator"),
        (NO_RIGHT, "workers.podMonitor.enabled"),
        (KubeError(500, "InternalError", "conversion webhook"), "the API server refused a call (InternalError: conv"),
    ],
    ids=["kind", "right", "other"],
)
async def test_what_cannot_be_looked_at_is_a_failure_with_the_way_out(api: Api, error: KubeError, words: str) -> None:
    api.blind = error
    found = await look(api, WANTED)

    assert isinstance(found, Failure)
    assert found.problem.reason is Reason.POD_MONITOR_FAILED
    assert found.problem.message.startswith("spec.monitoring.podMonitor true: ")
    assert words in found.problem.message


async def test_one_that_cannot_be_removed_is_told_unless_the_kind_is_gone(api: Api) -> None:
    api.blind = NO_RIGHT
    found = await look(api, LEFT)
    assert isinstance(found, Failure)
    assert "spec.monitoring.podMonitor false" in found.problem.message
    assert f"delete PodMonitor {NAME!r} by hand" in found.problem.message

    api.blind = NO_KIND
    assert await look(api, LEFT) == Unread()


async def test_one_that_a_finalizer_holds_is_deleted_once_and_told(api: Api) -> None:
    await carry_out(api, WANTED, ApplyObject(MANIFEST), LoopCache())
    held = api.objects["PodMonitor", NAME]["metadata"]
    held |= {"deletionTimestamp": timestamp(NOW), "finalizers": ["somebody.example/keep"]}
    api.writes.clear()

    assert await carry_out(api, LEFT, DeleteObject(POD_MONITOR, NAME), LoopCache()) is False
    assert api.writes == []
    assert not isinstance(await look(api, LEFT, at(LoopCache(), AGAIN_SECONDS - 1)), Failure)
    found = await look(api, LEFT, at(LoopCache(), AGAIN_SECONDS))
    assert isinstance(found, Failure)
    assert "a finalizer holds it (somebody.example/keep)" in found.problem.message
    # the object asks for one again: it is made when this one has gone
    assert not isinstance(await look(api, WANTED, at(LoopCache(), AGAIN_SECONDS)), Failure)


async def test_a_refusal_fails_no_pass_and_is_shown_until_the_next_try(api: Api) -> None:
    cache = at(LoopCache(), 0.0)
    api.refusal = NO_RIGHT

    assert await carry_out(api, WANTED, ApplyObject(MANIFEST), cache) is False
    # this pass shows it already
    assert isinstance(with_refusal(world(WANTED, pod_monitor=Missing()), cache).pod_monitor, Failure)
    later = with_refusal(world(WANTED, pod_monitor=Missing()), at(cache, 1.0))
    assert later.pod_monitor == Missing()
    looks = api.looks
    assert isinstance(await look(api, WANTED, at(cache, AGAIN_SECONDS - 1)), Failure)
    assert api.looks == looks
    # another wish is another question
    assert await look(api, LEFT, cache) == Missing()
    assert await look(api, WANTED, at(cache, AGAIN_SECONDS)) == Missing()
    api.refusal = None
    assert await carry_out(api, WANTED, ApplyObject(MANIFEST), cache) is True
    assert cache.monitor_refusal is None


async def test_a_clock_that_is_set_back_does_not_prolong_a_refusal(api: Api) -> None:
    cache = at(LoopCache(), 0.0)
    api.refusal = NO_RIGHT
    await carry_out(api, WANTED, ApplyObject(MANIFEST), cache)

    at(cache, -5000.0)
    assert isinstance(await look(api, WANTED, cache), Failure)
    assert await look(api, WANTED, at(cache, -5000.0 + AGAIN_SECONDS)) == Missing()


async def test_a_server_that_does_not_answer_is_no_refusal(api: Api) -> None:
    api.refusal = KubeError(0, "TimeoutError", "no answer")

    with pytest.raises(ActionFailed) as caught:
        await carry_out(api, WANTED, ApplyObject(MANIFEST), LoopCache())
    assert caught.value.problem.reason is Reason.API_SERVER_REFUSED
