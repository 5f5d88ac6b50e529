"""Calls that create something at the service: what a refusal leaves in the status."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from ots_tunnel.errors import PermissionDenied
from ots_tunnel.model import TunnelType
from ots_tunnel_operator.apply.create import WITHDRAWALS, ActionFailed, Creator
from ots_tunnel_operator.instance import Instance
from ots_tunnel_operator.kube.cluster import Cluster
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import Kind, Manifest
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.plan.actions import CreateTunnel
from ots_tunnel_operator.status_write import StatusOutdated
from tests.support.kube.kube_memory import KubeMemory
from tests.support.operator.worlds import UID, resource

INTENDED = {"tunnel": {"createIntentTime": "t"}}
CREATE = CreateTunnel(TunnelType.BaseAndStream, None, {"tunnel": {"createIntentTime": None}})


class Refusing(KubeMemory):
    """An API server that refuses the first writes of a status."""

    refusals: tuple[int, ...] = ()

    async def patch(self, kind: Kind, namespace: str, name: str, change: Manifest, subresource: str = "") -> Manifest:
        if self.refusals:
            status, *rest = self.refusals
            self.refusals = tuple(rest)
            raise KubeError(status, "Refused", "no")
        return await super().patch(kind, namespace, name, change, subresource)


async def refused(kube: KubeMemory) -> None:
    """Let the service refuse a creation."""

    async def refuse(*_: Any, **__: Any) -> None:
        raise PermissionDenied("OTSNoPermissionAccess", "may not", http_status=403)

    cache = LoopCache()
    tunnels = SimpleNamespace(create_tunnel=refuse)
    cache.source.instance = cast(Instance, SimpleNamespace(tunnels=tunnels, before_write=None))
    await Creator(cast(Cluster, kube), resource(), cache).create_tunnel(CREATE)


def intended(uid: str = UID, refusals: tuple[int, ...] = ()) -> Refusing:
    kube = Refusing({("TablestoreTunnel", "flights-copy"): {"metadata": {"uid": uid}, "status": INTENDED}})
    kube.refusals = refusals
    return kube


@pytest.mark.parametrize(
    ("refusals", "stands"),
    [((), False), ((409,), False), ((409, 409), False), ((403,), True), ((409, 403), True), ((409,) * 9, True)],
)
async def test_an_intent_is_taken_back_where_the_api_server_lets_it(
    refusals: tuple[int, ...], stands: bool, caplog: pytest.LogCaptureFixture
) -> None:
    assert len(refusals) < WITHDRAWALS or stands
    kube = intended(refusals=refusals)

    with caplog.at_level("INFO"), pytest.raises(StatusOutdated if refusals[:1] == (409,) else ActionFailed):
        await refused(kube)

    assert kube.objects["TablestoreTunnel", "flights-copy"]["status"]["tunnel"] == (
        INTENDED["tunnel"] if stands else {}
    )
    assert ("intent_stands" in [vars(line).get("action") for line in caplog.records]) == stands


async def test_the_record_of_a_successor_of_the_name_stays() -> None:
    kube = intended("another", (409,))

    with pytest.raises(StatusOutdated):
        await refused(kube)

    assert kube.objects["TablestoreTunnel", "flights-copy"]["status"] == INTENDED
