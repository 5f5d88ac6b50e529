"""A status is written against the version of the object that the decision came from."""

from __future__ import annotations

import pytest

from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import TUNNEL
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.status_write import StatusOutdated, dropped_fields, write_status
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


WANTED = {
    "phase": "Failed",
    "verdict": {"reason": "TunnelNotFound"},
    "tunnel": {"id": "1", "stage": None, "kept": True},
    "workers": [{"name": "a", "busy": 1}, {"name": "b", "busy": 2}],
    "channels": [],
}


@pytest.mark.parametrize(
    ("stored", "dropped"),
    [
        (WANTED, ()),
        (WANTED | {"ours": 1}, ()),
        # what the answer does not show is not known to be dropped
        (None, ()),
        ({}, ("status.phase", "status.verdict", "status.tunnel", "status.workers", "status.channels")),
        (WANTED | {"tunnel": {"id": "1"}}, ("status.tunnel.kept",)),
        (WANTED | {"workers": [{"name": "a"}, {"name": "b"}]}, ("status.workers[].busy",)),
        # another value is somebody else's, or the API server's own spelling
        (WANTED | {"phase": "Streaming", "workers": "none"}, ()),
    ],
)
def test_fields_that_the_api_server_has_dropped_are_named(
    stored: dict[str, object] | None, dropped: tuple[str, ...]
) -> None:
    assert dropped_fields(WANTED, stored) == dropped
