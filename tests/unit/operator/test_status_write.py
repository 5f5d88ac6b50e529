"""A status is written against the version of the object that the decision came from."""

from __future__ import annotations

import pytest

from ots_tunnel_operator.kube.client import KubeError
from ots_tunnel_operator.kube.kinds import TUNNEL
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.status_write import StatusOutdated, write_status
from tests.support.kube.cluster_model import ClusterModel
from tests.support.operator.objects import tunnel_object
from tests.support.operator.worlds import resource


def stored() -> tuple[ClusterModel, LoopCache]:
    model = ClusterModel()
    body = tunnel_object()
    body["metadata"]["namespace"] = "default"
    model.put(TUNNEL, body)
    return model, LoopCache(version=model.version)


async def test_a_second_write_relies_on_the_answer_to_the_first() -> None:
    model, cache = stored()

    await write_status(model, resource(), {"phase": "Preparing"}, cache)
    await write_status(model, resource(), {"phase": "Streaming"}, cache)

    assert model.objects[TUNNEL, "default", "flights-copy"]["status"] == {"phase": "Streaming"}


async def test_a_decision_about_an_older_object_is_not_written() -> None:
    model, cache = stored()
    model.put(TUNNEL, model.objects[TUNNEL, "default", "flights-copy"])

    with pytest.raises(StatusOutdated, match="modified"):
        await write_status(model, resource(), {"phase": "Streaming"}, cache)


async def test_another_refusal_is_raised_as_it_is() -> None:
    class Refusing(ClusterModel):
        async def patch(self, *_: object, **__: object) -> dict[str, object]:
            raise KubeError(403, "Forbidden", "may not")

    with pytest.raises(KubeError, match="may not"):
        await write_status(Refusing(), resource(), {}, LoopCache())
